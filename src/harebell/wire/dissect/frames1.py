"""Decode frames of AMQP 1.0, one direction of a connection.

    size(4) doff(1) type(1) channel(2) [extended header] performative [payload]     AMQP 1.0 2.3

A protocol header stands between the frames of SASL and the others. A message is decoded with the
last of its transfers: its sections before the body, then the body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harebell.base.errors import ConditionError
from harebell.base.message import FAMILY_1_0
from harebell.wire import HEADER_BYTES, VERSIONS
from harebell.wire.dissect import event as kinds
from harebell.wire.dissect.direction import Direction
from harebell.wire.dissect.event import Event, masked
from harebell.wire.limits import DUMP_FRAME_BYTES
from harebell.wire.v1.composites import Transfer
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.frames import AMQP, SASL
from harebell.wire.v1.performatives import composite_of, decode_performative
from harebell.wire.v1.sections import HEADER, PROPERTIES, Sections, split
from harebell.wire.v1.values import Described

VERSION = "1-0"

_HEAD = 8
_WORD = 4
_MAGIC = b"AMQP"
_TYPE = 5
_ROLES = {False: "sender", True: "receiver"}


class Frames1(Direction):
    """One direction.

    Args:
        from_client: the direction.
    """

    def __init__(self, from_client: bool) -> None:
        super().__init__(VERSION, from_client)
        self._messages: dict[tuple[int, int], bytearray] = {}

    def _next(self) -> list[Event] | None:
        data = self._data
        if len(data) < _HEAD:
            return None
        if data[:_WORD] == _MAGIC:
            return [self._header()]
        size, body = int.from_bytes(data[:_WORD]), data[_WORD] * _WORD
        kind, channel = data[_TYPE], int.from_bytes(data[6:_HEAD])
        if not _HEAD <= body <= size or kind not in (AMQP, SASL):
            return [self._lose(f"no frame begins with {bytes(data[:_HEAD]).hex()}")]
        if size > DUMP_FRAME_BYTES:
            return [self._skipped(size, channel, "a frame that is too long to be decoded")]
        if len(data) < size:
            return None
        frame = bytes(data[:size])
        del data[:size]
        return self._frame(channel, frame, body)

    def _header(self) -> Event:
        header = bytes(self._data[:HEADER_BYTES])
        del self._data[:HEADER_BYTES]
        text = f"AMQP {' '.join(str(octet) for octet in header[_WORD:])}"
        version = VERSIONS.get(header, "")
        return self._made(kinds.HEADER, None, header, name=version, text=text, raw=header)

    def _frame(self, channel: int, frame: bytes, body: int) -> list[Event]:
        if body == len(frame):
            return [self._made(kinds.HEARTBEAT, channel, frame, raw=frame)]
        try:
            performative, end = decode_performative(frame[body:])
        except ConditionError as error:
            text, raw = error.text, frame
            if frame[_TYPE] == SASL:
                # It contains credentials, which cannot be located.
                text, raw = "a frame of SASL that is malformed", b""
            return [self._made(kinds.UNREADABLE, channel, frame, text=text, raw=raw)]
        name = performative.NAME
        fields, raw = masked(name, _fields(performative), frame)
        made = self._made(kinds.PERFORMATIVE, channel, frame, name=name, fields=fields, raw=raw)
        if not isinstance(performative, Transfer):
            return [made]
        return [made, *self._message(channel, performative, frame[body + end :])]

    def _message(self, channel: int, transfer: Transfer, payload: bytes) -> Iterator[Event]:
        """Return the events of a message when it is complete."""
        key = (channel, transfer.handle)
        gathered = self._messages.get(key)
        if transfer.aborted:
            self._messages.pop(key, None)
            return
        if gathered is None and not transfer.more:
            yield from self._sections(channel, payload)
            return
        if gathered is None:
            gathered = self._messages[key] = bytearray()
        # One that is too long is counted, and not kept.
        if len(gathered) <= DUMP_FRAME_BYTES:
            gathered += payload
        if not transfer.more:
            del self._messages[key]
            if len(gathered) > DUMP_FRAME_BYTES:
                text = f"a message of more than {DUMP_FRAME_BYTES} octets"
                yield self._made(kinds.BODY, channel, payload, text=text)
            else:
                yield from self._sections(channel, bytes(gathered))

    def _sections(self, channel: int, message: bytes) -> Iterator[Event]:
        try:
            raw, body, family = split(message)
            fields = _before_body(Sections(raw))
        except ConditionError as error:
            yield self._made(kinds.UNREADABLE, channel, message, text=error.text)
            return
        if fields:
            yield self._made(kinds.CONTENT, channel, raw, name="message", fields=fields)
        what = "octets" if family == FAMILY_1_0 else "octets of sections"
        yield self._made(kinds.BODY, channel, body, text=f"{len(body)} {what}", body=body)


def _before_body(sections: Sections) -> dict[str, Any]:
    """Return the fields of the sections before a body, by the names of the specification.

    Raises:
        DecodeError: one is malformed.
    """
    fields: dict[str, Any] = {}
    if HEADER in sections:
        fields["header"] = _fields(sections.header())
    fields["message-annotations"] = _plain(sections.message_annotations())
    if PROPERTIES in sections:
        fields["properties"] = _fields(sections.properties())
    fields["application-properties"] = _plain(sections.application_properties())
    return {name: value for name, value in fields.items() if value}


def _fields(value: DescribedList) -> dict[str, Any]:
    """Return the fields that are not at their default, by their names in the specification."""
    fields: dict[str, Any] = {}
    for field in value.SPEC.fields:
        item = getattr(value, field.attribute)
        if item is None or item == () or (item == field.default and not field.mandatory):
            continue
        fields[field.name] = _ROLES[item] if field.name == "role" else _plain(item)
    return fields


def _plain(item: Any) -> Any:
    """Convert composites in a value to their name and fields."""
    item = composite_of(item)
    if isinstance(item, DescribedList):
        fields = _fields(item)
        return {item.NAME: fields} if fields else item.NAME
    if isinstance(item, Described):
        return {str(item.descriptor): _plain(item.value)}
    if isinstance(item, dict):
        return {str(key): _plain(each) for key, each in item.items()}
    if isinstance(item, list | tuple):
        return [_plain(each) for each in item]
    return item
