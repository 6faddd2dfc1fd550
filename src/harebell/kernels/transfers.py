"""Output in frames of AMQP 0-10, which `segments.py` draws; `transfers.pyx` is the same, compiled.

In a delivery the header is what was published, but for exchange, routing key and redelivered, which
say what became of the message, and what only its consumer gets, which is added to the
application headers:

    before   0401 ...  0403 flags ... headers: size  count  entry ...
    after    0401 ...' 0403 flags ... headers: size' count' entry ... more

    more     x-stream-offset int64, in a stream; x-delivery-count int64, when deliveries have failed
"""

from __future__ import annotations

from harebell.base.body_frames import SegmentFrames
from harebell.base.message import Message
from harebell.kernels.header_structs import (
    DELIVERY_CODE,
    HEADERS,
    MESSAGE_CODE,
    NO_BODY,
    UnreadableError,
    before_exchange,
    str8,
    structs,
)
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.kernels.output import OutBuffer

_CONTROL, _COMMAND, _HEADER, _BODY = range(4)
_FIRST_SEGMENT, _LAST_SEGMENT, _FIRST_FRAME, _LAST_FRAME = 8, 4, 2, 1
_HEAD = 12

_OFFSET = b"\x0fx-stream-offset\x31"
_DELIVERIES = b"\x10x-delivery-count\x31"


class SegmentBuffer(OutBuffer):
    """One connection's output of one turn, in frames of AMQP 0-10."""

    def segments(self, kind: int, channel: int, payload: bytes, frame_max: int) -> int:
        """Append an assembly of one segment: a control or a command without content."""
        track = 0 if kind == _CONTROL else 1
        self._segment(kind, track, channel, payload, _FIRST_SEGMENT | _LAST_SEGMENT, frame_max)
        return 0

    def assembly(
        self, channel: int, command: bytes, header: bytes, body: bytes, frame_max: int
    ) -> int:
        """Append a command with its header and body; an empty one is not there."""
        last = _BODY if body else _HEADER if header else _COMMAND
        for kind, payload in ((_COMMAND, command), (_HEADER, header), (_BODY, body)):
            if payload:
                place = _FIRST_SEGMENT if kind == _COMMAND else 0
                place |= _LAST_SEGMENT if kind == last else 0
                self._segment(kind, 1, channel, payload, place, frame_max)
        return 0

    def transfer(
        self, channel: int, command: bytes, redelivered: bool, message: Message, frame_max: int
    ) -> int:
        """Append a delivery.

        Args:
            channel: where it goes.
            command: the encoded message.transfer.
            redelivered: whether it may have been delivered before.
            message: what is delivered, of family 10.
            frame_max: largest frame, in octets.
        """
        bodiless = not message.body and message.raw.endswith(NO_BODY)
        header = _delivered_header(message, redelivered)
        self._segment(_COMMAND, 1, channel, command, _FIRST_SEGMENT, frame_max)
        if bodiless:
            self._segment(_HEADER, 1, channel, header, _LAST_SEGMENT, frame_max)
            return 0
        self._segment(_HEADER, 1, channel, header, 0, frame_max)
        if self.postpones and len(message.body) >= LONG_BODY_BYTES:
            self.postpone(SegmentFrames(channel, message.body, frame_max - _HEAD))
            return 0
        # An empty body is sent as an empty body: clients distinguish it from no body.
        self._segment(_BODY, 1, channel, message.body, _LAST_SEGMENT, frame_max)
        return 0

    def _segment(
        self, kind: int, track: int, channel: int, payload: bytes, place: int, frame_max: int
    ) -> None:
        payload_max = frame_max - _HEAD
        offset = 0
        # Not `while offset < len(payload)`: an empty segment is one frame too (AMQP 0-10 4.2).
        while True:
            part = payload[offset : offset + payload_max]
            flags = place | (_FIRST_FRAME if offset == 0 else 0)
            offset += payload_max
            flags |= _LAST_FRAME if offset >= len(payload) else 0
            size = (len(part) + _HEAD).to_bytes(2)
            head = bytes((flags, kind)) + size + bytes((0, track)) + channel.to_bytes(2) + bytes(4)
            self.raw(head + part)
            if offset >= len(payload):
                return


