"""Log lines about the life of a connection, in the words of RabbitMQ.

Programs that collect logs look for these words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection

_MS = 1_000
_SPANS = (("D", 86_400), ("H", 3_600), ("M", 60))
LOST = "client unexpectedly closed TCP connection"


def log_accepted(connection: BaseConnection) -> None:
    """Log that a client has begun with a protocol header that is served."""
    connection.log("info", f"accepting AMQP connection {connection.peer.connection_name}")


def log_granted(connection: BaseConnection, vhost: str) -> None:
    """Log that a connection is open."""
    user = connection.user.name
    connection.log(
        "info",
        f"connection {_name(connection)}: user '{user}' authenticated and granted access to vhost "
        f"'{vhost}'",
    )


def log_closing(connection: BaseConnection, why: str = "") -> None:
    """Log the end of an open connection.

    Args:
        connection: the connection.
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


def _age(connection: BaseConnection) -> float:
    return max(connection.now - connection.connected_at, 0.0)


def _name(connection: BaseConnection) -> str:
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
