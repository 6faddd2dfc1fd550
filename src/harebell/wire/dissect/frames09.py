"""Decode frames of 0-8, 0-9, 0-9-1 and transitional 0-10, one direction of a connection.

type(1) channel(2) size(4) payload(size) end(1) = 0xCE          AMQP 0-9-1 4.2.3
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from harebell.base.errors import ProtocolError
from harebell.wire.dissect import event as kinds
from harebell.wire.dissect.direction import Direction
from harebell.wire.dissect.event import Event, masked
from harebell.wire.limits import DUMP_FRAME_BYTES
from harebell.wire.v09.content import decode_properties
from harebell.wire.v09.property_list import FILE, STREAM, TUNNEL
from harebell.wire.v09.spec import ProtocolSpec

SPECS = {
    "0-8": ("harebell.wire.v09.amqp_0_8", "AMQP_0_8"),
    "0-9": ("harebell.wire.v09.amqp_0_9", "AMQP_0_9"),
    "0-9-1": ("harebell.wire.v09.amqp_0_9_1", "AMQP_0_9_1"),
    "0-10t": ("harebell.wire.v09.amqp_0_10_transitional", "AMQP_0_10_TRANSITIONAL"),
}
"""The table of each version; loaded on demand."""

_METHOD, _HEADER, _BODY, _HEARTBEAT = 1, 2, 3, 8
_HEAD = 7
_END = 0xCE
_CONTENT_FIXED = 12
_BASIC = 60
_OPEN = "connection.open-ok"


@cache
def spec_of(version: str) -> ProtocolSpec:
    """Return the methods of a version."""
    module, name = SPECS[version]
    spec: ProtocolSpec = getattr(import_module(module), name)
    return spec


class Frames09(Direction):
    """One direction.

    Args:
        version: a key of `SPECS`.
        from_client: the direction.
    """

    def __init__(self, version: str, from_client: bool) -> None:
        super().__init__(version, from_client)
        self._spec = spec_of(version)
        self._readers: dict[int, Callable[[int, bytes, bytes], Event]] = {
            _METHOD: self._method,
            _HEADER: self._header,
            _BODY: self._body,
            _HEARTBEAT: self._heartbeat,
        }

    def _next(self) -> list[Event] | None:
        data = self._data
        if data[0] not in self._readers:
            return [self._lose(f"no frame begins with octet {data[0]:#04x}")]
        if len(data) < _HEAD:
            return None
        kind, channel = data[0], int.from_bytes(data[1:3])
        size = int.from_bytes(data[3:_HEAD])
        if size > DUMP_FRAME_BYTES:
            return [self._large(kind, channel, size)]
        end = _HEAD + size
        # Not `<`: the frame-end octet has to be there too (4.2.3).
        if len(data) <= end:
            return None
        frame = bytes(data[: end + 1])
        if frame[end] != _END:
            text = f"a frame of {size} octets ends with {frame[end]:#04x}, not 0xce"
            return [self._lose(text)]
        del data[: end + 1]
        return [self._readers[kind](channel, frame[_HEAD:end], frame)]

    def _large(self, kind: int, channel: int, size: int) -> Event:
        """Skip a body that is too large to buffer."""
        # Such a method or header is no AMQP in practice: more likely frame boundaries are lost.
        if kind != _BODY:
            return self._lose(f"a frame of type {kind} announces {size} octets")
        return self._skipped(_HEAD + size + 1, channel, f"{size} octets")

    # --- types of frames ------------------------------------------------------------------------

    def _method(self, channel: int, payload: bytes, frame: bytes) -> Event:
        try:
            method = self._spec.decode(payload)
        except ProtocolError as error:
            # Channel 0 may contain credentials.
            raw = frame if channel else b""
            return self._made(kinds.UNREADABLE, channel, frame, text=error.text, raw=raw)
        spec = self._spec.spec_of(method)
        name = spec.name
        fields = {
            field.name: getattr(method, field.attribute) for field in spec.fields if field.attribute
        }
        fields, raw = masked(name, fields, frame)
        return self._made(kinds.METHOD, channel, frame, name=name, fields=fields, raw=raw)

    def _header(self, channel: int, payload: bytes, frame: bytes) -> Event:
        if len(payload) < _CONTENT_FIXED:
            text = "a content header is cut off"
            return self._made(kinds.UNREADABLE, channel, frame, text=text, raw=frame)
        class_id = int.from_bytes(payload[:2])
        fields: dict[str, Any] = {"body-size": int.from_bytes(payload[4:_CONTENT_FIXED])}
        text = ""
        try:
            fields |= _properties(class_id, payload[_CONTENT_FIXED:])
        except ProtocolError as error:
            text = error.text
        name = _CLASSES.get(class_id, str(class_id))
        return self._made(
            kinds.CONTENT, channel, frame, name=name, fields=fields, text=text, raw=frame
        )

    def _body(self, channel: int, payload: bytes, frame: bytes) -> Event:
        text = f"{len(payload)} octets"
        return self._made(kinds.BODY, channel, frame, text=text, body=payload, raw=frame)

    def _heartbeat(self, channel: int, payload: bytes, frame: bytes) -> Event:
        return self._made(kinds.HEARTBEAT, channel, frame, raw=frame)


_CLASSES = {_BASIC: "basic", 70: "file", 80: "stream", 110: "tunnel", 120: "test"}
_LISTS = {70: FILE, 80: STREAM, 110: TUNNEL}


def _properties(class_id: int, raw: bytes) -> dict[str, Any]:
    """Return the properties of a content header, by their names in the specification.

    Raises:
        ProtocolError: the list is malformed.
    """
    if class_id == _BASIC:
        values = msgspec.structs.asdict(decode_properties(raw))
    elif class_id in _LISTS:
        values = msgspec.structs.asdict(_LISTS[class_id].decode(raw))
    else:
        return {}
    return {name.replace("_", "-"): value for name, value in values.items() if value is not None}
