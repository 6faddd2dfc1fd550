"""The life of a connection of AMQP 1.0 as a table (AMQP 1.0 2.2 to 2.4 and 5.3).

A state says what the broker waits for: in `STARTING` it has sent the mechanisms and waits for the
client's choice, in `TUNING` the login has succeeded and it waits for the header of AMQP. A fault
leads to `CLOSING` where the peer may get a close, and to the end otherwise.
"""

from __future__ import annotations

import enum

from msgspec import Struct

from harebell.front.amqp_1_0.errors import FRAMING_ERROR, NOT_ALLOWED, ConnectionFault
from harebell.front.common.state_table import IGNORED, Ignored
from harebell.wire.v09.states import ConnectionState


class ConditionFault(Struct, frozen=True):
    """An error that an event is in a state: it closes the connection.

    Args:
        code: the condition.
        text: the description, with the names of values in braces.
    """

    code: str
    text: str

    def error(self, **values: object) -> ConnectionFault:
        """Make the error; `values` fill the text."""
        return ConnectionFault(self.code, self.text.format(**values))


class ConnectionEvent(enum.Enum):
    """What arrives: a protocol header, or a frame by its performative."""

    SASL_INIT = "sasl-init"
    SASL_RESPONSE = "sasl-response"
    HEADER = "header of AMQP"
    OPEN = "open"
    SESSION_FRAME = "frame of a session"
    CLOSE = "close"
    EMPTY = "empty frame"

    # By identity: the hash of Enum is a Python function, which each frame would call.
    __hash__ = object.__hash__


_S = ConnectionState
_E = ConnectionEvent

ConnectionRow = dict[ConnectionEvent, ConnectionState | ConditionFault | Ignored]
_SECOND_OPEN = ConditionFault(NOT_ALLOWED, "open on a connection that is open")


def _row(state: ConnectionState, legal: ConnectionRow) -> ConnectionRow:
    """Return the row of a state before the end: the legal events, and else faults."""
    fault = ConditionFault(FRAMING_ERROR, f"{{event}} while the connection is {state.value}")
    return dict.fromkeys(_E, fault) | legal


def _end_row() -> ConnectionRow:
    """Return the row of a state after a close: everything up to the peer's close is dropped."""
    row: ConnectionRow = dict.fromkeys(_E, IGNORED)
    return row | {_E.CLOSE: _S.CLOSED}


CONNECTION: dict[ConnectionState, ConnectionRow] = {
    _S.STARTING: _row(_S.STARTING, {_E.SASL_INIT: _S.TUNING}),
    _S.SECURING: _row(_S.SECURING, {_E.SASL_RESPONSE: _S.TUNING}),
    _S.TUNING: _row(_S.TUNING, {_E.HEADER: _S.OPENING}),
    # A keep-alive may come as soon as frames may.
    _S.OPENING: _row(_S.OPENING, {_E.OPEN: _S.OPEN, _E.CLOSE: _S.CLOSED, _E.EMPTY: _S.OPENING}),
    _S.OPEN: _row(
        _S.OPEN,
        {
            _E.OPEN: _SECOND_OPEN,
            _E.SESSION_FRAME: _S.OPEN,
            _E.CLOSE: _S.CLOSED,
            _E.EMPTY: _S.OPEN,
        },
    ),
    _S.CLOSING: _end_row(),
    _S.CLOSED: _end_row(),
}
