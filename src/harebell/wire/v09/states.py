"""The life of a connection and of a channel, as tables (AMQP 0-9-1 2.2.4 and 2.2.5).

Each table says, for one side and for each of its states, which methods may arrive from the peer and
which state follows. What a table does not list is an error on a running connection. After our own
close only close and close-ok count, and everything else is dropped (`drops`).

A state says what this side waits for: a server in `TUNING` has sent tune and waits for tune-ok.
The following state is the usual one; a server that answers start-ok with another challenge goes to
`SECURING` instead, and a side that sends close goes to `CLOSING` from wherever it is.
"""

from __future__ import annotations

import enum

from harebell.base.errors import ProtocolError
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
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
    """Where a channel is, seen from one side; `CONTENT` is within a message that arrives."""

    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    CONTENT = "content"
    CLOSING = "closing"


_S = ConnectionState
_C = ChannelState

ConnectionTable = dict[ConnectionState, dict[str, ConnectionState]]
ChannelTable = dict[ChannelState, dict[str, ChannelState]]

CONNECTION_SERVER: ConnectionTable = {
    _S.HEADER: {},
    _S.STARTING: {"connection.start-ok": _S.TUNING, "connection.close": _S.CLOSED},
    _S.SECURING: {"connection.secure-ok": _S.TUNING, "connection.close": _S.CLOSED},
    _S.TUNING: {"connection.tune-ok": _S.OPENING, "connection.close": _S.CLOSED},
    _S.OPENING: {"connection.open": _S.OPEN, "connection.close": _S.CLOSED},
    _S.OPEN: {"connection.update-secret": _S.OPEN, "connection.close": _S.CLOSED},
    _S.CLOSING: {"connection.close": _S.CLOSING, "connection.close-ok": _S.CLOSED},
    _S.CLOSED: {},
}
"""What a server may be sent on channel 0."""

CONNECTION_CLIENT: ConnectionTable = {
    _S.HEADER: {"connection.start": _S.STARTING},
    _S.STARTING: {
        "connection.secure": _S.SECURING,
        "connection.tune": _S.OPENING,
        "connection.close": _S.CLOSED,
    },
    _S.SECURING: {
        "connection.secure": _S.SECURING,
        "connection.tune": _S.OPENING,
        "connection.close": _S.CLOSED,
    },
    # A client sends tune-ok and open together, so it never waits in between.
    _S.TUNING: {},
    _S.OPENING: {"connection.open-ok": _S.OPEN, "connection.close": _S.CLOSED},
    _S.OPEN: {
        "connection.blocked": _S.OPEN,
        "connection.unblocked": _S.OPEN,
        "connection.update-secret-ok": _S.OPEN,
        "connection.close": _S.CLOSED,
    },
    _S.CLOSING: {"connection.close": _S.CLOSING, "connection.close-ok": _S.CLOSED},
    _S.CLOSED: {},
}
"""What a client may be sent on channel 0."""

_NOT_WHILE_OPEN = ("channel.open", "channel.open-ok", "channel.close")


def _while_open(from_client: bool) -> dict[str, ChannelState]:
    """What a peer may send on an open channel: the version's table says who sends what."""
    follows = {"channel.close": _C.CLOSED}
    for spec in AMQP_0_9_1.methods:
        sends = spec.from_client if from_client else spec.from_server
        if sends and not spec.name.startswith("connection.") and spec.name not in _NOT_WHILE_OPEN:
            follows[spec.name] = _C.CONTENT if spec.has_content else _C.OPEN
    return follows


CHANNEL_SERVER: ChannelTable = {
    _C.CLOSED: {"channel.open": _C.OPEN},
    _C.OPENING: {},
    _C.OPEN: _while_open(from_client=True),
    _C.CONTENT: {},
    _C.CLOSING: {"channel.close": _C.CLOSING, "channel.close-ok": _C.CLOSED},
}
"""What a server may be sent on any other channel."""

CHANNEL_CLIENT: ChannelTable = {
    _C.CLOSED: {},
    _C.OPENING: {"channel.open-ok": _C.OPEN, "channel.close": _C.CLOSED},
    _C.OPEN: _while_open(from_client=False),
    _C.CONTENT: {},
    _C.CLOSING: {"channel.close": _C.CLOSING, "channel.close-ok": _C.CLOSED},
}
"""What a client may be sent on any other channel."""


def check_connection_method(
    state: ConnectionState, spec: MethodSpec, table: ConnectionTable = CONNECTION_SERVER
) -> ConnectionState:
    """The state that follows when a method arrives on channel 0.

    Raises:
        ProtocolError: 504, the method has no place in this state.
    """
    follows = table[state].get(spec.name)
    if follows is None:
        text = f"unexpected method in connection state {shown(state)}"
        raise ProtocolError(504, text, spec.class_id, spec.method_id)
    return follows


def check_channel_method(
    state: ChannelState, spec: MethodSpec, table: ChannelTable = CHANNEL_SERVER
) -> ChannelState:
    """The state that follows when a method arrives on a channel other than 0.

    Raises:
        ProtocolError: 504 when the channel is not open or would be opened twice, 505 within a
            content, 503 for a method that this peer never sends.
    """
    follows = table[state].get(spec.name)
    if follows is not None:
        return follows
    code, text = 504, f"unexpected method in channel state {state.value}"
    if state is _C.CONTENT:
        code, text = 505, f"expected content frames, got {spec.name} instead"
    elif state is _C.OPEN:
        code, text = 503, "unimplemented method"
        if spec.name == "channel.open":
            code, text = 504, "second 'channel.open' seen"
    elif state is _C.CLOSED:
        code, text = 504, "expected 'channel.open'"
    raise ProtocolError(code, text, spec.class_id, spec.method_id)


def drops(state: ConnectionState | ChannelState, spec: MethodSpec) -> bool:
    """Whether a method is thrown away unread, because our own close is under way or done.

    AMQP 0-9-1 has only close and close-ok count after a close (1.4.2.9, 1.5.2.5).
    """
    if state is _S.CLOSING or state is _C.CLOSING:
        return spec.name.partition(".")[2] not in ("close", "close-ok")
    return state is _S.CLOSED


def shown(state: ConnectionState) -> str:
    """A state in the words of RabbitMQ's error texts."""
    return "running" if state is ConnectionState.OPEN else state.value
