"""The quorum queue: failed deliveries, what leaves at the limit, and what clients may not ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Message
from harebell.base.ports import Commit
from harebell.model.dead_letter import GONE, NOWHERE
from harebell.model.queue.contract import ACCEPTED, PENDING, REJECTED
from harebell.model.queue.factory import quorum_queue
from harebell.model.queue.queue import MessageQueue
from harebell.model.settings.queue_settings import settings_of
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import Taker, message

AT_LEAST_ONCE = {"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}


class Letters:
    """Says of every dead letter what it was told to say."""

    def __init__(self, *outcomes: int) -> None:
        self.outcomes = list(outcomes)
        self.got: list[tuple[bytes, str]] = []
        self.counted: list[str] = []
        self.confirmed = 0

    def count(self, reason: str) -> None:
        self.counted.append(reason)

    def confirm(self) -> None:
        self.confirmed += 1

    def send(
        self, letter: Message, reason: str, taken: set[str] | None = None, remark: object = None
    ) -> int:
        self.got.append((letter.body, reason))
        return self.outcomes.pop(0) if self.outcomes else ACCEPTED


def quorum(
    log: PreparedLog | None = None,
    letters: Any = None,
    commit: Commit | None = None,
    **arguments: Any,
) -> MessageQueue:
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    queue = quorum_queue(
        "q", "/", log or PreparedLog(), commit or Commit(), durable=True, arguments=given
    )
    queue.configure(settings_of(given, {}))
    queue.dead_letters = letters
    return queue


def got(queue: MessageQueue) -> tuple[bytes, int, bool, int]:
    found = queue.get()
    assert found is not None
    return found[0].body, found[1], bool(found[2]), found[0].deliveries


def test_every_message_has_to_reach_the_disk() -> None:
    assert quorum().publish(message(b"transient")) == PENDING


def test_requeued_messages_go_first_in_the_order_of_their_coming() -> None:
    queue = quorum()
    for body in (b"a", b"b", b"c"):
        queue.publish(message(body))
    first, second = got(queue)[1], got(queue)[1]
    queue.requeue(second)
    queue.requeue(first)
    assert queue.ready_count() == 3
    assert [got(queue)[0] for _ in range(3)] == [b"b", b"a", b"c"]
    assert (queue.ready_count(), queue.get()) == (0, None)


def test_a_consumer_is_told_how_often_it_failed_and_nobody_else_is() -> None:
    log = PreparedLog()
    queue = quorum(log)
    original = message(b"a")
    queue.publish(original)
    told = []
    for _ in range(3):
        _, position, again, count = got(queue)
        told.append((again, count))
        queue.requeue(position)
    assert told == [(False, 0), (True, 1), (True, 2)]
    assert original.deliveries == 0
    assert log.count(0) == 3


def test_counts_outlive_the_process() -> None:
    log = PreparedLog()
    log.append(message(b"a"))
    log.append(message(b"b"))
    log.set_count(0, 4)
    log.handed_out = 1
    queue = quorum(log)
    assert got(queue)[2:] == (True, 4)
    assert got(queue)[2:] == (False, 0)


@pytest.mark.parametrize(("arguments", "limit"), [({}, 20), ({"x_delivery_limit": 2}, 2)])
def test_once_more_than_the_limit_is_too_often(arguments: dict[str, int], limit: int) -> None:
    letters = Letters()
    queue = quorum(letters=letters, **arguments)
    queue.publish(message(b"poison"))
    for _ in range(limit + 1):
        assert letters.got == []
        queue.requeue(got(queue)[1])
    assert letters.got == [(b"poison", "delivery_limit")]
    assert (queue.ready_count(), queue.unacked, queue.get()) == (0, 0, None)


def test_there_need_not_be_a_limit() -> None:
    queue = quorum(x_delivery_limit=-1)
    queue.publish(message(b"patient"))
    for _ in range(50):
        queue.requeue(got(queue)[1])
    assert got(queue)[3] == 50


def test_a_message_over_the_limit_is_dropped_where_nobody_wants_it() -> None:
    log = PreparedLog()
    queue = quorum(log, x_delivery_limit=0)
    queue.publish(message(b"a"))
    queue.requeue(got(queue)[1])
    assert (log.live(), queue.ready_count()) == (0, 0)


def test_a_consumer_gets_what_came_back_before_what_waits() -> None:
    queue = quorum()
    for body in (b"a", b"b"):
        queue.publish(message(body))
    queue.requeue(got(queue)[1])
    taker = Taker(queue)
    queue.add_consumer(taker)
    assert taker.got == [(b"a", 0, True), (b"b", 1, False)]


def test_a_damaged_message_that_came_back_is_passed_over() -> None:
    log = PreparedLog()
    queue = quorum(log)
    for body in (b"a", b"b"):
        queue.publish(message(body))
    queue.requeue(got(queue)[1])
    log.damaged = {0}
    assert got(queue)[0] == b"b"
    assert queue.ready_count() == 0


def test_purging_takes_what_came_back_too() -> None:
    log = PreparedLog()
    queue = quorum(log)
    for body in (b"a", b"b", b"c"):
        queue.publish(message(body))
    queue.requeue(got(queue)[1])
    kept = got(queue)[1]
    assert queue.purge() == 2
    assert (log.live(), queue.ready_count()) == (1, 0)
    queue.settle(kept)
    assert log.live() == 0


def reject_one(queue: MessageQueue) -> None:
    queue.publish(message(b"bad"))
    queue.reject(got(queue)[1])


def test_a_dead_letter_at_least_once_stays_until_its_copy_is_on_disk() -> None:
    log, letters = PreparedLog(), Letters(PENDING)
    commit = Commit()
    queue = quorum(log, letters, commit, **AT_LEAST_ONCE)
    reject_one(queue)
    assert (log.live(), queue.ready_count(), queue.unacked) == (1, 0, 0)
    assert commit.urgent
    commit.ticket += 1
    queue.tick()
    assert log.live() == 1
    commit.done = 1
    queue.tick()
    assert log.live() == 0
    assert letters.got == [(b"bad", "rejected")]
    assert (letters.counted, letters.confirmed) == (["rejected"], 1)


@pytest.mark.parametrize("outcome", [GONE, NOWHERE, REJECTED])
def test_a_dead_letter_at_least_once_is_tried_again(outcome: int) -> None:
    log, letters = PreparedLog(), Letters(outcome, outcome, ACCEPTED)
    queue = quorum(log, letters, **AT_LEAST_ONCE)
    reject_one(queue)
    queue.tick()
    assert log.live() == 1
    queue.tick()
    assert log.live() == 0
    assert len(letters.got) == 3


def test_a_copy_of_an_earlier_try_has_to_be_on_disk_too() -> None:
    log, letters = PreparedLog(), Letters(PENDING | REJECTED, ACCEPTED)
    commit = Commit()
    queue = quorum(log, letters, commit, **AT_LEAST_ONCE)
    reject_one(queue)
    queue.tick()
    assert log.live() == 1
    commit.done = commit.ticket
    queue.tick()
    assert log.live() == 0
    assert len(letters.got) == 2


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ({}, GONE),
        (AT_LEAST_ONCE, ACCEPTED),
        ({"x-dead-letter-strategy": "at-least-once"}, PENDING),
        ({}, NOWHERE),
    ],
)
def test_otherwise_a_dead_letter_leaves_at_once(arguments: dict[str, str], outcome: int) -> None:
    log = PreparedLog()
    queue = quorum(log, Letters(outcome), **arguments)
    reject_one(queue)
    assert log.live() == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda queue: queue.check_prefetch_global(),
            "queue 'q' in vhost '/' does not support global qos",
        ),
        (
            lambda queue: queue.check_delete(if_unused=True, if_empty=False),
            "cannot delete queue 'q' in vhost '/'. queue.delete operations with if-unused flag "
            "set are not supported by quorum queues",
        ),
        (
            lambda queue: queue.check_delete(if_unused=False, if_empty=True),
            "cannot delete queue 'q' in vhost '/'. queue.delete operations with if-empty flag "
            "set are not supported by quorum queues",
        ),
    ],
)
def test_arguments_unknown_to_quorum_queues_are_refused(
    call: Callable[[MessageQueue], None], text: str
) -> None:
    with pytest.raises(Refusal) as refused:
        call(quorum())
    assert refused.value.kind is ErrorKind.NOT_IMPLEMENTED
    assert refused.value.text == text


def test_a_quorum_queue_ignores_exclusive_consumption() -> None:
    queue = quorum()
    assert not queue.check_consumer("c", {}, no_ack=False, exclusive=True, prefetch=0)
    queue.check_delete(if_unused=False, if_empty=False)


def test_dead_letters_at_least_once_are_tried_again_as_the_budget_allows() -> None:
    letters = Letters(*[NOWHERE] * 20)
    queue = quorum(PreparedLog(), letters, **AT_LEAST_ONCE)
    for _ in range(4):
        reject_one(queue)
    queue.work.begin(1)
    for tries in range(5, 9):
        queue.tick()
        assert len(letters.got) == tries
