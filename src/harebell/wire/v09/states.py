"""The life of a connection and of a channel, as tables (AMQP 0-9-1 2.2.4 and 2.2.5).

Each table says for a state which methods may arrive and which state follows. Whatever is not in the table is an
error: 504 on an open connection. After our own close only close and close-ok count; the rest is dropped.
"""

from __future__ import annotations

import enum

from harebell.base.errors import ProtocolError
from harebell.wire.v09.spec import MethodSpec


class ConnectionState(enum.Enum):
    """Where a connection is between protocol header and end, seen from one side."""

    HEADER = "header"
    STARTING = "starting"
    SECURING = "securing"
    TUNING = "tuning"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class ChannelState(enum.Enum):
    """Where a channel is."""

    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"


_S = ConnectionState
_C = ChannelState

CONNECTION_SERVER: dict[ConnectionState, dict[str, ConnectionState]] = {
    _S.HEADER: {},
    _S.STARTING: {"connection.start-ok": _S.TUNING, "connection.close": _S.CLOSED},
    _S.SECURING: {"connection.secure-ok": _S.TUNING, "connection.close": _S.CLOSED},
    _S.TUNING: {"connection.tune-ok": _S.OPENING, "connection.close": _S.CLOSED},
    _S.OPENING: {"connection.open": _S.OPEN, "connection.close": _S.CLOSED},
    _S.OPEN: {"connection.close": _S.CLOSED, "connection.update-secret": _S.OPEN},
    _S.CLOSING: {"connection.close": _S.CLOSING, "connection.close-ok": _S.CLOSED},
    _S.CLOSED: {},
}
"""What a server may be sent on channel 0."""

CONNECTION_CLIENT: dict[ConnectionState, dict[str, ConnectionState]] = {
    _S.HEADER: {"connection.start": _S.STARTING},
    _S.STARTING: {
        "connection.secure": _S.SECURING,
        "connection.tune": _S.TUNING,
        "connection.close": _S.CLOSED,
    },
    _S.SECURING: {
        "connection.secure": _S.SECURING,
        "connection.tune": _S.TUNING,
        "connection.close": _S.CLOSED,
    },
    _S.TUNING: {"connection.open-ok": _S.OPEN, "connection.close": _S.CLOSED},
    _S.OPENING: {"connection.open-ok": _S.OPEN, "connection.close": _S.CLOSED},
    _S.OPEN: {
        "connection.close": _S.CLOSED,
        "connection.blocked": _S.OPEN,
        "connection.unblocked": _S.OPEN,
        "connection.update-secret-ok": _S.OPEN,
    },
    _S.CLOSING: {"connection.close": _S.CLOSING, "connection.close-ok": _S.CLOSED},
    _S.CLOSED: {},
}
"""What a client may be sent on channel 0."""

CHANNEL_SERVER: dict[ChannelState, dict[str, ChannelState]] = {
    _C.CLOSED: {"channel.open": _C.OPEN},
    _C.OPEN: {"channel.close": _C.CLOSED, "*": _C.OPEN},
    _C.CLOSING: {
        "channel.close": _C.CLOSING,
        "channel.close-ok": _C.CLOSED,
        "*": _C.CLOSING,
    },
}
"""What a server may be sent on another channel; `*` stands for every other method of a client."""


def check_connection_method(state: ConnectionState, spec: MethodSpec) -> ConnectionState:
    """The state that follows when a server receives a method on channel 0.

    Raises:
        ProtocolError: 504, the method has no place in this state.
    """
    follows = CONNECTION_SERVER[state].get(spec.name)
    if follows is None:
        raise ProtocolError(
            504,
            f"unexpected method in connection state {shown(state)}",
            spec.class_id,
            spec.method_id,
        )
    return follows


def shown(state: ConnectionState) -> str:
    """A state in the words of RabbitMQ's error texts."""
    return "running" if state is ConnectionState.OPEN else state.value
