"""Every queue type knows its oldest ready message, in whatever order it delivers."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harebell.base.gauge import Gauge
from harebell.front.convert import EDITOR
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import message

TYPES = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 3},
    "ordering keys": {"x-group-key": "routing_key"},
    "quorum with ordering keys": {"x-queue-type": "quorum", "x-group-key": "routing_key"},
}


def declared(arguments: dict[str, Any]) -> Any:
    host = VHost("/", MemoryStore(Gauge()), EDITOR)
    return host.declare_queue("q", durable="x-queue-type" in arguments, arguments=arguments)


def oldest(queue: Any) -> int | None:
    """The smallest number in a body at a head."""
    numbers = [int(log.read(position).body) for log, position in queue.heads_by_log()]
    return min(numbers, default=None)


@pytest.mark.parametrize("arguments", TYPES.values(), ids=TYPES)
def test_the_oldest_ready_message_is_at_a_head(arguments: dict[str, Any]) -> None:
    queue = declared(arguments)
    chance = random.Random(7)
    ready: set[int] = set()
    out: dict[int, int] = {}
    for number in range(300):
        choice = chance.random()
        if choice < 0.5:
            queue.publish(message(str(number).encode(), key=chance.choice("abc")))
            ready.add(number)
        elif choice < 0.8:
            taken = queue.get()
            if taken is not None:
                out[taken[1]] = int(taken[0].body)
                ready.remove(int(taken[0].body))
        elif out:
            position = chance.choice(list(out))
            back = out.pop(position)
            if choice < 0.95:
                queue.requeue_uncounted(position, True)
                ready.add(back)
            else:
                queue.settle(position)
        assert oldest(queue) == min(ready, default=None)
    assert ready, "the test ends with ready messages"
    queue.purge()
    assert queue.heads_by_log() == []


@pytest.mark.parametrize("arguments", TYPES.values(), ids=TYPES)
def test_looking_at_heads_changes_neither_the_order_nor_what_is_redelivered(
    arguments: dict[str, Any],
) -> None:
    watched, plain = declared(arguments), declared(arguments)
    chance = random.Random(3)
    for number in range(40):
        for queue in (watched, plain):
            queue.publish(message(str(number).encode(), key="abc"[number % 3]))
    taken = [(watched.get(), plain.get()) for _ in range(20)]
    chance.shuffle(taken)
    for one, other in taken:
        if one is not None and other is not None:
            watched.requeue_uncounted(one[1], True)
            plain.requeue_uncounted(other[1], True)
            watched.heads_by_log()
    for _ in range(40):
        one, other = watched.get(), plain.get()
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one[0].body, one[2]) == (other[0].body, other[2])
        watched.heads_by_log()


def test_a_deleted_queue_has_no_heads() -> None:
    queue = declared({})
    queue.publish(message(b"1"))
    queue.delete()
    assert queue.heads_by_log() == []
    assert queue.time_of(0) == 0
