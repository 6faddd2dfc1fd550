"""What queues with competing consumers share: turns, ranks and refusals, for every such kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.base.message import Message
from harebell.model.queue.queue import MessageQueue
from tests.unit.model.things import Taker, message, priority_queue, queue

KINDS = pytest.mark.parametrize("make", [queue, priority_queue])
Make = Callable[..., MessageQueue]


class Letters:
    """Keeps what is dead-lettered."""

    def __init__(self) -> None:
        self.got: list[tuple[bytes, str]] = []

    def send(
        self, refused: Message, reason: str, taken: set[str] | None = None, remark: object = None
    ) -> int:
        self.got.append((refused.body, reason))
        return 0


@KINDS
def test_waiting_messages_go_to_a_new_consumer_up_to_its_credit(make: Make) -> None:
    waiting = make()
    for number in range(3):
        waiting.publish(message(b"%d" % number))
    taker = Taker(waiting, credit=2)
    waiting.add_consumer(taker)
    assert taker.bodies == [b"0", b"1"]
    assert (waiting.ready_count(), waiting.unacked) == (1, 2)


@KINDS
def test_a_delivery_without_acknowledgement_is_done_with(make: Make) -> None:
    waiting = make()
    waiting.publish(message(b"old"))
    taker = Taker(waiting, no_ack=True)
    waiting.add_consumer(taker)
    waiting.publish(message(b"new"))
    assert taker.got == [(b"old", -1, False), (b"new", -1, False)]
    assert (waiting.ready_count(), waiting.unacked) == (0, 0)


@KINDS
def test_a_refused_message_is_dead_lettered_once_and_gone(make: Make) -> None:
    refusing = make()
    letters: Any = Letters()
    refusing.dead_letters = letters
    refusing.publish(message(b"bad"))
    found = refusing.get()
    assert found is not None
    refusing.reject(found[1])
    assert letters.got == [(b"bad", "rejected")]
    assert (refusing.ready_count(), refusing.unacked, refusing.get()) == (0, 0, None)


@KINDS
def test_a_refused_message_is_dropped_where_nobody_wants_it(make: Make) -> None:
    refusing = make()
    refusing.publish(message(b"bad"))
    found = refusing.get()
    assert found is not None
    refusing.reject(found[1])
    assert (refusing.ready_count(), refusing.unacked, refusing.get()) == (0, 0, None)


@KINDS
def test_deleting_tells_the_consumers_and_late_answers_do_no_harm(make: Make) -> None:
    doomed = make()
    taker = Taker(doomed, credit=1)
    doomed.add_consumer(taker)
    for _ in range(3):
        doomed.publish(message(b"x"))
    position = taker.got[0][1]
    assert doomed.delete() == 2
    assert taker.told_of_the_end
    doomed.settle(position)
    doomed.requeue(position)
    doomed.reject(position)
    assert (doomed.ready_count(), doomed.unacked, doomed.itself) == (0, 0, ())
