"""Frames of AMQP 0-10: where they begin and end, whole transfers found in one piece, and output.

    0       1      2      4     5       6         8      12
    +-------+------+------+-----+-------+---------+------+-------------+
    | flags | type | size |  0  | track | channel |  0   | payload     |    AMQP 0-10 4.2
    +-------+------+------+-----+-------+---------+------+-------------+
                     whole frame  0 for controls, 1 for commands

    flags   0x08 first segment   0x04 last segment   0x02 first frame   0x01 last frame
    type    0 control   1 command   2 header   3 body

A command with its content is an assembly of segments, a segment is one frame or several. When all
frames of a message.transfer lie side by side in what has arrived, which they nearly always do, the
scanner hands it over in one call. Everything else goes through `SegmentSink.frame`.

    transfer   04 01   01 sync   packing-flags(2)   destination(str8) accept-mode(1) acquire-mode(1)
    header     { size(4) code(2) packing-flags(2) fields }   0401 delivery-, 0403 message-properties

In a delivery the header is what was published, but for exchange, routing key and redelivered, which
say what became of the message, and what only its consumer is told (`x-stream-offset`,
`x-delivery-count`), which is added to the application headers. `segments.pyx` beside this file is
the same, compiled.
"""

from __future__ import annotations

from harebell.base.errors import ProtocolError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.base.message import Message, Properties
from harebell.kernels.output import OutBuffer

CONTROL = 0
COMMAND = 1
HEADER = 2
BODY = 3

FIRST_SEGMENT = 8
LAST_SEGMENT = 4
FIRST_FRAME = 2
LAST_FRAME = 1
WHOLE = 15

SYNC = 1
DISCARD_UNROUTABLE = 2
IMMEDIATE = 4
ACCEPT_NONE = 8
NOT_ACQUIRED = 16
REDELIVERED = 32
ACCEPT_EXPLICIT = 64

_HEAD = 12
_FAMILY = 10
_TRANSFER = b"\x04\x01\x01"
_DELIVERY_CODE = b"\x04\x01"
_MESSAGE_CODE = b"\x04\x03"
_DELIVERY_WIDTHS = (0, 0, 0, 1, 1, 8, 8, 8)
"""Octets of the delivery properties before the exchange; the first three are bits."""
_HEADERS = 0x0100
_SUSPECT_MESSAGE = 0x0048
"""The flags of reply-to and user-id."""
_SUSPECT_DELIVERY = 0x00A0
"""Those of ttl and expiration."""
_CARBON = b"CC"
_OFFSET = b"\x0fx-stream-offset\x31"
_DELIVERIES = b"\x10x-delivery-count\x31"


