"""The class lease: what peers ask of it, and what becomes of the messages."""

from __future__ import annotations

from typing import Any

import pyarrow
import pyarrow.ipc
import pytest

from harebell.base import limits
from harebell.model import limits as model_limits
from harebell.wire.v09 import lease
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 3},
    "keys": {"x-group-key": "message_id"},
    "quorum with keys": {"x-group-key": "message_id", "x-queue-type": "quorum"},
}


class Place:
    """A world with a queue "q" of some kind, and a group "g" that leases from it."""

    def __init__(self, count: int = 0, arguments: dict[str, Any] | None = None) -> None:
        self.world = World()
        self.peer = self.world.peer()
        durable = (arguments or {}).get("x-queue-type") == "quorum"
        declare = m.QueueDeclare("q", durable=durable, arguments=arguments or {})
        assert isinstance(self.peer.ask(declare), m.QueueDeclareOk)
        self.fill(count)
        self.epoch: int = self.ask(m.LeaseOpen("q", "g")).epoch

    @property
    def queue(self) -> Any:
        return self.world.broker.vhosts["/"].queues["q"]

    def fill(self, count: int, start: int = 0, **properties: Any) -> None:
        given = BasicProperties(**properties)
        for number in range(start, start + count):
            self.peer.give(publish(b"%d" % number, "q", properties=given))

    def ask(self, method: m.Method, peer: OctetPeer | None = None) -> Any:
        return (peer or self.peer).ask(method)

    def claim(self, messages: int = 0, octets: int = 0) -> Any:
        return self.ask(m.LeaseClaim("q", "g", self.epoch, messages, octets))

    def commit(self, number: int) -> Any:
        return self.ask(m.LeaseCommit("q", "g", self.epoch, number))

    def release(self, number: int = 0) -> Any:
        return self.ask(m.LeaseRelease("q", "g", self.epoch, number))

    def counts(self) -> tuple[int, int, int]:
        return self.queue.ready_count(), self.queue.unacked, self.queue.leased

    def claimed(self, number: int, group: str = "g") -> list[bytes]:
        """The bodies that a claim has now."""
        queue = self.queue
        logs = queue.claims().logs()
        found = []
        for run in queue.leases.groups[group].claims[number].runs:
            log = logs[run.level]
            position = log.next(run.first)
            while position < run.end:
                found.append(log.read(position).body)
                position = log.next(position + 1)
        return found

    def rest(self) -> list[tuple[bytes, bool]]:
        """What is ready, taken by basic.get."""
        found = []
        while (got := self.queue.get()) is not None:
            found.append((got[0].body, got[2]))
            self.queue.settle(got[1])
        return found

    def pass_time(self, ms: int) -> None:
        self.world.clock.ms += ms
        self.world.clock.steady += ms
        self.world.broker.timers.run()


