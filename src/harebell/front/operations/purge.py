"""Purge queues."""

from __future__ import annotations

from msgspec import Struct

from harebell.front.common.permission import audited
from harebell.front.operations.caller import Caller
from harebell.front.operations.get import readable_queue


class Purged(Struct, frozen=True):
    """The result of a purge.

    Args:
        count: the number of removed messages.
        recorded: whether the reply must wait for the current commit.
    """

    count: int
    recorded: bool


def purge_queue(caller: Caller, name: str) -> Purged:
    """Drop the ready messages of a queue; unacknowledged ones are not affected.

    Raises:
        Refusal: the user may not read it, or it does not exist or is exclusive to another owner.
    """
    with audited(caller, "queue.purged", {"name": name}):
        queue = readable_queue(caller, name)
    count = queue.purge()
    facts = {"name": name, "vhost": caller.vhost.name, "messages": count}
    caller.vhost.recorder.events.record("queue.purged", facts)
    return Purged(count, bool(queue.sync_soon()))
