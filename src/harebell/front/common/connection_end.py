"""What every version does when a connection ends, after its channels or sessions have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harebell.front.common.connection_log import LOST, log_closing, log_ended
from harebell.front.common.event_exchange import connection_closed
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.model.queue.contract import Queue


def log_lost(connection: BaseConnection) -> None:
    """Log what the peer left unfinished (AMQP 0-9-1 1.4.2.10 and 1.5.2.6 ask for errors)."""
    if connection.state is ConnectionState.CLOSING:
        connection.log("error", f"{connection.peer}: lost before connection.close-ok")
    elif connection.state is ConnectionState.OPEN:
        log_closing(connection, LOST)
    elif connection.state is not ConnectionState.CLOSED:
        log_ended(connection, "warning", LOST)


def release_owned(connection: BaseConnection, left: Sequence[Queue] = ()) -> None:
    """Release exclusive queues and the blocked state; serve the queues that lost a consumer.

    Args:
        connection: the connection, without its channels.
        left: the queues that it consumed from.
    """
    events = connection.broker.events
    # Before connection.close-ok, as in RabbitMQ: a client that has read it may declare the names.
    if connection.vhost is not None:
        connection.vhost.drop_owned(connection)
    if connection.announced:
        connection.announced = False
        connection_closed(connection)
    for queue in left:
        if not queue.deleted:
            queue.drain()
    connection.registry.publishers.forget(connection)
    if events.source is connection:
        events.source = None
    if events.waiting:
        events.publish()
