"""Scan the input for frames of AMQP 0-10, and pass whole transfers to the sink in one call.

    0       1      2      4     5       6         8      12
    +-------+------+------+-----+-------+---------+------+-------------+
    | flags | type | size |  0  | track | channel |  0   | payload     |    AMQP 0-10 4.2
    +-------+------+------+-----+-------+---------+------+-------------+
                     whole frame  0 for controls, 1 for commands

    flags   0x08 first segment   0x04 last segment   0x02 first frame   0x01 last frame
    type    0 control   1 command   2 header   3 body

A command with its content is an assembly of segments, a segment is one frame or several. Mostly all
frames of a message.transfer are adjacent in the input; then the scanner passes it on in one call.
Everything else goes through `SegmentSink.frame`.

    transfer   04 01   01 sync   packing-flags(2)   destination(str8) accept-mode(1) acquire-mode(1)
    header     { size(4) code(2) packing-flags(2) fields }   0401 delivery-, 0403 message-properties

`segments.pyx` beside this file is the same, compiled.
"""

from __future__ import annotations

from harebell.base.errors import ProtocolError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.base.message import Properties
from harebell.base.work import Work
from harebell.kernels.header_structs import (
    DELIVERY_CODE,
    HEADERS,
    MESSAGE_CODE,
    UnreadableError,
    before_exchange,
    str8,
    structs,
)

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

HEAD = 12
_FAMILY = 10
# Class 4, command 1, and the size of the session header, which is one octet.
_TRANSFER = b"\x04\x01\x01"
_SUSPECT_MESSAGE = 0x0048
"""The flags of reply-to and user-id."""
_SUSPECT_DELIVERY = 0x00A0
"""Those of ttl and expiration."""
_CARBON = b"CC"


class SegmentSink:
    """The methods that a scanner calls. Each returns 0 and may raise `ProtocolError`."""

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
            channel: the channel that it came on.
            flags: SYNC, DISCARD_UNROUTABLE, IMMEDIATE, ACCEPT_NONE, NOT_ACQUIRED, REDELIVERED,
                ACCEPT_EXPLICIT when the accept-mode is there and says so.
            destination: an exchange, or on a client's side a subscription.
            routing_key: of the delivery properties.
            properties: the header segment, and the values that the broker needs of it.
            body: the bytes of the message.
        """
        raise NotImplementedError


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
        work: counts the frames; `hold` is set when that has to stop.
        cut: whether `hold` was set for that; the caller of `feed` unsets it.
    """

    def __init__(self, sink: SegmentSink) -> None:
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self.work = Work()
        self._rest = b""
        self._last_raw: bytes | None = None
        self._last_properties = Properties(b"")
        self._last_key = ""
        self._last_flags = 0

    def break_cycle(self) -> int:
        """End the scanner: drop the kept input and the sink, which may refer to this scanner."""
        self.stopped = True
        self._sink = SegmentSink()
        self._rest = b""
        return 0

    @property
    def buffered(self) -> int:
        """Return the number of bytes that are kept until the rest of their frame arrives."""
        return len(self._rest)

    def feed(self, data: bytes | memoryview) -> int:
        """Scan new input."""
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
        while len(data) - at >= HEAD:
            flags, kind = data[at], data[at + 1]
            size = int.from_bytes(data[at + 2 : at + 4])
            track = data[at + 5] & 0x0F
            channel = int.from_bytes(data[at + 6 : at + 8])
            self._check(flags, kind, size)
            if len(data) - at < size:
                break  # The rest of the frame comes with the next read.
            used = 0
            # First segment, and the whole of it: 0x04 (last) may be set as well, without a body.
            if (
                self.fast
                and self.pending == 0
                and kind == COMMAND
                and track == 1
                and flags & 0x0B == 0x0B
                and data[at + HEAD : at + HEAD + 3] == _TRANSFER
            ):
                used = self._whole_transfer(data, at, at + size, channel)
            if not used:
                self._sink.frame(flags, kind, track, channel, data[at + HEAD : at + size])
                used = size
            at += used
            # Enough for one turn: the rest of the input is kept until the caller goes on.
            if self.work.frame():
                self.hold = self.cut = True
            if self.stopped or self.hold:
                break
        return at

    def _check(self, flags: int, kind: int, size: int) -> None:
        if flags & 0xF0:
            # The upper bits are those of the frame format, zero in 0-10 (AMQP 0-10 4.2).
            raise ProtocolError(501, f"frame flags {flags:#04x} are of another version")
        if kind > BODY:
            raise ProtocolError(501, f"unknown segment type {kind}")
        if size < HEAD:
            raise ProtocolError(501, f"a frame of {size} octets has no head")
        if size > self.frame_max:
            raise ProtocolError(501, f"a frame of {size} octets, at most {self.frame_max} may be")

    def _whole_transfer(self, data: bytes, start: int, at: int, channel: int) -> int:
        """Pass on the adjacent frames of a transfer; return 0 if they are not adjacent."""
        last = data[start] & LAST_SEGMENT
        command = data[start + HEAD : at]
        raw, parts = b"", []
        kind = COMMAND
        while not last:
            # The rest of the transfer comes with a later read: until then the sink assembles the
            # frames one by one, and none is scanned twice.
            if len(data) - at < HEAD:
                return 0
            flags = data[at]
            size = int.from_bytes(data[at + 2 : at + 4])
            if size < HEAD or size > self.frame_max or len(data) - at < size:
                return 0
            # Frames of other channels, or controls, may come in between (4.2): all go one by one.
            if int.from_bytes(data[at + 6 : at + 8]) != channel or data[at + 5] & 0x0F != 1:
                return 0
            payload = data[at + HEAD : at + size]
            # A header segment of one frame, neither the first nor (but for 0x04) the last segment.
            if data[at + 1] == HEADER and kind == COMMAND and flags & 0xFB == 3:
                raw = payload
            elif data[at + 1] == BODY and flags & 0xFC == LAST_SEGMENT:
                # Only the first frame of the body may say so; a second one begins another segment.
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
        if kind != BODY:
            # Rare, and stored with the message: the frame path handles it.
            return 0
        try:
            transfer_end, destination = _read_transfer(command)
            self._read_header(raw)
        except UnreadableError:
            return 0
        self._sink.transfer(
            channel,
            transfer_end | self._last_flags,
            destination,
            self._last_key,
            self._last_properties,
            b"".join(parts),
        )
        return at - start

    def _read_header(self, raw: bytes) -> None:
        """Read the values of a header that the broker needs; equal ones in a row are read once."""
        if raw == self._last_raw:
            return
        self._last_raw = None
        flags, key, mode, priority, suspect, headers = 0, "", 0, -1, False, False
        for code, packed, at, end in structs(raw):
            if code == DELIVERY_CODE:
                flags = _delivery_flags(packed)
                if packed & 0x0018:
                    mode, priority = _mode_and_priority(raw, packed, at, end)
                key = _routing_key(raw, packed, at, end)
                suspect = suspect or bool(packed & _SUSPECT_DELIVERY)
            elif code == MESSAGE_CODE:
                headers = bool(packed & HEADERS)
                carbon = headers and _CARBON in raw[at:end]
                suspect = suspect or carbon or bool(packed & _SUSPECT_MESSAGE)
            else:
                # An unknown struct: the slow path decodes it before the broker acts on the
                # message.
                suspect = True
        self._last_properties = Properties(raw, mode, priority, headers, suspect)
        self._last_properties.family = _FAMILY
        self._last_key = key
        self._last_flags = flags
        self._last_raw = raw


