"""The class history, Harebell's own: which eras the numbers of a queue belong to.

docs/protocols/extensions.md explains it. The reply is sent when the eras are on disk, so no
reader keeps the name of an era that a crash makes unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.front.amqp_0_9_1.queue import find_readable
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel


def ask(channel: Channel, method: methods.HistoryAsk) -> None:
    """history.ask: return the eras of a queue's positions, or of a group's claim numbers."""
    queue = find_readable(channel, method.queue)
    if method.group:
        eras = channel.connection.broker.leases.find(channel.vhost, queue, method.group).eras
    else:
        eras = channel.vhost.recorder.histories.of(queue)
    if queue.durable:
        channel.hold_until_recorded()
    channel.connection.send(channel.number, methods.HistoryAskOk(queue.identity, eras.encode()))


HANDLERS: dict[type, Callable[[Any, Any], None]] = {methods.HistoryAsk: ask}
