"""The life of a connection of AMQP 0-10 as a table (AMQP 0-10 9.1).

The table lists the controls of class connection that a server may receive in each state, and the
next state; any other is a framing error. A state is what the server waits for. The next state is
the usual one: a server that sends another SASL challenge enters `SECURING` instead, and one that
sends a close enters `CLOSING` from any state.
"""

from __future__ import annotations

from harebell.wire.v09.states import ConnectionState

_S = ConnectionState

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
