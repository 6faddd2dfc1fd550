"""Sequence numbers of a queue: from 1 on, no number twice, and gaps for what is lost."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import FAMILY_FILE, Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, message


def numbered_queue(**arguments: Any) -> Any:
    host = VHost("/", MemoryStore(Gauge()), EDITOR)
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return host.declare_queue(
        "q", durable=True, arguments={"qpid.queue_msg_sequence": "number", **given}
    )


def numbers(queue: Any) -> list[int]:
    """Take what is ready; its numbers."""
    found = []
    while (one := queue.get()) is not None:
        found.append(EDITOR.headers_of(one[0])["number"])
        queue.settle(one[1])
    return found


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_numbers_rise_by_one_and_a_gap_shows_what_a_limit_dropped(kind: str) -> None:
    queue = numbered_queue(queue_type=kind, max_length=3)
    for _ in range(2):
        queue.publish(message())
    assert numbers(queue) == [1, 2]
    for _ in range(5):
        queue.publish(message())
    assert numbers(queue) == [5, 6, 7]


def test_a_refused_message_has_no_number() -> None:
    queue = numbered_queue(max_length=1, overflow="reject-publish")
    queue.publish(message())
    queue.publish(message())
    assert numbers(queue) == [1]
    queue.publish(message())
    assert numbers(queue) == [2]


@pytest.mark.parametrize("no_ack", [False, True])
def test_a_consumer_that_waits_gets_numbers_too(no_ack: bool) -> None:
    queue = numbered_queue()
    taker = Taker(queue, no_ack=no_ack)
    given: list[int] = []

    def deliver(got: Message, position: int, redelivered: bool) -> int:
        given.append(EDITOR.headers_of(got)["number"])
        return 0

    taker.deliver = deliver  # type: ignore[method-assign]
    queue.add_consumer(taker)
    for _ in range(3):
        queue.publish(message())
    queue.remove_consumer(taker)
    queue.publish(message())
    assert given == [1, 2, 3]
    assert numbers(queue) == [4]
    assert queue.unacked == (0 if no_ack else 3)


def test_rows_of_a_batch_are_numbered_in_their_order() -> None:
    queue = numbered_queue()
    queue.begin_batch()
    queue.stage(message())
    queue.publish(message())
    queue.stage(message())
    queue.commit_batch()
    assert numbers(queue) == [1, 2, 3]


def test_a_number_replaces_that_of_the_queue_before() -> None:
    queue = numbered_queue()
    queue.publish(EDITOR.composed("", "q", b"", {"headers": {"number": 77, "other": 1}}))
    assert EDITOR.headers_of(queue.head()) == {"number": 1, "other": 1}


def test_files_keep_their_class_and_have_no_header() -> None:
    queue = numbered_queue()
    queue.publish(Message("", "q", Properties(b"\0\0", family=FAMILY_FILE), b""))
    queue.publish(message())
    assert queue.head().family == FAMILY_FILE
    queue.settle(queue.get()[1])
    assert numbers(queue) == [2]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"max_priority": 3}, "has an order for each level"),
        ({"queue_type": "stream"}, "rabbit_stream_queue"),
    ],
)
def test_queues_without_one_order_of_their_own_are_refused(
    arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(Refusal, match=text):
        numbered_queue(**arguments)