def _delivered_header(message: Message, redelivered: bool) -> bytes:
    """Return the header segment for the consumer; a malformed one is sent unchanged."""
    raw = message.raw
    if not message.body:
        raw = raw.removesuffix(NO_BODY)
    try:
        header = structs(raw)
        out = b""
        delivery, properties = False, False
        more = _added_entries(message)
        for code, packed, offset, end in header:
            # Only the first of its kind is changed; a second one goes out as it came.
            if code == DELIVERY_CODE and not delivery:
                delivery = True
                out += _delivery_properties(raw, packed, offset, end, message, redelivered)
            elif code == MESSAGE_CODE and more and not properties:
                properties = True
                out += _message_properties(raw, packed, offset, end, more, _shown_count(message))
            else:
                out += raw[offset - 8 : end]
        if not delivery:
            # A publisher may leave them out; a consumer always learns exchange and routing key.
            out = _delivery_properties(b"", 0, 0, 0, message, redelivered) + out
        if more and not properties:
            out += _message_properties(b"", 0, 0, 0, more, _shown_count(message))
    except UnreadableError:
        return raw
    return out


def _added_entries(message: Message) -> bytes:
    """Return the header entries that only a delivery has."""
    more = _OFFSET + message.offset.to_bytes(8) if message.offset >= 0 else b""
    if message.deliveries > 0:
        more += _DELIVERIES + message.deliveries.to_bytes(8)
    return more


def _shown_count(message: Message) -> int:
    return int(message.offset >= 0) + int(message.deliveries > 0)


def _delivery_properties(
    raw: bytes, packed: int, offset: int, end: int, message: Message, redelivered: bool
) -> bytes:
    """Return the delivery properties with the message's present exchange and routing key."""
    exchange, key = message.exchange.encode(), message.routing_key.encode()
    middle = offset + before_exchange(packed)
    rest = middle
    if packed & 0x0100:
        rest = str8(raw, rest, end)
    if packed & 0x0200:
        rest = str8(raw, rest, end)
    if rest > end:
        raise UnreadableError
    # The exchange is always sent, the default one, too; the publisher's redelivered flag stays.
    packed = packed & ~0x0200 | 0x0100 | (4 if redelivered else 0)
    names = bytes((len(exchange),)) + exchange
    if key:
        packed |= 0x0200
        names += bytes((len(key),)) + key
    return _struct(DELIVERY_CODE, packed, raw[offset:middle] + names + raw[rest:end])


def _message_properties(
    raw: bytes, packed: int, offset: int, end: int, more: bytes, count: int
) -> bytes:
    """Return the message properties with entries added to their last field, the headers."""
    if not packed & HEADERS:
        table = (len(more) + 4).to_bytes(4) + count.to_bytes(4) + more
        return _struct(MESSAGE_CODE, packed | HEADERS, raw[offset:end] + table)
    place = _headers_at(raw, packed, offset, end)
    size = int.from_bytes(raw[place : place + 4])
    # A map is its size, and then a count of four octets, or nothing at all when it is empty.
    if place + 4 + size != end or 0 < size < 4:
        raise UnreadableError
    have = int.from_bytes(raw[place + 4 : place + 8]) if size >= 4 else 0
    table = (max(size, 4) + len(more)).to_bytes(4) + (have + count).to_bytes(4)
    return _struct(MESSAGE_CODE, packed, raw[offset:place] + table + raw[place + 8 : end] + more)


def _headers_at(raw: bytes, packed: int, offset: int, end: int) -> int:
    """Return where the application headers begin."""
    offset += 8 if packed & 1 else 0
    offset += 16 if packed & 2 else 0
    for bit, prefix in ((2, 2), (3, 2), (4, 1), (5, 1), (6, 2), (7, 2)):
        if packed >> bit & 1:
            offset += prefix + int.from_bytes(raw[offset : offset + prefix])
            if offset > end:
                raise UnreadableError
    if offset + 4 > end:
        raise UnreadableError
    return offset


def _struct(code: bytes, packed: int, fields: bytes) -> bytes:
    flags = packed.to_bytes(2, "little")
    return (len(fields) + 4).to_bytes(4) + code + flags + fields
