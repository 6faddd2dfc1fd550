"""Read from a queue: the queue that consumers, basic.get and purges name."""

from __future__ import annotations

from harebell.auth.permissions import READ
from harebell.front.common.permission import QUEUE, check
from harebell.front.operations.caller import Caller
from harebell.model.queue.contract import Queue


def readable_queue(caller: Caller, name: str) -> Queue:
    """Find a queue to read from.

    Raises:
        Refusal: the user may not read it, or it does not exist or is exclusive to another owner.
    """
    check(caller, READ, QUEUE, name)
    return caller.vhost.queue(name, caller.owner)
