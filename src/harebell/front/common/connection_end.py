"""What every version does when a connection ends, after its channels or sessions have ended."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import Done, i64
from harebell.front.common.connection_log import LOST, log_closing, log_ended
from harebell.front.common.event_exchange import connection_closed
from harebell.front.limits import ENDED_CHANNEL_UNITS, REMOVED_CONSUMER_UNITS
from harebell.model.limits import REMOVED_AT_ONCE, WORK_SLICE_UNITS
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


def end_channels(
    connection: BaseConnection,
    channels: Sequence[Any],
    end: Callable[[Any], object],
    then: Callable[[], object],
) -> Done:
    """End the channels or sessions of a connection that ends, in slices if there is much to do.

    Thousands of channels may have consumers and deliveries that are few in each of them.

    Args:
        connection: whose user it is that is charged.
        channels: those that end; they get no more deliveries.
        end: ends one of them.
        then: called after the last one.
    """
    units: i64 = 0
    for channel in channels:
        units += _units(channel)
    if units > WORK_SLICE_UNITS:
        _end_in_slices(connection, channels, end, then)
        return 0
    for channel in channels:
        end(channel)
    then()
    return 0


def _end_in_slices(
    connection: BaseConnection,
    channels: Sequence[Any],
    end: Callable[[Any], object],
    then: Callable[[], object],
) -> None:
    left, work = deque(channels), connection.registry.work
    events, user = connection.broker.events, connection.user.name

    def step() -> bool:
        # In a later slice another connection's user is the actor of its own events.
        events.actor = user
        while left:
            channel = left.popleft()
            units = _units(channel)
            end(channel)
            if work.charge(units):
                return False
        then()
        return True

    connection.perform(step)


def _units(channel: Any) -> i64:
    """Return what its end costs at once: what is more than a few of a kind is removed in slices."""
    held: i64 = len(getattr(channel, "links", channel.consumers) or ())
    held += min(channel.unacked.count, REMOVED_AT_ONCE)
    return ENDED_CHANNEL_UNITS + REMOVED_CONSUMER_UNITS * held


def release_owned(connection: BaseConnection, left: Sequence[Queue] = ()) -> Done:
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
    return 0
