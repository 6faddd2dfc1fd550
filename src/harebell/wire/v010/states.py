"""State machines of a connection and of a channel (AMQP 0-10 9.1 and 9.2).

Each table lists the controls that a server may receive in each state, and the next state. A state
is what the server waits for. The next state is the usual one: a server that sends another SASL
challenge enters `SECURING` instead, and one that sends a close enters `CLOSING` from any state. A
control that the connection's table does not list is a framing error; one that the channel's does
not list is answered with session.detached and the code not-attached, or ignored while it ends.
"""

from __future__ import annotations

import enum

from harebell.wire.v09.states import ConnectionState


class ChannelState(enum.Enum):
    """Whether a session is attached to a channel.

    `ENDING` follows an exception: until the peer knows, its commands are ignored.
    """

    DETACHED = "detached"
    ATTACHED = "attached"
    ENDING = "ending"


_S = ConnectionState
_C = ChannelState

_ALWAYS = {"connection.close": _S.CLOSED}

CONNECTION_SERVER: dict[ConnectionState, dict[str, ConnectionState]] = {
    _S.HEADER: {},
    _S.STARTING: {"connection.start-ok": _S.TUNING, **_ALWAYS},
    _S.SECURING: {"connection.secure-ok": _S.TUNING, **_ALWAYS},
    _S.TUNING: {"connection.tune-ok": _S.OPENING, **_ALWAYS},
    _S.OPENING: {"connection.open": _S.OPEN, "connection.heartbeat": _S.OPENING, **_ALWAYS},
    _S.OPEN: {"connection.heartbeat": _S.OPEN, **_ALWAYS},
    _S.CLOSING: {
        "connection.heartbeat": _S.CLOSING,
        "connection.close": _S.CLOSING,
        "connection.close-ok": _S.CLOSED,
    },
    _S.CLOSED: {},
}
"""Controls of class connection that a server may receive."""

_SESSION_CONTROLS = (
    "session.attach",
    "session.attached",
    "session.request-timeout",
    "session.timeout",
    "session.command-point",
    "session.expected",
    "session.confirmed",
    "session.completed",
    "session.known-completed",
    "session.flush",
    "session.gap",
)

CHANNEL_SERVER: dict[ChannelState, dict[str, ChannelState]] = {
    _C.DETACHED: {
        "session.attach": _C.ATTACHED,
        "session.detach": _C.DETACHED,
        "session.detached": _C.DETACHED,
    },
    _C.ATTACHED: {
        **dict.fromkeys(_SESSION_CONTROLS, _C.ATTACHED),
        "session.detach": _C.DETACHED,
        "session.detached": _C.DETACHED,
    },
    _C.ENDING: {
        "session.attach": _C.ATTACHED,
        "session.detach": _C.DETACHED,
        "session.detached": _C.DETACHED,
    },
}
"""Controls of class session that a server may receive, on any channel of an open connection."""
