"""Log lines about the life of a connection, in the words of RabbitMQ.

Programs that collect logs look for these words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from harebell.auth.users import User
from harebell.front.common.peer import Peer
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.model.vhost import VHost

_MS = 1_000
_SPANS = (("D", 86_400), ("H", 3_600), ("M", 60))
LOST = "client unexpectedly closed TCP connection"


class Logged(Protocol):
    """What the lines say about a connection: see `BaseConnection`."""

    peer: Peer
    user: User
    vhost: VHost | None
    client_properties: Mapping[str, Any]
    state: ConnectionState
    origin: int
    now: float
    connected_at: float

    def log(self, level: str, text: str, category: str = "connection") -> None:
        """Write a line about the connection to the log."""


def log_accepted(connection: Logged) -> None:
    """Log that a client has begun with a protocol header that is served."""
    connection.log("info", f"accepting AMQP connection {connection.peer.connection_name}")


def log_granted(connection: Logged, vhost: str) -> None:
    """Log that a connection is open."""
    user = connection.user.name
    given = connection.client_properties.get("connection_name")
    if isinstance(given, str):
        name = connection.peer.connection_name
        connection.log("info", f"connection {name} has a client-provided name: {given}")
    connection.log(
        "info",
        f"connection {_name(connection)}: user '{user}' authenticated and granted access to vhost "
        f"'{vhost}'",
    )


def log_handed_over(connection: Logged, vhost: str) -> None:
    """Log that another broker serves the client of a connection."""
    connection.log(
        "info",
        f"connection {_name(connection)}: user '{connection.user.name}' is passed on to the owner "
        f"of vhost '{vhost}'",
    )


def log_closing(connection: Logged, why: str = "") -> None:
    """Log the end of an open connection.

    Args:
        connection: the connection that ends.
        why: the reason of an end without connection.close, which is a warning; "" otherwise.
    """
    vhost = "" if connection.vhost is None else connection.vhost.name
    text = (
        f"closing AMQP connection ({_name(connection)}, vhost: '{vhost}', "
        f"user: '{connection.user.name}', duration: '{shown_duration(_age(connection))}')"
    )
    if why:
        connection.log("warning", f"{text}: {why}")
    else:
        connection.log("info", text)


def log_ended(connection: Logged, level: str, why: str) -> None:
    """Log that the broker ends a connection without connection.close.

    Args:
        connection: the connection that is ended.
        level: the level of the line.
        why: the reason, as RabbitMQ's log has it.
    """
    connection.log(
        level, f"closing AMQP connection {_process(connection)} ({_name(connection)}): {why}"
    )


def log_failed(connection: Logged, why: str) -> None:
    """Log an error that ends a connection; it names the user, if one has logged in.

    Args:
        connection: the connection that is ended.
        why: the reason, as RabbitMQ's log has it.
    """
    facts = [_name(connection)]
    if connection.vhost is not None:
        facts.append(f"vhost: '{connection.vhost.name}'")
    if connection.user.name:
        facts.append(f"user: '{connection.user.name}'")
    # RabbitMQ calls the state after connection.open `running`.
    open_ = connection.state is ConnectionState.OPEN
    facts.append(f"state: {'running' if open_ else connection.state.value}")
    connection.log(
        "error", f"Error on AMQP connection {_process(connection)} ({', '.join(facts)}): {why}"
    )


def log_channel_failed(connection: Logged, number: int, operation: str, text: str) -> None:
    """Log an error that ends a channel.

    Args:
        connection: the connection that the channel belongs to, and that stays.
        number: the channel.
        operation: the method that failed, such as `queue.declare`; "none" without one.
        text: the reply text, such as `NOT_FOUND - no queue 'q' in vhost '/'`.
    """
    vhost = "" if connection.vhost is None else connection.vhost.name
    connection.log(
        "error",
        f"Channel error on connection {_process(connection)} ({_name(connection)}, vhost: "
        f"'{vhost}', user: '{connection.user.name}'), channel {number}: "
        f"{exception_text(operation, 'channel', text)}",
        "channel",
    )


def exception_text(operation: str, what: str, text: str) -> str:
    """Return a reply text as RabbitMQ logs it: `operation ... caused a channel exception ...`."""
    name, _, reason = text.partition(" - ")
    # RabbitMQ prints the reason of a connection exception as an Erlang string, with its quotes.
    if what == "connection":
        reason = f'"{reason}"'
    return f"operation {operation} caused a {what} exception {name.lower()}: {reason}"


def _process(connection: Logged) -> str:
    """Return what stands for the process of a connection in RabbitMQ."""
    return f"<0.{connection.origin}.0>"


def _age(connection: Logged) -> float:
    return max(connection.now - connection.connected_at, 0.0)


def _name(connection: Logged) -> str:
    """Return the name of a connection, with the one that its client gave it."""
    name = connection.peer.connection_name
    given = connection.client_properties.get("connection_name")
    return f"{name} - {given}" if isinstance(given, str) else name


def shown_duration(seconds: float) -> str:
    """Return a duration as RabbitMQ's log has it: `121ms`, `3s`, `1M, 3s`, `2H, 0M, 5s`."""
    if seconds < 1:
        return f"{int(seconds * _MS)}ms"
    rest = int(seconds)
    parts: list[str] = []
    for letter, size in _SPANS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append(f"{count}{letter}")
    return ", ".join([*parts, f"{rest}s"])
