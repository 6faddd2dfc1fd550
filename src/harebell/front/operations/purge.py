"""Purge queues."""

from __future__ import annotations

from dataclasses import dataclass

from harebell.front.operations.caller import Caller
from harebell.front.operations.get import readable_queue


@dataclass(frozen=True, slots=True)
class Purged:
    """What became of a purge.

    Args:
        count: the number of removed messages.
        recorded: whether the answer has to wait for the commit that gathers now.
    """

    count: int
    recorded: bool


def purge_queue(caller: Caller, name: str) -> Purged:
    """Drop what is ready in a queue; deliveries that are out stay out.

    Raises:
        Refusal: the user may not read it, there is none, or it is exclusive to others.
    """
    queue = readable_queue(caller, name)
    count = queue.purge()
    return Purged(count, bool(queue.sync_soon()))
