"""Commands for connections, channels and consumers. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import OnlyVhost
from harebell.admin.catalog import CHANNELS, CONNECTIONS, CONSUMERS
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, Argument, Row, plural
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.admin.place import ANYWHERE, SUMS
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.rows.connections import (
    CHANNEL_COLUMNS,
    CONNECTION_COLUMNS,
    CONSUMER_COLUMNS,
    channel_name,
    channel_row,
    connection_row,
    consumer_row,
)
from harebell.admin.rows.details import channel_deliveries, channel_publishes
from harebell.base.errors import ErrorKind
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_like import AnyChannel

Reason = Annotated[str | None, Argument("The text that the client gets.", "TEXT")]

# --- connections ----------------------------------------------------------------------------------


def visible_connections(context: AdminContext, vhost: str | None) -> list[BaseConnection]:
    """Connections that the actor may see, by age, also those without a vhost yet."""
    return [each for each in _every(context, vhost) if context.may_see_work_of(each.user.name)]


def _every(context: AdminContext, vhost: str | None) -> list[BaseConnection]:
    """All connections by age, also those that the actor may not see."""
    only = None if vhost is None else context.vhost(vhost)
    connections = [
        each for each in context.registry.connections if only is None or each.vhost is only
    ]
    return sorted(connections, key=lambda each: (each.connected_at, str(each.peer)))


@CONNECTIONS.listing(
    "connections",
    "GET /api/connections",
    "GET /api/vhosts/{vhost}/connections",
    tag=MANAGEMENT,
    row=CONNECTION_COLUMNS,
    shown=("name", "user", "vhost", "state", "channels"),
)
def list_connections(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[Row]]:
    """List connections, the oldest first."""
    return gathered(connection_row(context, each) for each in visible_connections(context, vhost))


@CONNECTIONS.command("GET /api/connections/{name}", tag=MANAGEMENT, place=ANYWHERE)
def show(
    context: AdminContext,
    name: str,
    data_rates_age: Age = None,
    data_rates_incr: Increment = None,
) -> Row:
    """Show the connection NAME and samples of its octets. `list` shows the names."""
    period = range_of(data_rates_age, data_rates_incr, "data_rates")
    return dict(connection_row(context, _connection(context, name), period))


@CONNECTIONS.over_http("GET /api/connections/{name}/sessions", tag=MANAGEMENT, place=ANYWHERE)
def sessions(context: AdminContext, name: str) -> list[Row]:
    """Return the AMQP 1.0 sessions of a connection: refused, as there is no AMQP 1.0."""
    _connection(context, name)
    raise CommandRefused("connection does not use AMQP 1.0")


def _connection(context: AdminContext, name: str) -> BaseConnection:
    connections = [
        each for each in visible_connections(context, None) if each.peer.connection_name == name
    ]
    if not connections:
        raise _no_connection(name)
    return connections[0]


def _no_connection(name: str) -> CommandRefused:
    return missing(f"no connection '{name}': `harebell connections list` shows all by their names")


def _check_may_end(context: AdminContext, user: str) -> None:
    """Refuse to close connections of a user: administrators may, and the user.

    Raises:
        CommandRefused: ACCESS_REFUSED.
    """
    actor = context.actor
    if actor is not None and actor.name != user and "administrator" not in actor.tags:
        raise CommandRefused("User not authorised to access object", ErrorKind.ACCESS_REFUSED)


def checked_reason(reason: str | None) -> str:
    """Return the text for the client, or the usual one.

    Raises:
        CommandRefused: it is too long.
    """
    if reason is None:
        return "closed by an operator"
    if len(reason.encode()) > NAME_BYTES:
        raise CommandRefused(f"the reason has more than {NAME_BYTES} bytes: shorten it")
    return reason


@CONNECTIONS.command(
    "DELETE /api/connections/{name}",
    tag=MANAGEMENT,
    done="connection '{name}' was closed",
    place=ANYWHERE,
)
def close(context: AdminContext, name: str, reason: Reason = None) -> Slices[Row]:
    """Close the connection NAME with 320 CONNECTION_FORCED. `list` shows the names."""
    text = checked_reason(reason)
    user = _connection(context, name).user
    _check_may_end(context, user.name)
    closed = yield from context.disconnect(
        text, lambda each: each.peer.connection_name == name and each.user.name == user.name
    )
    context.log("info", f"connection {name} was closed: {text}")
    return {"name": name, "connections_closed": closed}


def _closed(outcome: Mapping[str, Any]) -> str:
    return f"{plural(outcome['connections_closed'], 'connection')} closed"


@CONNECTIONS.command(tag=ADMINISTRATOR, done=_closed, merge=SUMS)
def close_all(
    context: AdminContext,
    vhost: Annotated[str | None, Argument("Only those to this vhost.", "NAME")] = None,
    user: Annotated[str | None, Argument("Only those of this user.", "NAME")] = None,
    reason: Reason = None,
) -> Slices[Row]:
    """Close all connections, or those to a vhost or of a user."""
    text = checked_reason(reason)
    where = None if vhost is None else context.vhost(vhost)
    who = None if user is None else context.user(user)
    closed = yield from context.disconnect(
        text,
        lambda each: where in (None, each.vhost) and (who is None or each.user.name == who.name),
    )
    context.log("info", f"{closed} connections were closed: {text}")
    return {"connections_closed": closed}


@CONNECTIONS.over_http("GET /api/connections/username/{user}", tag=MANAGEMENT)
def list_of_user(context: AdminContext, user: str) -> Slices[list[Row]]:
    """List the connections of a user, the oldest first."""
    context.user(user)
    connections = [each for each in visible_connections(context, None) if each.user.name == user]
    return gathered(connection_row(context, each) for each in connections)


@CONNECTIONS.over_http("DELETE /api/connections/username/{user}", tag=MANAGEMENT, merge=SUMS)
def close_of_user(context: AdminContext, user: str, reason: Reason = None) -> Slices[Row]:
    """Close all connections of a user with 320 CONNECTION_FORCED."""
    text = checked_reason(reason)
    _check_may_end(context, user)
    context.user(user)
    closed = yield from context.disconnect(text, lambda each: each.user.name == user)
    context.log("info", f"{closed} connections of user '{user}' were closed: {text}")
    return {"user": user, "connections_closed": closed}


# --- channels -------------------------------------------------------------------------------------


def _channels(
    connections: list[BaseConnection],
) -> Iterator[tuple[BaseConnection, AnyChannel]]:
    """Connections with each of their channels; a session of AMQP 0-10 is one, too."""
    for connection in connections:
        for _, channel in sorted(connection.channels.items()):
            yield connection, channel


@CHANNELS.listing(
    "channels",
    "GET /api/channels",
    "GET /api/vhosts/{vhost}/channels",
    "GET /api/connections/{connection}/channels",
    tag=MANAGEMENT,
    row=CHANNEL_COLUMNS,
    shown=("name", "user", "vhost", "consumer_count", "messages_unacknowledged", "prefetch_count"),
)
def list_channels(
    context: AdminContext,
    vhost: OnlyVhost = None,
    connection: Annotated[str | None, Argument("Only those of this connection.", "NAME")] = None,
) -> Slices[list[Row]]:
    """List channels by connection and number."""
    context.check_stats()
    connections = (
        visible_connections(context, vhost)
        if connection is None
        else [_connection(context, connection)]
    )
    return gathered(channel_row(context, *each) for each in _channels(connections))


@CHANNELS.command("GET /api/channels/{name}", tag=MANAGEMENT, verb="show", place=ANYWHERE)
def show_channel(
    context: AdminContext,
    name: str,
    msg_rates_age: Age = None,
    msg_rates_incr: Increment = None,
) -> Slices[Row]:
    """Show the channel NAME with its consumers and samples of its counters.

    `list` shows the names.
    """
    context.check_stats()
    period = range_of(msg_rates_age, msg_rates_incr, "msg_rates")
    every = _channels(visible_connections(context, None))
    channels = [each for each in every if channel_name(*each) == name]
    if not channels:
        raise missing(f"no channel '{name}': `harebell channels list` shows all by their names")
    connection, channel = channels[0]
    every_consumer = list((channel.consumers or {}).values())
    consumers = yield from gathered(
        consumer_row(context, connection, channel, each) for each in every_consumer
    )
    return {
        **channel_row(context, connection, channel, period),
        "consumer_details": consumers,
        "publishes": channel_publishes(context, channel, period),
        "deliveries": channel_deliveries(context, channel, period),
    }


# --- consumers ------------------------------------------------------------------------------------


@CONSUMERS.listing(
    "consumers",
    "GET /api/consumers",
    "GET /api/consumers/{vhost}",
    tag=MANAGEMENT,
    row=CONSUMER_COLUMNS,
    shown=("vhost", "queue_name", "consumer_tag", "channel", "ack_required", "prefetch_count"),
)
def list_consumers(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[Row]]:
    """List consumers by connection, channel and tag."""
    context.check_stats()
    return gathered(
        consumer_row(context, connection, channel, consumer)
        for connection, channel in _channels(_every(context, vhost))
        if context.may_see(channel.vhost.name)
        for _, consumer in sorted((channel.consumers or {}).items())
    )