class SegmentSink:
    """What a scanner calls. Every method returns 0 and may raise `ProtocolError`."""

    def frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> int:
        """One frame."""
        raise NotImplementedError

    def transfer(
        self,
        channel: int,
        flags: int,
        destination: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """A whole message.transfer.

        Args:
            channel: where it came.
            flags: SYNC, DISCARD_UNROUTABLE, IMMEDIATE, ACCEPT_NONE, NOT_ACQUIRED, REDELIVERED,
                ACCEPT_EXPLICIT when the accept-mode is there and says so.
            destination: an exchange, or on a client's side a subscription.
            routing_key: of the delivery properties.
            properties: the header segment, and what is read from it.
            body: the body.
        """
        raise NotImplementedError


class _Unreadable(Exception):
    """A transfer that goes the long way, where its fault is found and named."""


class SegmentScanner:
    """Bytes in, calls of the sink out.

    Args:
        sink: called for every frame, in order.

    Attributes:
        frame_max: largest frame accepted, in octets.
        fast: whether whole transfers are handed over in one call.
        stopped: the sink sets it to have all further input ignored.
        hold: the sink sets it to have further input kept; `feed(b"")` goes on after it is unset.
        pending: assemblies that the sink has begun and not ended.
    """

    def __init__(self, sink: SegmentSink) -> None:
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.stopped = False
        self.hold = False
        self.pending = 0
        self._rest = b""
        self._last_raw: bytes | None = None
        self._last_properties = Properties(b"")
        self._last_key = ""
        self._last_flags = 0

    @property
    def buffered(self) -> int:
        """Octets that are kept until the rest of their frame comes."""
        return len(self._rest)

    def feed(self, data: bytes | memoryview) -> int:
        """Scan what has arrived."""
        data = self._rest + bytes(data)
        self._rest = b""
        if self.hold or self.stopped:
            self._rest = b"" if self.stopped else data
            return 0
        used = self._scan(data)
        if not self.stopped:
            self._rest = data[used:]
        return 0

    def _scan(self, data: bytes) -> int:
        at = 0
        while len(data) - at >= _HEAD:
            flags, kind = data[at], data[at + 1]
            size = int.from_bytes(data[at + 2 : at + 4])
            track = data[at + 5] & 0x0F
            channel = int.from_bytes(data[at + 6 : at + 8])
            self._check(flags, kind, size)
            if len(data) - at < size:
                break
            used = 0
            if (
                self.fast
                and self.pending == 0
                and kind == COMMAND
                and track == 1
                and flags & 0x0B == 0x0B
                and data[at + _HEAD : at + _HEAD + 3] == _TRANSFER
            ):
                used = self._whole_transfer(data, at, at + size, channel)
            if not used:
                self._sink.frame(flags, kind, track, channel, data[at + _HEAD : at + size])
                used = size
            at += used
            if self.stopped or self.hold:
                break
        return at

    def _check(self, flags: int, kind: int, size: int) -> None:
        if flags & 0xF0:
            raise ProtocolError(501, f"frame flags {flags:#04x} are of another version")
        if kind > BODY:
            raise ProtocolError(501, f"unknown segment type {kind}")
        if size < _HEAD:
            raise ProtocolError(501, f"a frame of {size} octets has no head")
        if size > self.frame_max:
            raise ProtocolError(501, f"a frame of {size} octets, at most {self.frame_max} may be")

    def _whole_transfer(self, data: bytes, start: int, at: int, channel: int) -> int:
        """Take the frames of a transfer that lie side by side; 0 when they do not."""
        last = data[start] & LAST_SEGMENT
        command = data[start + _HEAD : at]
        raw, parts = b"", []
        kind = COMMAND
        while not last:
            if len(data) - at < _HEAD:
                return 0
            flags = data[at]
            size = int.from_bytes(data[at + 2 : at + 4])
            if size < _HEAD or size > self.frame_max or len(data) - at < size:
                return 0
            if int.from_bytes(data[at + 6 : at + 8]) != channel or data[at + 5] & 0x0F != 1:
                return 0
            payload = data[at + _HEAD : at + size]
            if data[at + 1] == HEADER and kind == COMMAND and flags & 0xFB == 3:
                raw = payload
            elif data[at + 1] == BODY and flags & 0xFC == LAST_SEGMENT:
                if bool(flags & FIRST_FRAME) != (kind != BODY):
                    return 0
                parts.append(payload)
                if not flags & LAST_FRAME:
                    kind = BODY
                    at += size
                    continue
            else:
                return 0
            kind = data[at + 1]
            last = flags & LAST_SEGMENT
            at += size
        try:
            found, destination = _read_transfer(command)
            self._read_header(raw)
        except _Unreadable:
            return 0
        self._sink.transfer(
            channel,
            found | self._last_flags,
            destination,
            self._last_key,
            self._last_properties,
            b"".join(parts),
        )
        return at - start

    def _read_header(self, raw: bytes) -> None:
        """Learn what the broker needs of a header; equal ones in a row are read once."""
        if raw == self._last_raw:
            return
        self._last_raw = None
        flags, key, mode, priority, suspect, headers = 0, "", 0, -1, False, False
        for code, packed, at, end in _structs(raw):
            if code == _DELIVERY_CODE:
                flags = _delivery_flags(packed)
                if packed & 0x0018:
                    mode, priority = _mode_and_priority(raw, packed, at, end)
                key = _routing_key(raw, packed, at, end)
                suspect = suspect or bool(packed & _SUSPECT_DELIVERY)
            elif code == _MESSAGE_CODE:
                headers = bool(packed & _HEADERS)
                carbon = headers and _CARBON in raw[at:end]
                suspect = suspect or carbon or bool(packed & _SUSPECT_MESSAGE)
            else:
                suspect = True
        self._last_properties = Properties(raw, mode, priority, headers, suspect)
        self._last_properties.family = _FAMILY
        self._last_key = key
        self._last_flags = flags
        self._last_raw = raw


def _read_transfer(command: bytes) -> tuple[int, str]:
    """The flags and the destination of a transfer."""
    if len(command) < 6 or command[3] > 1 or command[4] & 0xF8 or command[5]:
        raise _Unreadable
    flags, packed, at = command[3], command[4], 6
    destination = ""
    if packed & 1:
        end = at + 1 + command[at] if at < len(command) else len(command) + 1
        if end > len(command):
            raise _Unreadable
        destination = _text(command[at + 1 : end])
        at = end
    for bit, flag in ((2, ACCEPT_NONE), (4, NOT_ACQUIRED)):
        if packed & bit:
            if at >= len(command) or command[at] > 1:
                raise _Unreadable
            flags |= flag if command[at] else 0
            if flag == ACCEPT_NONE and not command[at]:
                flags |= ACCEPT_EXPLICIT
            at += 1
    if at != len(command):
        raise _Unreadable
    return flags, destination


def _text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        raise _Unreadable from None


def _structs(raw: bytes) -> list[tuple[bytes, int, int, int]]:
    """Code, packing flags (first octet lowest), begin of the fields and end of each struct."""
    found = []
    at = 0
    while at < len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4])
        if at + 8 > end or end > len(raw):
            raise _Unreadable
        found.append((raw[at + 4 : at + 6], raw[at + 6] | raw[at + 7] << 8, at + 8, end))
        at = end
    return found


