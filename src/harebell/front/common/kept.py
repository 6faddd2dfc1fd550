"""What one connection makes the broker keep: counted, and limited.

Its consumers with their arguments, unacknowledged deliveries, transactions, unread output, and what
of its input is not complete. Messages in queues are not among it. A connection over the limit is
closed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.errors import ErrorKind, Refusal
from harebell.front.common.delivery_ack_timeout import holders
from harebell.front.limits import (
    CHANNELS_PER_TICK,
    CONNECTION_KEPT_BYTES,
    CONSUMER_BYTES,
    CONSUMERS_PER_UNIT,
    KEPT_CHECK_SECONDS,
    LINK_BYTES,
    UNACKED_BYTES,
)
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.connection_registry import ConnectionRegistry
    from harebell.model.consumer import Consumer

_VALUE_BYTES = 64
_ENTRY_BYTES = 112


def footprint(value: Any) -> int:
    """Return about how much memory a decoded value takes, in bytes."""
    if isinstance(value, Mapping):
        return _VALUE_BYTES + sum(
            [_ENTRY_BYTES + len(name) + footprint(each) for name, each in value.items()]
        )
    if isinstance(value, list):
        return _VALUE_BYTES + sum([8 + footprint(each) for each in value])
    return _VALUE_BYTES + (len(value) if isinstance(value, str | bytes) else 0)


def keep_consumer(channel: Any, consumer: Consumer) -> None:
    """Count a consumer that is to be started.

    Raises:
        Refusal: RESOURCE_ERROR, those of the connection take too much memory.
    """
    connection = channel.connection
    consumer.kept = CONSUMER_BYTES + footprint(consumer.arguments)
    connection.kept += consumer.kept
    if connection.kept <= CONNECTION_KEPT_BYTES:
        return
    # Those that have ended since are counted still.
    connection.kept = consumer.kept + _consumers_of(connection)
    connection.registry.work.charge(connection.kept // CONSUMER_BYTES // CONSUMERS_PER_UNIT)
    if connection.kept > CONNECTION_KEPT_BYTES:
        raise Refusal(ErrorKind.RESOURCE_ERROR, _text("its consumers take", connection.kept))


def kept_bytes(connection: Any) -> int:
    """Return about how much memory a connection (`BaseConnection`) makes the broker keep."""
    return _consumers_of(connection) + _others_of(connection)


def _others_of(connection: Any) -> int:
    kept_bytes: int = connection.out.size
    # Not every version has all of these: 0-10 has assemblies in the place of contents.
    kept_bytes += getattr(connection.scanner, "buffered", 0)
    for channel in connection.channels.values():
        kept_bytes += UNACKED_BYTES * channel.unacked.count
        kept_bytes += getattr(channel.transaction, "byte_count", 0)
        content = getattr(channel, "content", None)
        kept_bytes += getattr(content, "received", 0)
        # The links of 1.0, those of consumers included, and messages that have come in part.
        kept_bytes += LINK_BYTES * len(getattr(channel, "links", ()))
        kept_bytes += getattr(channel, "unfinished", 0)
        # Deliveries of 1.0 that wait for the window of their peer.
        kept_bytes += sum([each.left for each in getattr(channel, "backlog", None) or ()])
    assemblies = getattr(getattr(connection, "intake", None), "assemblies", {})
    kept_bytes += sum([each.counted for each in assemblies.values()])
    return kept_bytes


class KeptChecks:
    """Closes connections that make the broker keep too much.

    There may be hundreds of thousands of channels, so a round over all of them takes several ticks.

    Args:
        registry: the registry of the connections.
    """

    def __init__(self, registry: ConnectionRegistry) -> None:
        self._registry = registry
        self._round: Iterator[list[BaseConnection]] = iter(())
        self._due = 0.0

    def look(self, now: float) -> None:
        """Check some connections.

        Args:
            now: the time in seconds.
        """
        piece = next(self._round, None)
        if piece is None and now >= self._due:
            self._due = now + KEPT_CHECK_SECONDS
            self._round = self._registry.in_pieces(CHANNELS_PER_TICK, only_active=True)
            piece = next(self._round, None)
        guard = self._registry.turns.failures.guard
        for connection in piece or ():
            if connection.state is ConnectionState.OPEN:
                guard(_check, connection, now)
                if connection.rests() and not _may_keep_more(connection):
                    connection.active = False
                    self._registry.active.discard(connection)


def _may_keep_more(connection: BaseConnection) -> bool:
    """Return whether what a connection keeps may change, or be overdue, though it rests."""
    return bool(holders(connection)) or any(
        getattr(channel, "transaction", None) is not None
        for channel in connection.channels.values()
    )


def _check(connection: BaseConnection, now: float) -> None:
    """Close an open connection that makes the broker keep too much."""
    # A message that is being received or sent may be as large as a message may be.
    kept_max = CONNECTION_KEPT_BYTES + 2 * connection.message_max
    # `kept` is not less than its consumers take, of which there may be very many.
    if connection.kept + _others_of(connection) <= kept_max:
        return
    byte_count = kept_bytes(connection)
    if byte_count > kept_max:
        text = _text("it makes the broker keep", byte_count)
        connection.log("error", f"{connection.peer}: {text}")
        connection.force_close(text, now)


def _consumers_of(connection: Any) -> int:
    return sum(
        [
            consumer.kept
            for channel in connection.channels.values()
            for consumer in (channel.consumers or {}).values()
        ]
    )


def _text(what: str, byte_count: int) -> str:
    return (
        f"a connection may use {CONNECTION_KEPT_BYTES} bytes of memory for consumers, transactions "
        f"and deliveries without acknowledgement, and {what} {byte_count}"
    )
