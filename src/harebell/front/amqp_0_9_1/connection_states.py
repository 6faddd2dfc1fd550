"""The life of a connection of the 0-9-1 family as a table (AMQP 0-9-1 2.2.4 and 1.4.2.9).

A state says what the broker waits for: in `TUNING` it has sent tune and waits for tune-ok. A fault
leads to `CLOSING` where the peer may get a connection.close, and to the end otherwise. There is no
row for two states: `harebell.front.arrival` takes the protocol header, and no login of this family
needs connection.secure.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

from harebell.front.common.state_table import IGNORED, Fault, Ignored
from harebell.wire.v09.states import ConnectionState


class ConnectionEvent(enum.Enum):
    """What arrives: a frame, or a method on channel 0."""

    START_OK = "connection.start-ok"
    TUNE_OK = "connection.tune-ok"
    OPEN = "connection.open"
    UPDATE_SECRET = "connection.update-secret"  # noqa: S105 - a method, no password
    CLOSE = "connection.close"
    CLOSE_OK = "connection.close-ok"
    OTHER_METHOD = "another method on channel 0"
    CONTENT = "content frame on channel 0"
    CHANNEL_FRAME = "frame on another channel"
    HEARTBEAT = "heartbeat"
    CHANNEL_HEARTBEAT = "heartbeat on another channel"
    LONG_HEARTBEAT = "heartbeat with a payload"
    UNKNOWN_FRAME = "frame of an unknown type"

    # By identity: the hash of Enum is a Python function, which each frame would call.
    __hash__ = object.__hash__


_S = ConnectionState
_E = ConnectionEvent

ConnectionRow = dict[ConnectionEvent, ConnectionState | Fault | Ignored]
ConnectionTable = dict[ConnectionState, ConnectionRow]

METHOD_EVENTS = {event.value: event for event in _E if event.value.startswith("connection.")}
"""Name of a method -> event; every other method is `OTHER_METHOD`."""

_METHODS = (*METHOD_EVENTS.values(), _E.OTHER_METHOD)
_FAULTS: ConnectionRow = {
    _E.CONTENT: Fault(505, "content frame on channel 0"),
    _E.CHANNEL_FRAME: Fault(504, "frame on channel {channel} before connection.open"),
    _E.CHANNEL_HEARTBEAT: Fault(505, "heartbeat frame on channel {channel}"),
    _E.LONG_HEARTBEAT: Fault(501, "type 8, all octets = <<>>: unknown_frame"),
}
# Frame boundaries are lost: this is an error even where everything else is ignored.
_UNKNOWN = Fault(501, "type {kind}, all octets = <<>>: unknown_frame")


def _unexpected(state: ConnectionState) -> Fault:
    # RabbitMQ calls an open connection "running" in this text.
    shown = "running" if state is _S.OPEN else state.value
    return Fault(504, f"unexpected method in connection state {shown}")


def _row(state: ConnectionState, legal: ConnectionRow) -> ConnectionRow:
    """Return the row of a state before the end: heartbeats and the legal events; else faults."""
    faults = _FAULTS | dict.fromkeys(_METHODS, _unexpected(state))
    row = faults | {_E.HEARTBEAT: state, _E.UNKNOWN_FRAME: _UNKNOWN} | legal
    return {event: row[event] for event in _E}


def _end_row(state: ConnectionState) -> ConnectionRow:
    """Return the row of a state after a close: only the close handshake counts (1.4.2.9).

    Several threads of a client may close its connection: each waits for a close-ok.
    """
    legal: ConnectionRow = {_E.CLOSE: state, _E.CLOSE_OK: _S.CLOSED, _E.UNKNOWN_FRAME: _UNKNOWN}
    return {event: legal.get(event, IGNORED) for event in _E}


CONNECTION: ConnectionTable = {
    _S.STARTING: _row(_S.STARTING, {_E.START_OK: _S.TUNING, _E.CLOSE: _S.CLOSED}),
    _S.TUNING: _row(_S.TUNING, {_E.TUNE_OK: _S.OPENING, _E.CLOSE: _S.CLOSED}),
    _S.OPENING: _row(_S.OPENING, {_E.OPEN: _S.OPEN, _E.CLOSE: _S.CLOSED}),
    _S.OPEN: _row(
        _S.OPEN,
        {_E.UPDATE_SECRET: _S.OPEN, _E.CLOSE: _S.CLOSED, _E.CHANNEL_FRAME: _S.OPEN},
    ),
    _S.CLOSING: _end_row(_S.CLOSING),
    _S.CLOSED: _end_row(_S.CLOSED),
}
"""What follows in AMQP 0-9-1; other versions have fewer methods, see `without`."""


def without(table: ConnectionTable, missing: Iterable[ConnectionEvent]) -> ConnectionTable:
    """Return the table of a version that does not have some methods."""
    faults = {state: _unexpected(state) for state in table}
    gone = set(missing)
    return {
        state: {
            event: faults[state] if event in gone and outcome is not IGNORED else outcome
            for event, outcome in row.items()
        }
        for state, row in table.items()
    }