def _delivery_flags(packed: int) -> int:
    flags = DISCARD_UNROUTABLE if packed & 1 else 0
    flags |= IMMEDIATE if packed & 2 else 0
    return flags | (REDELIVERED if packed & 4 else 0)


def _mode_and_priority(raw: bytes, packed: int, at: int, end: int) -> tuple[int, int]:
    mode, priority = 0, -1
    if packed & 0x0008:
        if at >= end:
            raise _Unreadable
        priority = raw[at]
        at += 1
    if packed & 0x0010:
        if at >= end:
            raise _Unreadable
        mode = raw[at]
    return mode, priority


def _before_exchange(packed: int) -> int:
    """Octets of the fields before the exchange."""
    return sum(width for bit, width in enumerate(_DELIVERY_WIDTHS) if packed >> bit & 1)


def _str8(raw: bytes, at: int, end: int) -> int:
    """Where a str8 ends."""
    after = at + 1 + raw[at] if at < end else end + 1
    if after > end:
        raise _Unreadable
    return after


def _routing_key(raw: bytes, packed: int, at: int, end: int) -> str:
    at += _before_exchange(packed)
    if packed & 0x0100:
        at = _str8(raw, at, end)
    key = ""
    if packed & 0x0200:
        after = _str8(raw, at, end)
        key = _text(raw[at + 1 : after])
        at = after
    if packed & 0xF000 or at > end:
        raise _Unreadable
    return key


# --- output -------------------------------------------------------------------------------------


class SegmentBuffer(OutBuffer):
    """One connection's output of one turn, in frames of AMQP 0-10."""

    def segments(self, kind: int, channel: int, payload: bytes, frame_max: int) -> int:
        """Append an assembly of one segment: a control or a command without content."""
        track = 0 if kind == CONTROL else 1
        self._segment(kind, track, channel, payload, FIRST_SEGMENT | LAST_SEGMENT, frame_max)
        return 0

    def assembly(
        self, channel: int, command: bytes, header: bytes, body: bytes, frame_max: int
    ) -> int:
        """Append a command with its header and body; an empty one is not there."""
        last = BODY if body else HEADER if header else COMMAND
        for kind, payload in ((COMMAND, command), (HEADER, header), (BODY, body)):
            if payload:
                place = FIRST_SEGMENT if kind == COMMAND else 0
                place |= LAST_SEGMENT if kind == last else 0
                self._segment(kind, 1, channel, payload, place, frame_max)
        return 0

    def transfer(
        self, channel: int, command: bytes, redelivered: bool, message: Message, frame_max: int
    ) -> int:
        """Append a delivery.

        Args:
            channel: where it goes.
            command: the encoded message.transfer.
            redelivered: whether somebody may have got it before.
            message: what is delivered, of family 10.
            frame_max: largest frame, in octets.
        """
        header = _delivered_header(message, redelivered)
        return self.assembly(channel, command, header, message.body, frame_max)

    def _segment(
        self, kind: int, track: int, channel: int, payload: bytes, place: int, frame_max: int
    ) -> None:
        most = frame_max - _HEAD
        at = 0
        while True:
            part = payload[at : at + most]
            flags = place | (FIRST_FRAME if at == 0 else 0)
            at += most
            flags |= LAST_FRAME if at >= len(payload) else 0
            size = (len(part) + _HEAD).to_bytes(2)
            head = bytes((flags, kind)) + size + bytes((0, track)) + channel.to_bytes(2) + bytes(4)
            self.raw(head + part)
            if at >= len(payload):
                return