def _read_transfer(command: bytes) -> tuple[int, str]:
    """Return the flags and the destination of a transfer."""
    # Sync is a bit, and of 16 packing flags only those of the three fields may be set.
    if len(command) < 6 or command[3] > 1 or command[4] & 0xF8 or command[5]:
        raise UnreadableError
    flags, packed, at = command[3], command[4], 6
    destination = ""
    if packed & 1:
        end = at + 1 + command[at] if at < len(command) else len(command) + 1
        if end > len(command):
            raise UnreadableError
        destination = _text(command[at + 1 : end])
        at = end
    for bit, flag in ((2, ACCEPT_NONE), (4, NOT_ACQUIRED)):
        if packed & bit:
            if at >= len(command) or command[at] > 1:
                raise UnreadableError
            flags |= flag if command[at] else 0
            # Left out it is 0 as well, but only a peer that writes it gets an accept.
            if flag == ACCEPT_NONE and not command[at]:
                flags |= ACCEPT_EXPLICIT
            at += 1
    if at != len(command):
        raise UnreadableError
    return flags, destination


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UnreadableError from None


def _delivery_flags(packed: int) -> int:
    flags = DISCARD_UNROUTABLE if packed & 1 else 0
    flags |= IMMEDIATE if packed & 2 else 0
    return flags | (REDELIVERED if packed & 4 else 0)


def _mode_and_priority(raw: bytes, packed: int, at: int, end: int) -> tuple[int, int]:
    mode, priority = 0, -1
    if packed & 0x0008:
        if at >= end:
            raise UnreadableError
        priority = raw[at]
        at += 1
    if packed & 0x0010:
        if at >= end:
            raise UnreadableError
        mode = raw[at]
    return mode, priority


def _routing_key(raw: bytes, packed: int, at: int, end: int) -> str:
    at += before_exchange(packed)
    if packed & 0x0100:
        at = str8(raw, at, end)
    key = ""
    if packed & 0x0200:
        after = str8(raw, at, end)
        key = _text(raw[at + 1 : after])
        at = after
    # Delivery properties have twelve fields: the highest four flags stand for none.
    if packed & 0xF000 or at > end:
        raise UnreadableError
    return key