def bodies(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def refused(answer: Any, code: int) -> str:
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_code == code
    return answer.reply_text


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_takes_what_is_ready_and_a_commit_settles_it(kind: str) -> None:
    place = Place(5, KINDS[kind])
    made = place.claim(3)
    assert (made.number, made.messages) == (1, 3)
    assert place.counts() == (2, 0, 3)
    assert place.claimed(1) == bodies(0, 1, 2)
    assert place.commit(1) == m.LeaseCommitOk(1, 3)
    assert place.counts() == (2, 0, 0)
    assert place.rest() == [(b"3", False), (b"4", False)]


@pytest.mark.parametrize("kind", KINDS)
def test_released_messages_return_to_their_place_as_redelivered(kind: str) -> None:
    place = Place(5, KINDS[kind])
    place.claim(2)
    place.claim(2)
    assert place.release(2) == m.LeaseReleaseOk(2)
    assert place.counts() == (3, 0, 2)
    assert place.release() == m.LeaseReleaseOk(2)
    found = place.rest()
    if kind == "quorum":
        # There, what came back goes in the order in which it did.
        found.sort()
    assert found == [
        (b"0", True), (b"1", True), (b"2", True), (b"3", True), (b"4", False)
    ]  # fmt: skip


def test_the_numbers_of_released_claims_are_not_used_again() -> None:
    place = Place(3)
    assert place.claim(1).number == 1
    place.release()
    assert place.claim(1).number == 2
    assert place.claimed(2) == bodies(0)
    assert "claim 1" not in place.world.broker.leases.of()[0].claims


def test_when_nothing_is_ready_the_claim_has_number_0() -> None:
    place = Place()
    assert place.claim() == m.LeaseClaimOk()


def test_a_claim_of_0_messages_takes_all_there_are() -> None:
    place = Place(7)
    assert place.claim().messages == 7


def test_a_claim_stops_before_it_has_too_many_octets_but_never_before_the_first_message() -> None:
    place = Place()
    for size in (10, 10, 500, 10):
        place.peer.give(publish(b"x" * size, "q"))
    assert place.claim(octets=20).messages == 2
    assert place.claim(octets=20).messages == 1
    assert place.claim(octets=20).messages == 1


def test_a_commit_takes_all_earlier_claims_along_and_may_be_repeated() -> None:
    place = Place(6)
    for _ in range(3):
        place.claim(2)
    assert place.commit(2) == m.LeaseCommitOk(2, 4)
    assert place.commit(2) == m.LeaseCommitOk(2, 0)
    assert place.commit(1) == m.LeaseCommitOk(2, 0)
    assert place.counts() == (0, 0, 2)


def test_a_commit_of_a_claim_that_never_was_made_is_refused() -> None:
    place = Place(1)
    place.claim()
    assert refused(place.commit(2), 406) == (
        "PRECONDITION_FAILED - claim 2 was never made, the last is 1: lease group 'g' of queue 'q' "
        "in vhost '/'"
    )


def test_a_commit_of_a_released_claim_says_that_it_is_lost() -> None:
    place = Place(2)
    place.claim(1)
    place.claim(1)
    place.release(2)
    assert refused(place.commit(2), 413).startswith(
        "LEASE_LOST - claim 2 is open no longer, it was released: lease group 'g'"
    )


@pytest.mark.parametrize(
    "method",
    [
        m.LeaseClaim("q", "g", 1, 1, 0),
        m.LeaseCommit("q", "g", 1, 1),
        m.LeaseRelease("q", "g", 1, 0),
        m.LeaseRenew("q", "g", 1),
        m.LeaseClose("q", "g", 1, True),
    ],
    ids=lambda method: method.NAME,
)
def test_an_epoch_ends_when_somebody_else_opens_the_group(method: m.Method) -> None:
    place = Place(3)
    place.claim(1)
    assert place.ask(m.LeaseOpen("q", "g"), place.world.peer()).epoch == 2
    assert refused(place.ask(method), 412) == (
        "FENCED - epoch 1 is over: it is epoch 2 of lease group 'g' of queue 'q' in vhost '/'"
    )
    assert place.counts() == (2, 0, 1)


def test_a_client_that_opens_a_group_gets_its_state() -> None:
    place = Place(5)
    place.claim(2)
    second = place.claim(2)
    place.commit(1)
    opened = place.ask(m.LeaseOpen("q", "g", 5000))
    assert (opened.epoch, opened.committed, opened.last, opened.lost) == (2, 1, 2, 0)
    assert opened.timeout == 5000
    assert opened.generation == place.queue.identity
    (claim,) = lease.decode_claims(opened.claims)
    assert claim == lease.ClaimInfo(2, 2, second.octets, second.first, second.end)
    assert (second.first, second.end) == (2, 4)


def test_groups_claim_side_by_side_and_release_each_its_own() -> None:
    place = Place(6)
    other = place.ask(m.LeaseOpen("q", "h")).epoch
    place.claim(2)
    place.ask(m.LeaseClaim("q", "h", other, 2, 0))
    place.claim(1)
    assert place.counts() == (1, 0, 5)
    place.release()
    assert place.claimed(1, "h") == bodies(2, 3)
    assert place.claim(10).messages == 4
    assert place.claimed(3) == bodies(0, 1, 4, 5)
    place.ask(m.LeaseCommit("q", "h", other, 1))
    place.commit(3)
    assert place.counts() == (0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_consumers_get_what_is_not_leased_and_what_is_released(kind: str) -> None:
    place = Place(4, KINDS[kind])
    place.claim(2)
    consumer = place.world.peer()
    consumer.send(m.BasicQos(prefetch_count=10))
    consumer.send(m.BasicConsume("q", "c"))
    delivered = [each for each in consumer.methods() if isinstance(each, m.BasicDeliver)]
    assert [each.delivery_tag for each in delivered] == [1, 2]
    assert place.counts() == (0, 2, 2)
    place.release()
    delivered = [each for each in consumer.methods() if isinstance(each, m.BasicDeliver)]
    assert [each.redelivered for each in delivered] == [True, True]
    consumer.send(m.BasicNack(0, True, True))
    consumer.send(m.BasicCancel("c"))
    consumer.send(m.BasicRecover(True))
    assert sum(place.counts()) == 4
    assert sorted(body for body, _ in place.rest()) == bodies(0, 1, 2, 3)


@pytest.mark.parametrize("kind", ["keys", "quorum with keys"])
def test_a_consumer_gets_a_claimed_key_when_the_claim_is_committed_and_not_before(
    kind: str,
) -> None:
    place = Place(0, KINDS[kind])
    for number, key in enumerate("aabab"):
        place.fill(1, number, message_id=key)
    assert place.claim(1).messages == 1
    consumer = place.world.peer()
    consumer.send(m.BasicConsume("q", "c"))
    delivered = [each for each in consumer.methods() if isinstance(each, m.BasicDeliver)]
    assert len(delivered) == 2
    assert place.counts() == (2, 2, 1)
    assert place.claim().messages == 2
    assert place.claimed(2) == bodies(1, 3)
    assert place.commit(1) == m.LeaseCommitOk(1, 1)
    place.fill(1, 5, message_id="a")
    assert not consumer.methods()
    assert place.commit(2) == m.LeaseCommitOk(2, 2)
    assert [type(each) for each in consumer.methods()] == [m.BasicDeliver]
    assert place.counts() == (0, 3, 0)


@pytest.mark.parametrize("kind", ["keys", "quorum with keys"])
def test_the_keys_of_a_group_whose_time_is_over_go_to_others(kind: str) -> None:
    place = Place(0, KINDS[kind])
    for number, key in enumerate("aab"):
        place.fill(1, number, message_id=key)
    place.claim(1)
    other = place.ask(m.LeaseOpen("q", "h")).epoch
    assert place.ask(m.LeaseClaim("q", "h", other, 9, 0)).messages == 1
    place.ask(m.LeaseClose("q", "g", place.epoch, False))
    place.pass_time(model_limits.LEASE_TIMEOUT_MS)
    assert place.counts() == (2, 0, 1)
    assert place.ask(m.LeaseClaim("q", "h", other, 9, 0)).messages == 2
    assert place.claimed(2, "h") == bodies(0, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_deliveries_that_are_out_when_the_cursor_goes_back_are_not_delivered_twice(
    kind: str,
) -> None:
    place = Place(6, KINDS[kind])
    place.claim(2)
    out = [place.queue.get() for _ in range(2)]
    assert [each[0].body for each in out] == bodies(2, 3)
    place.release()
    place.queue.requeue(out[0][1])
    assert place.claim(10).messages == 5
    assert sorted(place.claimed(2)) == bodies(0, 1, 2, 4, 5)
    place.release()
    place.queue.settle(out[1][1])
    assert sorted(body for body, _ in place.rest()) == bodies(0, 1, 2, 4, 5)
    assert place.counts() == (0, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_purging_the_queue_leaves_claims_alone(kind: str) -> None:
    place = Place(6, KINDS[kind])
    place.claim(2)
    out = place.queue.get()
    place.release()
    place.claim(1)
    assert place.ask(m.QueuePurge("q")) == m.QueuePurgeOk(4)
    assert place.counts() == (0, 1, 1)
    assert place.claimed(2) == bodies(0)
    place.queue.requeue(out[1])
    place.release()
    assert sorted(body for body, _ in place.rest()) == bodies(0, 2)


def test_claimed_messages_do_not_expire_and_do_when_they_come_back() -> None:
    place = Place(0, {"x-message-ttl": 1000})
    place.fill(4)
    assert place.claim(2).messages == 2
    place.pass_time(1500)
    assert place.counts() == (0, 0, 2)
    assert place.claimed(1) == bodies(0, 1)
    place.release()
    place.pass_time(1)
    assert place.counts() == (0, 0, 0)


def test_expired_messages_are_not_claimed() -> None:
    place = Place()
    place.fill(1, 0)
    place.fill(1, 1, expiration="10")
    place.fill(1, 2)
    place.pass_time(20)
    assert place.claim(5).messages == 2
    assert place.claimed(1) == bodies(0, 2)


def test_a_queue_that_is_too_full_drops_what_is_ready_and_nothing_that_is_leased() -> None:
    place = Place(2, {"x-max-length": 2})
    place.claim(2)
    place.fill(3, 2)
    assert place.counts() == (2, 0, 2)
    assert place.claimed(1) == bodies(0, 1)
    place.release()
    assert [body for body, _ in place.rest()] == bodies(3, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_octets_of_claims_count_no_more_until_they_come_back(kind: str) -> None:
    limits = {"x-max-length-bytes": 35, "x-overflow": "reject-publish"}
    place = Place(0, KINDS[kind] | limits)
    for _ in range(3):
        place.peer.give(publish(b"x" * 10, "q"))
    place.claim(2)
    # As with RabbitMQ a quorum queue takes the one that is too many, and refuses after that.
    limit = 4 if "quorum" in kind else 3
    for _ in range(5):
        place.peer.give(publish(b"y" * 10, "q"))
    assert place.counts() == (limit, 0, 2)
    place.release()
    assert place.counts() == (limit + 2, 0, 0)
    place.peer.give(publish(b"z", "q"))
    assert place.counts() == (limit + 2, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_released_from_a_claim_count_their_octets_once(kind: str) -> None:
    place = Place(3, KINDS[kind] | {"x-max-length-bytes": 3})
    place.claim(2)
    place.release()
    assert place.counts() == (3, 0, 0)
    place.fill(1, 3)
    assert place.counts() == (3, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_claim_finds_what_is_ready_behind_many_that_have_expired(kind: str) -> None:
    place = Place(0, KINDS[kind])
    place.fill(model_limits.EXPIRED_PER_TURN + 50, expiration="1000")
    place.fill(1, 7_000)
    # As after a restart: nothing has looked at the queue since.
    place.world.clock.ms += 2_000
    place.world.clock.steady += 2_000
    assert place.claimed(place.claim(10).number) == [b"7000"]
    assert place.counts() == (0, 0, 1)


def test_messages_that_a_quorum_queue_gets_back_count_their_deliveries() -> None:
    place = Place(1, KINDS["quorum"] | {"x-delivery-limit": 2})
    for count in range(2):
        place.claim()
        place.release()
        assert place.queue.order.delivery_count(0) == count + 1
    place.claim()
    place.release()
    assert place.counts() == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"x-queue-type": "stream"}, "its messages stay when they are read"),
        ({"x-single-active-consumer": True}, "it has a single active consumer"),
        (
            {"x-single-active-consumer": True, "x-group-key": "k"},
            "it has a single active consumer",
        ),
    ],
)
def test_queues_whose_promises_leases_would_break_have_none(
    arguments: dict[str, Any], reason: str
) -> None:
    peer = World().peer()
    durable = "x-queue-type" in arguments
    assert isinstance(
        peer.ask(m.QueueDeclare("q", durable=durable, arguments=arguments)), m.QueueDeclareOk
    )
    text = refused(peer.ask(m.LeaseOpen("q", "g")), 406)
    assert text.startswith(
        "PRECONDITION_FAILED - no lease is possible on queue 'q' in vhost '/': " + reason
    )


def test_wrong_questions_get_an_answer_that_names_the_thing() -> None:
    place = Place()
    world = place.world

    def told(method: m.Method, code: int) -> str:
        return refused(world.peer().ask(method), code)

    assert told(m.LeaseOpen("none", "g"), 404) == "NOT_FOUND - no queue 'none' in vhost '/'"
    assert told(m.LeaseClaim("q", "h", 1, 1, 0), 404) == (
        "NOT_FOUND - no lease group 'h' of queue 'q' in vhost '/'"
    )
    assert told(m.LeaseOpen("q", ""), 406) == ("PRECONDITION_FAILED - a lease group needs a name")
    assert told(m.LeaseOpen("q", "g", 2**32 - 1), 406) == (
        "PRECONDITION_FAILED - a lease timeout of 4294967295 ms is too long: 2592000000 is the most"
    )
    assert told(m.LeaseRenew("q", "g", 7), 412) == (
        "FENCED - epoch 7 never began: it is epoch 1 of lease group 'g' of queue 'q' in vhost '/'"
    )


def test_there_is_a_limit_for_open_claims_and_for_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_limits, "LEASE_OPEN_CLAIMS", 2)
    monkeypatch.setattr(model_limits, "LEASE_GROUPS", 1)
    place = Place(3)
    place.claim(1)
    place.claim(1)
    assert refused(place.claim(1), 406).startswith(
        "PRECONDITION_FAILED - 2 claims are open, commit or release some: lease group 'g'"
    )
    assert refused(place.world.peer().ask(m.LeaseOpen("q", "h")), 406) == (
        "PRECONDITION_FAILED - lease group 'h' of queue 'q' in vhost '/' cannot be made: user "
        "'guest' has 1 lease groups, and one user may have 1: `harebell leases list` shows them, "
        "`harebell leases release QUEUE GROUP --forget` "
        "removes one"
    )


def test_a_group_without_claims_that_nobody_holds_is_forgotten_after_a_week() -> None:
    place = Place(2)
    peer = place.world.peer()
    epoch = place.ask(m.LeaseOpen("q", "g", 5000), peer).epoch
    place.ask(m.LeaseClaim("q", "g", epoch, 2, 0), peer)
    place.ask(m.LeaseCommit("q", "g", epoch, 1), peer)
    place.pass_time(limits.LEASE_GROUP_KEPT_MS)
    assert place.ask(m.LeaseClose("q", "g", epoch), peer) == m.LeaseCloseOk(0)
    place.pass_time(limits.LEASE_GROUP_KEPT_MS - 1)
    assert [group.name for group in place.world.broker.leases.of()] == ["g"]
    assert place.ask(m.LeaseRenew("q", "g", epoch), peer) == m.LeaseRenewOk()
    place.pass_time(limits.LEASE_GROUP_KEPT_MS)
    peer.connection.eof()
    place.pass_time(limits.LEASE_GROUP_KEPT_MS)
    assert place.world.broker.leases.of() == []
    opened = place.ask(m.LeaseOpen("q", "g"))
    assert (opened.epoch, opened.last) == (epoch + 1, 0)


def test_claims_that_timed_out_leave_a_group_that_is_forgotten_later() -> None:
    place = Place(2)
    peer = place.world.peer()
    epoch = place.ask(m.LeaseOpen("q", "g", 5000), peer).epoch
    place.ask(m.LeaseClaim("q", "g", epoch, 2, 0), peer)
    peer.connection.eof()
    place.pass_time(5_000)
    assert place.counts() == (2, 0, 0)
    (group,) = place.world.broker.leases.of()
    assert group.lost == 1
    place.pass_time(limits.LEASE_GROUP_KEPT_MS)
    assert place.world.broker.leases.of() == []


def test_a_new_group_takes_the_room_of_the_one_that_has_been_idle_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_limits, "LEASE_GROUPS", 16)
    place = Place(3)
    peers = {name: place.world.peer() for name in ("held", "first", "second")}
    for name, peer in peers.items():
        place.ask(m.LeaseOpen("q", name, 5000), peer)
    for name in ("first", "second"):
        peers[name].connection.eof()
        place.pass_time(1)
    place.pass_time(4_990)
    assert "user 'guest' has 4 lease groups, and one user may have 4" in refused(
        place.world.peer().ask(m.LeaseOpen("q", "new")), 406
    )
    place.pass_time(9)
    assert isinstance(place.ask(m.LeaseOpen("q", "new")), m.LeaseOpenOk)
    names = sorted(group.name for group in place.world.broker.leases.of())
    assert names == ["g", "held", "new", "second"]


def test_claims_end_when_no_connection_has_held_the_group_for_its_time() -> None:
    place = Place(3)
    peer = place.world.peer()
    epoch = place.ask(m.LeaseOpen("q", "g", 5000), peer).epoch
    place.ask(m.LeaseClaim("q", "g", epoch, 2, 0), peer)
    place.pass_time(60_000)
    assert place.counts() == (1, 0, 2)
    peer.connection.eof()
    place.pass_time(4_999)
    assert place.counts() == (1, 0, 2)
    place.pass_time(1)
    assert place.counts() == (3, 0, 0)
    other = place.world.peer()
    assert refused(place.ask(m.LeaseCommit("q", "g", epoch, 1), other), 413).startswith(
        "LEASE_LOST - claim 1 is open no longer, it was released"
    )
    opened = place.ask(m.LeaseOpen("q", "g"), place.world.peer())
    assert (opened.epoch, opened.lost, opened.last, opened.claims) == (epoch + 1, 1, 1, b"")
    made = place.ask(m.LeaseClaim("q", "g", epoch + 1, 2, 0))
    assert made.number == 2
    assert place.ask(m.LeaseCommit("q", "g", epoch + 1, 2)).messages == 2


def test_a_client_that_comes_back_in_time_goes_on_in_the_same_epoch() -> None:
    place = Place(3)
    peer = place.world.peer()
    epoch = place.ask(m.LeaseOpen("q", "g", 5000), peer).epoch
    place.ask(m.LeaseClaim("q", "g", epoch, 2, 0), peer)
    peer.connection.eof()
    place.pass_time(4_000)
    assert place.ask(m.LeaseRenew("q", "g", epoch)) == m.LeaseRenewOk()
    place.pass_time(10_000)
    assert place.ask(m.LeaseCommit("q", "g", epoch, 1)).messages == 2


def test_a_group_that_is_closed_keeps_its_claims_for_its_time() -> None:
    place = Place(2)
    place.epoch = place.ask(m.LeaseOpen("q", "g", 5000)).epoch
    place.claim()
    assert place.ask(m.LeaseClose("q", "g", 2)) == m.LeaseCloseOk(0)
    assert place.counts() == (0, 0, 2)
    place.pass_time(5_000)
    assert place.counts() == (2, 0, 0)


def test_a_group_that_is_forgotten_gives_all_back_and_its_epochs_stay_fenced() -> None:
    place = Place(2)
    place.claim()
    assert place.ask(m.LeaseClose("q", "g", 1, True)) == m.LeaseCloseOk(2)
    assert place.counts() == (2, 0, 0)
    opened = place.ask(m.LeaseOpen("q", "g"))
    assert (opened.epoch, opened.last, opened.committed) == (2, 0, 0)
    assert refused(place.claim(1), 412).startswith("FENCED - epoch 1 is over")


def test_deleting_the_queue_ends_its_groups() -> None:
    place = Place(2)
    place.claim()
    assert isinstance(place.ask(m.QueueDelete("q", if_empty=True)), m.ChannelClose)
    peer = place.world.peer()
    assert place.ask(m.QueueDelete("q"), peer) == m.QueueDeleteOk(0)
    assert place.world.broker.leases.of() == []
    place.ask(m.QueueDeclare("q"), peer)
    assert refused(place.ask(m.LeaseRenew("q", "g", 1), peer), 404)


def test_requeued_messages_are_claimed_first() -> None:
    place = Place(4)
    out = [place.queue.get() for _ in range(3)]
    place.queue.requeue(out[2][1])
    place.queue.requeue(out[0][1])
    assert place.claim(2).messages == 2
    assert place.claimed(1) == bodies(0, 2)
    place.release()
    place.queue.settle(out[1][1])
    assert place.rest() == [(b"0", True), (b"2", True), (b"3", False)]


def read(place: Place, number: int, **given: Any) -> Any:
    """The answer of a bulk read of a claim, with the bodies that it has."""
    asked = m.BulkRead("q", "", "g", place.epoch, number, 0, 2**40, b"value,offset", **given)
    place.peer.send(asked)
    frames = place.peer.frames()
    payload = next(octets for kind, _, octets in frames if kind == 1)
    reply: Any = AMQP_0_9_1.decode(payload)
    if isinstance(reply, m.ChannelClose):
        return reply, []
    content = b"".join(octets for kind, _, octets in frames if kind == 3)
    schema = pyarrow.schema(
        [pyarrow.field("value", pyarrow.binary()), pyarrow.field("offset", pyarrow.int64())]
    )
    batch = pyarrow.ipc.read_record_batch(pyarrow.py_buffer(content), schema)
    return reply, batch.to_pydict()["value"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_read_in_bulk_has_its_messages_and_no_others(kind: str) -> None:
    place = Place(0, KINDS[kind])
    for number in range(12):
        place.fill(1, number, priority=number % 3)
    held = place.queue.get()
    other = place.ask(m.LeaseOpen("q", "h")).epoch
    place.claim(4)
    place.ask(m.LeaseClaim("q", "h", other, 2, 0))
    place.queue.requeue(held[1])
    place.claim(3)
    for number, count in ((1, 4), (2, 3)):
        reply, found = read(place, number)
        assert reply.rows == count
        assert sorted(found) == sorted(place.claimed(number))
    first = read(place, 1, rows=3)
    assert first[0].rows == 3
    assert len({*read(place, 1)[1]} - {*first[1]}) == 1


def test_only_open_claims_of_the_epoch_can_be_read() -> None:
    place = Place(3)
    place.claim(1)
    place.claim(1)
    place.commit(1)
    reply, _ = read(place, 1)
    assert refused(reply, 406).startswith(
        "PRECONDITION_FAILED - claim 1 was committed, so it cannot be read: lease group 'g'"
    )
    place.peer = place.world.peer()
    assert refused(read(place, 9)[0], 406).startswith(
        "PRECONDITION_FAILED - claim 9 was never made, the last is 2"
    )
    place.peer = place.world.peer()
    place.release()
    assert refused(read(place, 2)[0], 413).startswith("LEASE_LOST - claim 2 is open no longer")
    place.peer = place.world.peer()
    place.epoch = 7
    assert refused(read(place, 2)[0], 412).startswith("FENCED - epoch 7 never began")
