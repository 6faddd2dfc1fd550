"""Assemble contents that arrive frame by frame: method, header, bodies up to the announced size.

    basic.deliver | get-ok | return     content header             body*          AMQP 0-9-1 4.2.6
    method frame                        class, weight, size        size octets in all
                                        property flags, values

The scanner passes on whole contents where it can; contents that span reads are assembled here.
"""

from __future__ import annotations

from harebell.base.errors import ProtocolError
from harebell.base.limits import BODY_HARD_MAX_BYTES
from harebell.base.message import Properties
from harebell.wire.v09 import methods as m
from harebell.wire.v09.bulk import CLASS
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.methods import BulkBatch

_HEADER_FIXED = 12
_BASIC = b"\x00\x3c\x00\x00"
_BULK = CLASS.to_bytes(2) + b"\x00\x00"


class ContentAssembly:
    """An incomplete content.

    Args:
        method: the method that announced it.

    Attributes:
        missing: bytes of its body that have not come yet.
    """

    __slots__ = ("_chunks", "_kind", "method", "missing", "properties")

    def __init__(self, method: m.Method) -> None:
        self.method = method
        self.properties: Properties | None = None
        self._kind = _BULK if isinstance(method, BulkBatch) else _BASIC
        self.missing = 0
        self._chunks: list[bytes] = []

    def header(self, payload: bytes) -> bool:
        """Add the content header; True if the body is empty.

        Raises:
            ProtocolError: it is malformed, or not expected.
        """
        if self.properties is not None:
            raise ProtocolError(505, "a content has two headers")
        if len(payload) < _HEADER_FIXED or payload[:4] != self._kind:
            raise ProtocolError(505, "a content header of another class came")
        self.missing = int.from_bytes(payload[4:12])
        if self.missing > BODY_HARD_MAX_BYTES:
            raise ProtocolError(501, f"a content of {self.missing} octets was announced")
        self.properties = parse_properties(payload[_HEADER_FIXED:])
        return self.missing == 0

    def body(self, payload: bytes) -> bool:
        """Add a piece of the body; True if it is the last.

        Raises:
            ProtocolError: it precedes the header, or is too long.
        """
        if self.properties is None:
            raise ProtocolError(505, "a content body came before its header")
        self.missing -= len(payload)
        if self.missing < 0:
            raise ProtocolError(501, "a content body is longer than its header said")
        self._chunks.append(payload)
        return self.missing == 0

    def take(self) -> tuple[Properties, bytes]:
        """Return the properties and the body of a complete content."""
        assert self.properties is not None, "a content is complete without a header"
        assert self.missing == 0, "a content is taken before its end"
        body = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        return self.properties, body
