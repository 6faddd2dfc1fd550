"""bulk.queues and bulk.letters: the queues that a user may read, and those of dead letters.

AMQP has no such methods. Readers of all queues of a pattern, or of dead letters, need the names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import READ
from harebell.base.errors import ErrorKind, Refusal
from harebell.front.amqp_0_9_1.queue import find_readable
from harebell.front.common.permission import QUEUE
from harebell.model.dead_letter_queues import dead_letter_queues
from harebell.model.resource import rendered
from harebell.wire.v09.bulk import encode_names
from harebell.wire.v09.methods import BulkLetters, BulkQueues, BulkQueuesOk

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.model.queue.contract import Queue

_AROUND_BYTES = 64
"""Bytes of a frame beside the names."""
_PAGE_BYTES = 32_768


def queues(channel: Channel, method: BulkQueues) -> None:
    """bulk.queues: return the sorted names after a name, as many as fit into a frame."""
    vhost = channel.vhost
    names = sorted(
        name
        for name, queue in vhost.queues.items()
        if name > method.after and _may_read(channel, queue)
    )
    _answer(channel, names)


def letters(channel: Channel, method: BulkLetters) -> None:
    """bulk.letters: return the names of the queues that dead letters of a queue go to."""
    queue = find_readable(channel, method.queue)
    letter_queues = dead_letter_queues(channel.vhost, queue)
    names = sorted(each.name for each in letter_queues if _may_read(channel, each))
    if not names:
        resource = rendered("queue", queue.name, queue.vhost)
        raise Refusal(
            ErrorKind.ACCESS_REFUSED,
            f"dead letters of {resource} go to queues that user '{channel.connection.user.name}' "
            "may not read",
        )
    _answer(channel, names)


def _may_read(channel: Channel, queue: Queue) -> bool:
    connection = channel.connection
    # An exclusive queue of another connection could not be read.
    if queue.owner is not None and queue.owner is not connection:
        return False
    return connection.user.allows(queue.vhost, READ, QUEUE, queue.name)


def _answer(channel: Channel, names: list[str]) -> None:
    """Send as many of the names as fit into a frame."""
    connection = channel.connection
    room = min(connection.frame_max - _AROUND_BYTES, _PAGE_BYTES) or _PAGE_BYTES
    encoded, count = encode_names(names, room)
    reply = BulkQueuesOk(names=encoded, more=count < len(names))
    connection.send(channel.number, reply)


HANDLERS: dict[type, Callable[[Any, Any], None]] = {BulkQueues: queues, BulkLetters: letters}
