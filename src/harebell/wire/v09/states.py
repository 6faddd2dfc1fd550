"""The states of a connection, which all versions share.

A state says what the broker waits for: in `TUNING` it has sent tune and waits for tune-ok. What is
legal in a state is in the tables of each version (`harebell.front.amqp_0_9_1.connection_states`,
`harebell.wire.v010.states`).
"""

from __future__ import annotations

import enum


class ConnectionState(enum.Enum):
    """Where a connection is between protocol header and end."""

    HEADER = "header"
    STARTING = "starting"
    SECURING = "securing"
    TUNING = "tuning"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"

    # By identity: the hash of Enum is a Python function, which each frame would call.
    __hash__ = object.__hash__
