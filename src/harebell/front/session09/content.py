"""A content that arrives as single frames: method, header, body, body, ... (AMQP 0-9-1 4.2.6).

Most contents never come here; the scanner hands them over whole.
"""

from __future__ import annotations

from harebell.base.gauge import Gauge
from harebell.base.limits import BODY_HARD_MAX_BYTES
from harebell.base.message import Properties
from harebell.front.session09.replies import hard
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.frames import BODY, HEADER
from harebell.wire.v09.methods import BasicPublish

_CLASS = 60
_FIXED = 12
_TINY = 4096
"""Octets of a body frame below which it is joined to its neighbours at once."""


class Content:
    """What has arrived of one published message.

    Args:
        method: the basic.publish that began it.
        gauge: counts what is kept of a body that is not whole yet.

    Attributes:
        size: octets of body that the header announced; -1 until it came.
        properties: from the header.
    """

    __slots__ = ("_counted", "_gauge", "_parts", "_received", "method", "properties", "size")

    def __init__(self, method: BasicPublish, gauge: Gauge) -> None:
        self.method = method
        self._gauge = gauge
        self._counted = 0
        self.size = -1
        self.properties = Properties(b"\0\0")
        self._parts: list[bytes | bytearray] = []
        self._received = 0

    def frame(self, kind: int, payload: bytes) -> bool:
        """Take the next frame; True when the content is whole.

        Raises:
            ProtocolError: 505 for a frame out of order, 501 for more body than announced.
        """
        if self.size < 0:
            self._header(kind, payload)
        else:
            self._body(kind, payload)
        return self._received == self.size

    def release(self) -> None:
        """It is whole, or will never be: count its octets here no longer."""
        self._gauge.take(self._counted)
        self._gauge.unread -= self._counted
        self._counted = 0

    def body(self) -> bytes:
        """The whole body."""
        return bytes(self._parts[0]) if len(self._parts) == 1 else b"".join(self._parts)

    def _header(self, kind: int, payload: bytes) -> None:
        if kind != HEADER:
            raise hard(
                505,
                f"expected content header for class {_CLASS}, got non content header frame instead",
                _CLASS,
                40,
            )
        if len(payload) < _FIXED:
            raise hard(505, "content header is too short", _CLASS, 40)
        class_id = int.from_bytes(payload[:2])
        weight = int.from_bytes(payload[2:4])
        if class_id != _CLASS or weight != 0:
            wrong = f"class {class_id} with weight {weight}" if weight else f"class {class_id}"
            raise hard(
                505,
                f"expected content header for class {_CLASS}, got one for {wrong} instead",
                _CLASS,
                40,
            )
        size = int.from_bytes(payload[4:_FIXED])
        if size > BODY_HARD_MAX_BYTES:
            raise hard(
                501,
                f"content body size {size} exceeds maximum allowed size {BODY_HARD_MAX_BYTES}",
                _CLASS,
                40,
            )
        self.properties = parse_properties(payload[_FIXED:])
        self.size = size

    def _body(self, kind: int, payload: bytes) -> None:
        if kind != BODY:
            raise hard(
                505,
                "expected content body, got non content body frame instead",
                _CLASS,
                40,
            )
        self._received += len(payload)
        if self._received > self.size:
            raise hard(501, "content body frame exceeds remaining content size", _CLASS, 40)
        self._counted += len(payload)
        self._gauge.add(len(payload))
        self._gauge.unread += len(payload)
        self._keep(payload)

    def _keep(self, payload: bytes) -> None:
        """Keep a piece of the body; a flood of tiny ones must not cost more than their octets."""
        if len(payload) >= _TINY:
            self._parts.append(payload)
        elif payload:
            last = self._parts[-1] if self._parts else None
            if isinstance(last, bytearray):
                last += payload
            else:
                self._parts.append(bytearray(payload))
