"""The life of a channel of AMQP 0-9-1 as a table (AMQP 0-9-1 2.2.5, 1.5.2.5 and 4.2.6).

Every version of the family uses it; the transitional 0-10 has its sessions above it.
"""

from __future__ import annotations

import enum

from harebell.front.common.state_table import IGNORED, Fault, Ignored
from harebell.wire.v09.frames import BODY, HEADER


class ChannelState(enum.Enum):
    """Where a channel is; `CLOSING` follows the broker's channel.close."""

    CLOSED = "closed"
    OPEN = "open"
    CONTENT_HEADER = "content-header"
    CONTENT_BODY = "content-body"
    CLOSING = "closing"

    # By identity: the hash of Enum is a Python function, which each frame would call.
    __hash__ = object.__hash__


class ChannelEvent(enum.Enum):
    """What arrives on a channel of an open connection."""

    OPEN = "channel.open"
    CLOSE = "channel.close"
    CLOSE_OK = "channel.close-ok"
    METHOD = "another method that is served"
    CONTENT_METHOD = "method with a content"
    UNSERVED = "method that is not served"
    HEADER = "content header"
    BODY = "content body"

    __hash__ = object.__hash__


_S = ChannelState
_E = ChannelEvent

ChannelRow = dict[ChannelEvent, ChannelState | Fault | Ignored]

CONTENT_EVENTS = {HEADER: _E.HEADER, BODY: _E.BODY}
"""Type of a frame that is no method -> event."""

_UNIMPLEMENTED = Fault(503, "unimplemented method")
_NO_METHOD = Fault(505, "expected method frame, got non method frame instead")

CHANNEL: dict[ChannelState, ChannelRow] = {
    _S.CLOSED: {
        **dict.fromkeys(_E, Fault(504, "expected 'channel.open'")),
        _E.OPEN: _S.OPEN,
    },
    _S.OPEN: {
        _E.OPEN: Fault(504, "second 'channel.open' seen"),
        _E.CLOSE: _S.CLOSED,
        _E.CLOSE_OK: _UNIMPLEMENTED,
        _E.METHOD: _S.OPEN,
        _E.CONTENT_METHOD: _S.CONTENT_HEADER,
        _E.UNSERVED: _UNIMPLEMENTED,
        _E.HEADER: _NO_METHOD,
        _E.BODY: _NO_METHOD,
    },
    # The error names the method of the content, not the one that came instead.
    _S.CONTENT_HEADER: {
        **dict.fromkeys(
            _E,
            Fault(
                505,
                "expected content header for class {class_id}, got non content header frame "
                "instead",
            ),
        ),
        _E.HEADER: _S.CONTENT_BODY,
    },
    # The last body frame leads back to `OPEN`, and so does the header of an empty content.
    _S.CONTENT_BODY: {
        **dict.fromkeys(
            _E, Fault(505, "expected content body, got non content body frame instead")
        ),
        _E.BODY: _S.CONTENT_BODY,
    },
    # Frames from before the peer got the close are not even decoded (1.5.2.5).
    _S.CLOSING: {
        **dict.fromkeys(_E, IGNORED),
        _E.CLOSE: _S.CLOSING,
        _E.CLOSE_OK: _S.CLOSED,
    },
}