def _delivered_header(message: Message, redelivered: bool) -> bytes:
    """The header segment as the consumer gets it; one that cannot be read goes out as it is."""
    raw = message.raw
    try:
        structs = _structs(raw)
        out = b""
        delivery, properties = False, False
        more = _told(message)
        for code, packed, at, end in structs:
            if code == _DELIVERY_CODE and not delivery:
                delivery = True
                out += _delivery_properties(raw, packed, at, end, message, redelivered)
            elif code == _MESSAGE_CODE and more and not properties:
                properties = True
                out += _message_properties(raw, packed, at, end, more, _told_count(message))
            else:
                out += raw[at - 8 : end]
        if not delivery:
            out = _delivery_properties(b"", 0, 0, 0, message, redelivered) + out
        if more and not properties:
            out += _message_properties(b"", 0, 0, 0, more, _told_count(message))
    except _Unreadable:
        return raw
    return out


def _told(message: Message) -> bytes:
    """The entries that only a delivery has."""
    more = _OFFSET + message.offset.to_bytes(8) if message.offset >= 0 else b""
    if message.deliveries > 0:
        more += _DELIVERIES + message.deliveries.to_bytes(8)
    return more


def _told_count(message: Message) -> int:
    return int(message.offset >= 0) + int(message.deliveries > 0)


def _delivery_properties(
    raw: bytes, packed: int, at: int, end: int, message: Message, redelivered: bool
) -> bytes:
    """The delivery properties with what became of the message."""
    exchange, key = message.exchange.encode(), message.routing_key.encode()
    middle = at + _before_exchange(packed)
    rest = middle
    if packed & 0x0100:
        rest = _str8(raw, rest, end)
    if packed & 0x0200:
        rest = _str8(raw, rest, end)
    if rest > end:
        raise _Unreadable
    packed = packed & ~0x0304 | (4 if redelivered else 0)
    names = b""
    if exchange:
        packed |= 0x0100
        names += bytes((len(exchange),)) + exchange
    if key:
        packed |= 0x0200
        names += bytes((len(key),)) + key
    return _struct(_DELIVERY_CODE, packed, raw[at:middle] + names + raw[rest:end])


def _message_properties(
    raw: bytes, packed: int, at: int, end: int, more: bytes, count: int
) -> bytes:
    """The message properties with entries added to the application headers, which come last."""
    if not packed & _HEADERS:
        table = (len(more) + 4).to_bytes(4) + count.to_bytes(4) + more
        return _struct(_MESSAGE_CODE, packed | _HEADERS, raw[at:end] + table)
    place = _headers_at(raw, packed, at, end)
    size = int.from_bytes(raw[place : place + 4])
    if place + 4 + size != end or 0 < size < 4:
        raise _Unreadable
    have = int.from_bytes(raw[place + 4 : place + 8]) if size >= 4 else 0
    table = (max(size, 4) + len(more)).to_bytes(4) + (have + count).to_bytes(4)
    return _struct(_MESSAGE_CODE, packed, raw[at:place] + table + raw[place + 8 : end] + more)


def _headers_at(raw: bytes, packed: int, at: int, end: int) -> int:
    """Where the application headers begin."""
    at += 8 if packed & 1 else 0
    at += 16 if packed & 2 else 0
    for bit, prefix in ((2, 2), (3, 2), (4, 1), (5, 1), (6, 2), (7, 2)):
        if packed >> bit & 1:
            at += prefix + int.from_bytes(raw[at : at + prefix])
            if at > end:
                raise _Unreadable
    if at + 4 > end:
        raise _Unreadable
    return at


def _struct(code: bytes, packed: int, fields: bytes) -> bytes:
    flags = packed.to_bytes(2, "little")
    return (len(fields) + 4).to_bytes(4) + code + flags + fields
