"""A backlog that gets a limit of octets: it is counted, and what is too much goes, in turns."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.timers import Timers
from harebell.front.convert import EDITOR
from harebell.model.limits import COUNTED_PER_TURN, TRIMMED_PER_TURN
from harebell.model.queue.contract import REJECTED
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import message, rest

REJECT = {"overflow": "reject-publish"}


def fill(queue: Any, *bodies: bytes) -> list[int]:
    return [queue.publish(message(body)) & REJECTED for body in bodies]


class Crowd:
    """A queue in a vhost, with more in it than one turn has time for.

    Args:
        arguments: of the queue.
        count: messages in it, of two octets each.
    """

    def __init__(self, arguments: dict[str, Any], count: int = 3 * COUNTED_PER_TURN) -> None:
        self.clock = Clock()
        self.timers = Timers(self.clock)
        host = VHost("/", MemoryStore(Gauge()), EDITOR, self.clock, timers=self.timers)
        self.queue: Any = host.declare_queue("q", durable=True, arguments=arguments)
        fill(self.queue, *(b"%02d" % (number % 100) for number in range(count)))

    def turn(self) -> bool:
        """Let one turn of the loop pass; whether there was anything to do in it."""
        busy = self.timers.due <= self.clock.steady
        self.timers.run()
        return busy


MANY_KINDS: list[dict[str, Any]] = [
    {},
    {"x-max-priority": 2},
    {"x-queue-type": "quorum"},
    {"x-group-key": "correlation_id"},
]


@pytest.mark.parametrize("arguments", MANY_KINDS, ids=str)
def test_a_backlog_is_counted_in_turns_and_what_moves_meanwhile_counts_once(
    arguments: dict[str, Any],
) -> None:
    crowd = Crowd(arguments)
    many, count = crowd.queue, 3 * COUNTED_PER_TURN
    early = many.get()
    many.configure({"max-length-bytes": 2 * count + 10} | REJECT)
    assert crowd.turn()
    late = [many.get() for _ in range(COUNTED_PER_TURN * 2)]
    many.requeue(early[1])
    for found in late[:7]:
        many.settle(found[1])
    for found in late[7:]:
        many.requeue(found[1])
    assert fill(many, b"new") == [0]
    turns = 0
    while crowd.turn():
        turns += 1
    assert turns
    # Seven messages left, and one of three octets came.
    assert fill(many, b"x" * 21) == [0]
    # A quorum queue takes the one that is too much, and then no other.
    takes_one = many.kind == "quorum"
    assert fill(many, b"x", b"") == ([0, REJECTED] if takes_one else [REJECTED, 0])


@pytest.mark.parametrize("arguments", MANY_KINDS, ids=str)
def test_the_excess_of_a_backlog_goes_in_turns(arguments: dict[str, Any]) -> None:
    crowd = Crowd(arguments)
    many, turns = crowd.queue, 0
    many.configure({"max-length-bytes": 20})
    smallest = many.ready_count()
    while crowd.turn():
        turns += 1
        gone = smallest - many.ready_count()
        assert gone <= TRIMMED_PER_TURN
        smallest = many.ready_count()
    assert turns > 1
    assert many.ready_count() == 10
    assert rest(many) == [b"%02d" % number for number in range(90, 100)]


def test_a_count_is_left_when_the_limit_or_the_queue_goes() -> None:
    crowd = Crowd({})
    crowd.queue.configure({"max-length-bytes": 20} | REJECT)
    crowd.queue.configure({})
    while crowd.turn():
        pass
    assert crowd.queue.ready_count() == 3 * COUNTED_PER_TURN
    crowd.queue.configure({"max-length-bytes": 20} | REJECT)
    assert crowd.queue.purge() == 3 * COUNTED_PER_TURN
    assert fill(crowd.queue, b"x" * 20, b"y") == [0, REJECTED]
    crowd.queue.delete()
    while crowd.turn():
        pass


def test_messages_released_by_a_claim_are_counted_again_in_turns_too() -> None:
    crowd = Crowd({})
    many, count = crowd.queue, 3 * COUNTED_PER_TURN
    taken = many.claims().claim(count, 0, "group")
    many.configure({"max-length-bytes": 2 * count} | REJECT)
    assert fill(many, b"x") == [0]
    assert many.get() is not None
    many.claims().release(taken.runs, taken.messages)
    while crowd.turn():
        pass
    assert fill(many, b"", b"x") == [0, REJECTED]
    few = many.claims().claim(3, 0, "group")
    assert fill(many, b"x" * 6, b"x") == [0, REJECTED]
    many.claims().release(few.runs, few.messages)
    assert many.get()[0].body == b"00"
    assert fill(many, b"x") == [REJECTED]
