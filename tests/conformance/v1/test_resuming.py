"""Names of links, what a detach leaves, and resuming."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.permissions import Permissions
from harebell.front.amqp_1_0.resuming import Resumption
from harebell.front.limits import (
    KEPT_DELIVERIES,
    KEPT_LINK_DELIVERIES,
    KEPT_LINK_SECONDS,
    LINK_CREDIT,
    RESUMED_UNITS,
)
from harebell.wire.v09.methods import (
    BasicGet,
    BasicGetEmpty,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
)
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import encode_frame
from harebell.wire.v1.performatives import composite_of
from harebell.wire.v1.sections import data_section
from harebell.wire.v1.values import Symbol, UInt
from tests.conformance.arriving import unique
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_consuming import body_of, expect_bodies, fill

FIRST, SECOND = 0, 1
NEVER = Symbol("never")
ACCEPTED = c.Accepted()


@pytest.fixture
def container() -> str:
    """The name of a container."""
    return unique("container")


def lasting(address: str, policy: str = "never", timeout: int = 0) -> c.Source:
    """A source whose terminus outlives its link."""
    return c.Source(address, expiry_policy=Symbol(policy), timeout=timeout)


def attach_again(peer: Peer1, queue: str, unsettled: Any, **fields: Any) -> c.Attach:
    """Attach the receiver `l` with what is known of earlier deliveries."""
    source = fields.pop("source", lasting(f"/queues/{queue}"))
    return peer.attach_receiver(None, name="l", source=source, unsettled=unsettled, **fields)


def half_detach(peer: Peer1, handle: int = 1) -> None:
    """Detach a link without closing it."""
    peer.send(c.Detach(handle))
    peer.expect(c.Detach, handle=handle, closed=False)


def is_ready(peer: Peer, queue: str) -> int:
    """How many messages of a queue are ready."""
    peer.send(QueueDeclare(queue=queue, passive=True))
    return int(peer.expect(QueueDeclareOk).message_count)


# --- names --------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#062", "1.0#063")
def test_a_link_that_is_attached_again_is_taken_from_the_other_connection(
    queue: str, connect1: Connect1, container: str
) -> None:
    first = connect1().open(container=container).begin()
    first.attach_receiver(f"/queues/{queue}", name="l", credit=10)
    second = connect1().open(container=container).begin()
    second.attach_receiver(f"/queues/{queue}", name="l", credit=10)
    first.expect_error(c.Detach, "amqp:link:stolen", "'l'", "another connection")
    first.send(c.Detach(1, True))
    second.attach_sender(f"/queues/{queue}")
    second.transfer(0, b"m", settled=True)
    assert body_of(second.expect_transfer()) == b"m"
    first.quiet()


@pytest.mark.rule("1.0#062", "1.0#063")
def test_a_link_is_taken_within_a_session(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", 0, name="l")
    peer1.send(
        c.Attach("l", 2, False, target=c.Target(f"/queues/{queue}"), initial_delivery_count=0)
    )
    peer1.expect_error(c.Detach, "amqp:link:stolen", "the same connection")
    peer1.send(c.Detach(0, True))
    peer1.expect(c.Attach, name="l", handle=2)
    peer1.expect(c.Flow, handle=2)


@pytest.mark.rule("1.0#062")
def test_links_of_other_containers_and_directions_are_others(
    queue: str, connect1: Connect1, container: str
) -> None:
    first = connect1().open(container=container).begin()
    first.attach_receiver(f"/queues/{queue}", name="l")
    first.attach_sender(f"/queues/{queue}", name="l")
    connect1().open().begin().attach_receiver(f"/queues/{queue}", name="l")
    first.quiet()


def test_a_refused_attach_takes_no_link(queue: str, peer1: Peer1) -> None:
    peer1.attach_receiver(f"/queues/{queue}", name="l")
    asked = c.Attach("l", 2, True, source=c.Source("/queues/none"), target=c.Target())
    peer1.expect_refused(asked, "amqp:not-found")
    peer1.quiet()


@pytest.mark.rule("1.0#118")
def test_deliveries_of_a_link_that_is_taken_are_resumed(
    queue: str, connect1: Connect1, container: str
) -> None:
    first = connect1().open(container=container).begin()
    fill(first, queue, 1)
    first.attach_receiver(f"/queues/{queue}", name="l", credit=10)
    tag = first.expect_transfer().value.delivery_tag
    second = connect1().open(container=container).begin()
    answer = attach_again(second, queue, {tag: None}, credit=10)
    assert answer.unsettled == {tag: None}
    assert body_of(second.expect_transfer(delivery_tag=tag, resume=True)) == b"0"
    first.expect_error(c.Detach, "amqp:link:stolen")
    first.send(c.Detach(1, True))


# --- what the broker has sent -------------------------------------------------------------------


@pytest.mark.rule("1.0#070", "1.0#071", "1.0#072", "1.0#118", "1.0#119", "1.0#120", "1.0#151")
def test_both_sides_compare_what_is_not_settled(peer: Peer, queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 5)
    attach_again(peer1, queue, None, credit=5)
    tags = [peer1.expect_transfer().value.delivery_tag for _ in range(5)]
    half_detach(peer1)
    assert is_ready(peer, queue) == 0
    given = {
        tags[0]: ACCEPTED,
        tags[1]: None,
        tags[2]: c.Received(0, 3),
        tags[3]: c.Released(),
        b"unknown": None,
    }
    answer = attach_again(peer1, queue, given)
    assert answer.unsettled == dict.fromkeys(tags)
    assert not answer.incomplete_unsettled
    # The broker alone knows the last one, and the peer has released the fourth.
    assert is_ready(peer, queue) == 2
    peer1.give(1, 10)
    decided = peer1.expect_transfer(delivery_tag=tags[0], resume=True, settled=True)
    assert (composite_of(decided.value.state), decided.payload) == (ACCEPTED, b"")
    for tag, body in ((tags[1], b"1"), (tags[2], b"2")):
        again = peer1.expect_transfer(delivery_tag=tag, resume=True, settled=False)
        assert composite_of(again.value.state) == c.Received(0, 0)
        assert body_of(again) == body
    released = peer1.expect_transfer(delivery_tag=tags[3], resume=True, settled=True)
    assert (composite_of(released.value.state), released.payload) == (c.Released(), b"")
    found = expect_bodies(peer1, b"3", b"4")
    assert not any(each.value.resume for each in found)
    # A tag is not used again while a resumed delivery may have it.
    assert len({tags[1], tags[2], *(each.value.delivery_tag for each in found)}) == 4
    peer1.send(c.Disposition(True, 0, 1000, True, ACCEPTED))
    half_detach(peer1)
    peer.send(BasicGet(queue=queue))
    peer.expect(BasicGetEmpty)


@pytest.mark.rule("1.0#071", "1.0#072")
def test_attached_again_without_a_map_a_link_begins_anew(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 2)
    attach_again(peer1, queue, None, credit=2)
    expect_bodies(peer1, b"0", b"1")
    half_detach(peer1)
    answer = attach_again(peer1, queue, None, credit=5)
    assert answer.unsettled is None
    found = expect_bodies(peer1, b"0", b"1")
    assert not any(each.value.resume for each in found)


@pytest.mark.rule("1.0#071")
def test_nothing_is_known_of_a_link_that_was_closed(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    attach_again(peer1, queue, None, credit=2)
    tag = peer1.expect_transfer().value.delivery_tag
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach, closed=True)
    assert attach_again(peer1, queue, {tag: None}, credit=2).unsettled == {}
    assert not peer1.expect_transfer().value.resume


def test_resumed_deliveries_are_resumed_again_with_their_tags(
    queue: str, connect1: Connect1, container: str
) -> None:
    """Delivery-ids begin anew with each session, and tags do not."""
    tag, peers = b"", [connect1() for _ in range(3)]
    for count, each in enumerate(peers):
        each.open(container=container).begin()
        if count == 0:
            fill(each, queue, 1)
        answer = attach_again(each, queue, {tag: None} if tag else None, credit=5)
        assert answer.unsettled == ({tag: None} if tag else None)
        found = each.expect_transfer(resume=count > 0)
        assert not tag or found.value.delivery_tag == tag
        tag = found.value.delivery_tag
        if count < 2:
            each.close()
    peers[2].send(c.Disposition(True, 0, 0, True, ACCEPTED))
    peers[2].send(c.Detach(1, True))
    peers[2].expect(c.Detach)
    peers[2].attach_receiver(f"/queues/{queue}", 3, credit=1)
    peers[2].give(3, 1, drain=True)
    peers[2].expect(c.Flow, drain=True)


def test_what_credit_does_not_reach_goes_back_with_the_link(
    peer: Peer, queue: str, peer1: Peer1
) -> None:
    fill(peer1, queue, 3)
    attach_again(peer1, queue, None, credit=3)
    tags = [peer1.expect_transfer().value.delivery_tag for _ in range(3)]
    half_detach(peer1)
    attach_again(peer1, queue, dict.fromkeys(tags), credit=1)
    peer1.expect_transfer(delivery_tag=tags[0], resume=True)
    half_detach(peer1)
    assert is_ready(peer, queue) == 0
    answer = attach_again(peer1, queue, dict.fromkeys(tags))
    assert set(answer.unsettled) == set(tags)
    peer1.send(c.Detach(1, True))
    peer1.expect(c.Detach, closed=True)
    assert is_ready(peer, queue) == 3


def test_what_is_sent_again_takes_the_turns_that_it_needs(
    memory: MemorySite, memory1: Connect1, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, count, sent = unique("kept"), 100, []
    peer1 = memory1().open().begin()
    peer1.attach_sender(queue)
    for _ in range(count):
        peer1.transfer(0, b"m", settled=True)
    source = lasting(queue)
    attach_again(peer1, queue, None, credit=count, source=source)
    tags = [peer1.expect_transfer().value.delivery_tag for _ in range(count)]
    half_detach(peer1)
    attach_again(peer1, queue, dict.fromkeys(tags), source=source)
    send = Resumption.send

    def counted(self: Resumption, link: Any) -> None:
        before = link.delivery_count
        send(self, link)
        sent.append(link.delivery_count - before)

    monkeypatch.setattr(Resumption, "send", counted)
    turns = memory.registry.turns
    turns.limit(10 * RESUMED_UNITS, bool)
    peer1.give(1, count)
    while turns.busy:
        turns.next_turn()
        memory.turn()
    assert (sum(sent), len(sent) > 1) == (count, True)
    assert max(sent) <= 10
    assert [peer1.expect_transfer().value.delivery_tag for _ in tags] == tags


@pytest.mark.rule("1.0#093")
def test_after_an_incomplete_map_of_the_peer_nothing_new_is_sent(queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 3)
    attach_again(peer1, queue, None, credit=2)
    tags = [peer1.expect_transfer().value.delivery_tag for _ in range(2)]
    half_detach(peer1)
    attach_again(peer1, queue, {tags[1]: None}, incomplete_unsettled=True, credit=10)
    peer1.expect_transfer(delivery_tag=tags[1], resume=True)
    peer1.quiet()
    half_detach(peer1)
    # The peer has not denied the first one: it is there still.
    answer = attach_again(peer1, queue, dict.fromkeys(tags), credit=10)
    assert set(answer.unsettled) == set(tags)
    for _ in range(2):
        peer1.expect_transfer(resume=True)
    expect_bodies(peer1, b"2")


@pytest.mark.rule("1.0#093")
def test_a_map_that_no_frame_has_room_for_is_incomplete(queue: str, connect1: Connect1) -> None:
    peer1 = connect1().open(max_frame_size=512).begin()
    fill(peer1, queue, 100)
    attach_again(peer1, queue, None, credit=100)
    tags = [peer1.expect_transfer().value.delivery_tag for _ in range(100)]
    half_detach(peer1)
    known = dict.fromkeys(tags)
    answer = attach_again(peer1, queue, known, credit=200)
    assert answer.incomplete_unsettled
    told = set(answer.unsettled)
    assert 0 < len(told) < 100
    again = [peer1.expect_transfer(resume=True) for _ in told]
    assert {each.value.delivery_tag for each in again} == told
    peer1.quiet()


@pytest.mark.rule("1.0#092")
@pytest.mark.parametrize("key", [None, "text", b"", b"x" * 33])
def test_a_map_with_keys_that_are_no_tags_is_refused(queue: str, peer1: Peer1, key: Any) -> None:
    source = c.Source(f"/queues/{queue}")
    asked = c.Attach("l", 1, True, source=source, target=c.Target(), unsettled={key: None})
    peer1.expect_refused(asked, "amqp:invalid-field", "unsettled")


@pytest.mark.parametrize("value", ["text", c.Source("/queues/q")])
def test_a_map_with_values_that_are_no_states_is_refused(
    queue: str, peer1: Peer1, value: Any
) -> None:
    source = c.Source(f"/queues/{queue}")
    asked = c.Attach("l", 1, True, source=source, target=c.Target(), unsettled={b"t": value})
    peer1.expect_refused(asked, "amqp:invalid-field", "unsettled")
    # Nothing is left of it.
    peer1.attach_receiver(None, source=source, name="l")


def test_many_outcomes_of_a_map_are_taken(peer: Peer, queue: str, peer1: Peer1) -> None:
    count = 500
    fill(peer1, queue, count)
    attach_again(peer1, queue, None, credit=count)
    tags = [peer1.expect_transfer().value.delivery_tag for _ in range(count)]
    half_detach(peer1)
    given = {tag: ACCEPTED if at % 2 else c.Released() for at, tag in enumerate(tags)}
    attach_again(peer1, queue, given)
    peer1.give(1, count // 2)
    for tag in tags[: count // 2]:
        peer1.expect_transfer(delivery_tag=tag, resume=True, settled=True)
    assert is_ready(peer, queue) == count // 2


def test_an_expiry_policy_that_does_not_exist_is_refused(queue: str, peer1: Peer1) -> None:
    source = c.Source(f"/queues/{queue}", expiry_policy=Symbol("soon"))
    asked = c.Attach("l", 1, True, source=source, target=c.Target())
    peer1.expect_refused(asked, "amqp:invalid-field", "expiry-policy")


# --- how long -----------------------------------------------------------------------------------

EVENTS = ("detach", "end", "close", "loss")


def _happen(peer1: Peer1, event: str) -> None:
    if event == "detach":
        half_detach(peer1)
    elif event == "end":
        peer1.send(c.End())
        peer1.expect(c.End)
    elif event == "close":
        peer1.close()
    else:
        peer1.drop()


@pytest.mark.rule("1.0#047", "1.0#154", "1.0#157")
@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("policy", ["link-detach", "session-end", "connection-close", "never"])
def test_deliveries_are_kept_until_their_policy_says_so(
    memory: MemorySite, memory1: Connect1, container: str, policy: str, event: str
) -> None:
    queue = unique("kept")
    watcher = memory1().open().begin()
    watcher.attach_sender(queue)
    watcher.transfer(0, b"m", settled=True)
    watcher.close()
    held = memory.broker.vhosts["/"].queues[queue]
    peer1 = memory1().open(container=container).begin()
    attach_again(peer1, queue, None, credit=1, source=lasting(queue, policy))
    peer1.expect_transfer()
    _happen(peer1, event)
    ends_with = {"link-detach": 0, "session-end": 1, "connection-close": 2, "never": 3}[policy]
    is_kept = ends_with > {"detach": 0, "end": 1, "close": 2, "loss": 2}[event]
    assert held.ready_count() == (0 if is_kept else 1)
    assert memory.registry.kept_deliveries.used == is_kept
    if event == "detach":
        peer1.send(c.End())
        peer1.expect(c.End)
        assert held.ready_count() == (0 if ends_with > 1 else 1)
        peer1.close()
    elif event == "end":
        peer1.close()
    assert held.ready_count() == (0 if policy == "never" else 1)
    memory.pass_time(KEPT_LINK_SECONDS + 1, 100)
    assert held.ready_count() == 1
    assert memory.registry.kept_deliveries.used == 0
    assert not memory.registry.links


@pytest.mark.rule("1.0#157")
def test_a_timeout_begins_with_the_event_and_an_attach_ends_it(
    memory: MemorySite, memory1: Connect1, container: str
) -> None:
    queue = unique("kept")
    peer1 = memory1().open(container=container).begin()
    peer1.expected_empty = True
    peer1.attach_sender(queue)
    peer1.transfer(0, b"m", settled=True)
    held = memory.broker.vhosts["/"].queues[queue]
    source = lasting(queue, "link-detach", 30)
    assert attach_again(peer1, queue, None, credit=1, source=source).source.timeout == 30
    tag = peer1.expect_transfer().value.delivery_tag
    half_detach(peer1)
    memory.pass_time(20, 5)
    attach_again(peer1, queue, {tag: None}, credit=1, source=source)
    peer1.expect_transfer(delivery_tag=tag, resume=True)
    memory.pass_time(20, 5)
    assert held.ready_count() == 0
    half_detach(peer1)
    memory.pass_time(20, 5)
    assert held.ready_count() == 0
    memory.pass_time(15, 5)
    assert held.ready_count() == 1


def test_a_timeout_is_no_longer_than_deliveries_are_kept(queue: str, peer1: Peer1) -> None:
    source = lasting(f"/queues/{queue}", "link-detach", 1_000_000)
    answer = peer1.attach_receiver(None, source=source)
    assert answer.source.timeout == KEPT_LINK_SECONDS


def test_deliveries_of_a_deleted_queue_are_forgotten(peer: Peer, queue: str, peer1: Peer1) -> None:
    fill(peer1, queue, 1)
    attach_again(peer1, queue, None, credit=1)
    tag = peer1.expect_transfer().value.delivery_tag
    half_detach(peer1)
    peer.send(QueueDelete(queue=queue))
    peer.expect(QueueDeleteOk)
    peer.send(QueueDeclare(queue=queue))
    peer.expect(QueueDeclareOk)
    assert attach_again(peer1, queue, {tag: None}, credit=1).unsettled == {}
    peer1.quiet()


def test_deliveries_of_a_user_who_may_not_read_any_more_go_back(
    memory: MemorySite, memory1: Connect1, container: str
) -> None:
    queue = unique("kept")
    owner = memory1().open().begin()
    owner.attach_sender(queue)
    owner.transfer(0, b"m", settled=True)
    held = memory.broker.vhosts["/"].queues[queue]
    user = memory.users.add("reader", "secret", vhosts=("/",))
    user.permissions["/"] = Permissions("", "", ".*")
    peer1 = memory1().open(user="reader", password="secret", container=container).begin()
    attach_again(peer1, queue, None, credit=1)
    tag = peer1.expect_transfer().value.delivery_tag
    half_detach(peer1)
    user.permissions["/"] = Permissions("", "", "")
    source = lasting(f"/queues/{queue}")
    peer1.send(c.Attach("l", 1, True, source=source, target=c.Target(), unsettled={tag: None}))
    peer1.expect_error(c.End, "amqp:unauthorized-access")
    peer1.send(c.End())
    assert held.ready_count() == 1


def test_a_user_has_a_share_of_what_is_kept(memory: MemorySite, memory1: Connect1) -> None:
    queue = unique("kept")
    peer1 = memory1().open().begin()
    peer1.attach_sender(queue)
    peer1.transfer(0, b"m", settled=True)
    held = memory.broker.vhosts["/"].queues[queue]
    memory.registry.kept_deliveries.add("guest", KEPT_DELIVERIES // 4)
    attach_again(peer1, queue, None, credit=1, source=lasting(queue))
    peer1.expect_transfer()
    half_detach(peer1)
    # It goes back at once, as from a link that is closed.
    assert held.ready_count() == 1
    memory.registry.kept_deliveries.remove("guest", KEPT_DELIVERIES // 4)
    assert memory.registry.kept_deliveries.used == 0


def test_of_more_deliveries_than_a_session_may_leave_none_is_kept(
    memory: MemorySite, memory1: Connect1
) -> None:
    queue, count = unique("kept"), KEPT_LINK_DELIVERIES + 1
    peer1 = memory1().open().begin(window=1 << 20)
    peer = memory1().open().begin()
    peer.attach_sender(queue)
    for _ in range(count):
        peer.transfer(0, b"m", settled=True)
        # Credit, now and then.
        peer.maybe()
    held = memory.broker.vhosts["/"].queues[queue]
    attach_again(peer1, queue, None, source=lasting(queue))
    peer1.give(1, count)
    for _ in range(count):
        peer1.expect_transfer()
    half_detach(peer1)
    assert held.ready_count() == count
    assert memory.registry.kept_deliveries.used == 0


# --- what the broker has received ---------------------------------------------------------------


def attach_publisher(peer: Peer1, queue: str, unsettled: Any = None, **fields: Any) -> c.Attach:
    """Attach the sender `p`, which settles its deliveries after the broker."""
    target = c.Target(f"/queues/{queue}", expiry_policy=NEVER)
    return peer.attach_sender(
        None, name="p", target=target, rcv_settle_mode=SECOND, unsettled=unsettled, **fields
    )


@pytest.mark.rule("1.0#090", "1.0#114")
def test_in_mode_second_the_sender_settles_after_the_outcome(queue: str, peer1: Peer1) -> None:
    assert attach_publisher(peer1, queue).rcv_settle_mode == SECOND
    number = peer1.transfer(0, b"m")
    peer1.expect(c.Disposition, role=True, first=number, settled=False, state=ACCEPTED)
    peer1.send(c.Disposition(False, number, settled=True))
    half_detach(peer1, 0)
    # It is settled: the broker has forgotten it.
    assert attach_publisher(peer1, queue, {b"\0\0\0\0": None}).unsettled == {}


@pytest.mark.rule("1.0#090")
@pytest.mark.parametrize(
    ("target", "unsettled", "mode"),
    [
        ({}, None, FIRST),
        ({"expiry_policy": Symbol("link-detach")}, None, FIRST),
        ({"expiry_policy": Symbol("connection-close")}, None, SECOND),
        ({"timeout": UInt(1)}, None, SECOND),
        ({}, {}, SECOND),
    ],
)
def test_in_mode_second_the_broker_settles_at_once_where_nothing_can_be_resumed(
    queue: str, peer1: Peer1, target: dict[str, Any], unsettled: Any, mode: int
) -> None:
    answer = peer1.attach_sender(
        None,
        target=c.Target(f"/queues/{queue}", **target),
        rcv_settle_mode=SECOND,
        unsettled=unsettled,
    )
    assert answer.rcv_settle_mode == mode
    number = peer1.transfer(0, b"m")
    peer1.expect(c.Disposition, first=number, settled=mode == FIRST, state=ACCEPTED)


@pytest.mark.rule("1.0#070", "1.0#118", "1.0#119")
def test_a_publisher_learns_outcomes_that_it_has_missed(
    peer: Peer, queue: str, connect1: Connect1, container: str
) -> None:
    first = connect1().open(container=container).begin()
    attach_publisher(first, queue)
    for tag in (b"a", b"b", b"c"):
        first.transfer(0, tag, delivery_tag=tag)
    first.drop()
    second = connect1().open(container=container).begin()
    answer = attach_publisher(second, queue, {b"a": None, b"b": None, b"d": None})
    assert {tag: composite_of(state) for tag, state in answer.unsettled.items()} == {
        b"a": ACCEPTED,
        b"b": ACCEPTED,
    }
    # One is resumed without its message, one with it, and one was never sent.
    second.transfer_payload(0, b"", delivery_tag=b"a", resume=True, settled=True, state=ACCEPTED)
    number = second.transfer(0, b"b", delivery_tag=b"b", resume=True)
    second.expect(c.Disposition, first=number, settled=False, state=ACCEPTED)
    second.send(c.Disposition(False, number, settled=True, state=ACCEPTED))
    number = second.transfer(0, b"d", delivery_tag=b"d")
    second.expect(c.Disposition, first=number, settled=False, state=ACCEPTED)
    assert is_ready(peer, queue) == 4


@pytest.mark.rule("1.0#107", "1.0#109")
def test_a_resumed_delivery_that_the_broker_does_not_know_is_ignored(
    peer: Peer, queue: str, peer1: Peer1
) -> None:
    attach_publisher(peer1, queue, {b"x": None})
    peer1.transfer(0, b"m", delivery_tag=b"x", resume=True, state=c.Received(0, 0))
    peer1.quiet()
    assert is_ready(peer, queue) == 0


def test_a_resumed_delivery_may_come_in_parts(
    peer: Peer, queue: str, connect1: Connect1, container: str
) -> None:
    first = connect1().open(container=container).begin()
    attach_publisher(first, queue)
    first.transfer(0, b"m", delivery_tag=b"a")
    first.expect(c.Disposition)
    first.drop()
    second = connect1().open(container=container).begin()
    attach_publisher(second, queue, {b"a": None})
    payload = data_section(b"m")
    second.transfer_payload(0, payload[:3], delivery_tag=b"a", resume=True, more=True)
    rest = c.Transfer(handle=0)
    second.send_bytes(encode_frame(rest.encoded() + payload[3:]))
    second.expect(c.Disposition, first=0, settled=False, state=ACCEPTED)
    assert is_ready(peer, queue) == 1


@pytest.mark.rule("1.0#093")
def test_a_new_delivery_after_an_incomplete_map_detaches(queue: str, peer1: Peer1) -> None:
    attach_publisher(peer1, queue, {b"x": None}, incomplete_unsettled=True)
    peer1.transfer(0, b"m", delivery_tag=b"new")
    peer1.expect_error(c.Detach, "amqp:illegal-state", "incomplete-unsettled")
    peer1.send(c.Detach(0, True))


@pytest.mark.rule("1.0#100")
def test_a_tag_is_not_used_twice_before_it_is_settled(queue: str, peer1: Peer1) -> None:
    attach_publisher(peer1, queue)
    peer1.transfer(0, b"m", delivery_tag=b"t")
    peer1.expect(c.Disposition, settled=False)
    peer1.transfer(0, b"m", delivery_tag=b"t")
    peer1.expect_error(c.Detach, "amqp:invalid-field", "delivery-tag 74")
    peer1.send(c.Detach(0, True))


def test_a_publisher_that_settles_nothing_gets_no_more_credit(memory1: Connect1) -> None:
    peer1 = memory1().open().begin()
    peer1.attach_sender(unique("q"), name="p", rcv_settle_mode=SECOND, unsettled={})
    for _ in range(LINK_CREDIT):
        peer1.transfer(0, b"m")
    arrived = []
    while (found := peer1.maybe()) is not None:
        arrived.append(found.value)
    flows = [each for each in arrived if isinstance(each, c.Flow) and each.handle == 0]
    assert [each.delivery_count for each in flows] == [LINK_CREDIT // 2]
    peer1.send(c.Disposition(False, 0, LINK_CREDIT - 1, True, ACCEPTED))
    peer1.expect(c.Flow, handle=0, delivery_count=LINK_CREDIT, link_credit=LINK_CREDIT)
