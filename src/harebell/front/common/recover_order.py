"""The order in which deliveries are requeued together.

RabbitMQ requeues the deliveries of one consumer, serves the queue, and continues with the next
consumer: by queue name, then by consumer tag, after the deliveries of basic.get. The next
deliveries depend on this order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.front.common.unacked import Unacked
    from harebell.model.consumer import Consumer
    from harebell.model.queue.contract import Queue


def by_consumer(entries: Iterable[Unacked]) -> list[list[Unacked]]:
    """Group deliveries by queue and consumer, in RabbitMQ's order."""
    groups: dict[tuple[Queue, Consumer | None], list[Unacked]] = {}
    for entry in entries:
        groups.setdefault((entry.queue, entry.consumer), []).append(entry)
    # Mostly there is one, and its deliveries are in order.
    if len(groups) < 2:
        return list(groups.values())
    return [groups[key] for key in sorted(groups, key=_turn)]


def _turn(key: tuple[Queue, Consumer | None]) -> tuple[bytes, bool, bytes]:
    queue, consumer = key
    tag = "" if consumer is None else consumer.tag
    return queue.name.encode(), consumer is not None, tag.encode()
