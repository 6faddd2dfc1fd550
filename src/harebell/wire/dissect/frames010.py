"""Decode frames of final 0-10, one direction of a connection.

    flags(1) type(1) size(2) 0(1) track(1) channel(2) 0(4) payload          AMQP 0-10 4.2

A segment of several frames is decoded with the last of them; the others are only named.
"""

from __future__ import annotations

from typing import Any

from harebell.base.errors import ProtocolError
from harebell.kernels.segments import BODY, COMMAND, CONTROL, FIRST_FRAME, HEADER, LAST_FRAME
from harebell.wire.dissect import event as kinds
from harebell.wire.dissect.direction import Direction
from harebell.wire.dissect.event import Event, masked
from harebell.wire.limits import DUMP_FRAME_BYTES
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Composite

VERSION = "0-10"

_HEAD = 12
_KINDS = {
    CONTROL: kinds.CONTROL,
    COMMAND: kinds.COMMAND,
    HEADER: kinds.CONTENT,
    BODY: kinds.BODY,
}


class Frames010(Direction):
    """One direction.

    Args:
        from_client: the direction.
    """

    def __init__(self, from_client: bool) -> None:
        super().__init__(VERSION, from_client)
        self._segments: dict[tuple[int, int], bytearray] = {}

    def _next(self) -> list[Event] | None:
        data = self._data
        if len(data) < _HEAD:
            return None
        flags, kind, size = data[0], data[1], int.from_bytes(data[2:4])
        channel = int.from_bytes(data[6:8])
        # The upper half of the flags is the frame version, which is 0 (AMQP 0-10 4.2).
        if flags & 0xF0 or kind not in _KINDS or size < _HEAD:
            return [self._lose(f"no frame begins with {bytes(data[:_HEAD]).hex()}")]
        if len(data) < size:
            return None
        frame = bytes(data[:size])
        del data[:size]
        return [self._frame(flags, kind, channel, frame)]

    def _frame(self, flags: int, kind: int, channel: int, frame: bytes) -> Event:
        payload = frame[_HEAD:]
        if kind == BODY:
            text = f"{len(payload)} octets"
            return self._made(kinds.BODY, channel, frame, text=text, body=payload, raw=frame)
        key = (channel, kind)
        if not flags & FIRST_FRAME or not flags & LAST_FRAME:
            gathered = self._segments.setdefault(key, bytearray())
            # The rest of an earlier segment that a peer has broken off.
            if flags & FIRST_FRAME:
                gathered.clear()
            gathered += payload
            if len(gathered) > DUMP_FRAME_BYTES:
                return self._lose(f"a segment has more than {DUMP_FRAME_BYTES} octets")
            if not flags & LAST_FRAME:
                # A fragment may contain a part of a secret, which cannot be located.
                text = "a part of a segment"
                return self._made(_KINDS[kind], channel, frame, name=_KINDS[kind], text=text)
            payload = bytes(self._segments.pop(key))
            frame = frame[:_HEAD] + payload
        try:
            return self._segment(kind, channel, payload, frame)
        except ProtocolError as error:
            # Controls on channel 0 may contain credentials.
            raw = frame if channel else b""
            return self._made(kinds.UNREADABLE, channel, frame, text=error.text, raw=raw)

    def _segment(self, kind: int, channel: int, payload: bytes, frame: bytes) -> Event:
        """Decode a whole control, command or header.

        Raises:
            ProtocolError: it is malformed.
        """
        if kind == HEADER:
            fields: dict[str, Any] = {}
            for struct in AMQP_0_10.decode_header(payload):
                if isinstance(struct, Composite):
                    fields[_short(struct)] = _fields(struct)
                else:
                    fields[f"struct-{struct.data[:2].hex()}"] = struct.data[2:]
            return self._made(
                kinds.CONTENT, channel, frame, name="message", fields=fields, raw=frame
            )
        if kind == CONTROL:
            value: Composite = AMQP_0_10.decode_control(payload)
            fields = _fields(value)
        else:
            sync, value = AMQP_0_10.decode_command(payload)
            fields = {**_fields(value), "sync": sync}
        name = AMQP_0_10.spec_of(value).name
        fields, raw = masked(name, fields, frame)
        return self._made(_KINDS[kind], channel, frame, name=name, fields=fields, raw=raw)


def _short(struct: Composite) -> str:
    return AMQP_0_10.spec_of(struct).name.partition(".")[2]


def _fields(value: Composite) -> dict[str, Any]:
    """Return the present fields, by their names in the specification."""
    fields: dict[str, Any] = {}
    for field in AMQP_0_10.spec_of(value).fields:
        item = getattr(value, field.attribute)
        if item is not None:
            fields[field.name] = _plain(item)
    return fields


def _plain(item: Any) -> Any:
    """Convert structs in a value to plain values."""
    if isinstance(item, Composite):
        return _fields(item)
    if isinstance(item, list | tuple):
        return [_plain(each) for each in item]
    return item
