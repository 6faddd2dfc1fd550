"""The life of a connection and of a channel, as tables (AMQP 0-10 9.1 and 9.2).

Each says which controls may arrive at a server in each state, and which state follows. A state says
what the server waits for. The following state is the usual one: a server that needs another answer
of the SASL mechanism goes to `SECURING` instead, and one that sends a close to `CLOSING` from
wherever it is. What the connection's table does not list is a framing error; what a channel's does
not list is answered with session.detached and the code not-attached, or passed over while it ends.
"""

from __future__ import annotations

import enum

from harebell.wire.v09.states import ConnectionState


class ChannelState(enum.Enum):
    """Where a channel is: whether a session is on it.

    `ENDING` is after an exception: until the peer knows, what it sends is not for a session.
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
"""What a server may be sent of class connection."""

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
"""What a server may be sent of class session, on any channel of an open connection."""
