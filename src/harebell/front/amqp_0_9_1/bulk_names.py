"""bulk.queues: the queues of the vhost that a user may read, page by page.

AMQP has no method for that, and readers of all queues of a pattern need it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import READ
from harebell.wire.v09.bulk import BulkQueues, BulkQueuesOk, encode_names

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_AROUND_BYTES = 64
"""Octets of a frame beside the names."""
_PAGE_BYTES = 32_768


def queues(channel: Channel, method: BulkQueues) -> None:
    """bulk.queues: return the sorted names after a name, as many as fit into a frame."""
    connection = channel.connection
    vhost = channel.vhost
    held = connection.user.permissions.get(vhost.name)
    names = sorted(
        name
        for name, queue in vhost.queues.items()
        if name > method.after
        and (queue.owner is None or queue.owner is connection)
        and held is not None
        and held.allow(READ, name)
    )
    room = min(connection.frame_max - _AROUND_BYTES, _PAGE_BYTES) or _PAGE_BYTES
    encoded, count = encode_names(names, room)
    reply = BulkQueuesOk(names=encoded, more=count < len(names))
    connection.send(channel.number, reply)


HANDLERS: dict[type, Callable[[Any, Any], None]] = {BulkQueues: queues}
