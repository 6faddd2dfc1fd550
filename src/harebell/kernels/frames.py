"""Frames: where they begin and end, and whole contents found in one piece.

    0      1         3             7                  size+7
    +------+---------+-------------+------------------+-----------+
    | type | channel |    size     | payload          | frame-end |      AMQP 0-9-1 4.2.3
    +------+---------+-------------+------------------+-----------+
      octet   short       long        'size' octets      0xCE

A content travels as a method frame, a header frame and body frames. When all three lie side by side
in what has arrived, which they nearly always do, the scanner hands the content over in one call
instead of three. Everything else goes through `FrameSink.frame`, one frame at a time. `frames.pyx`
beside this file is the same, compiled.
"""

from __future__ import annotations

from harebell.base.errors import ProtocolError
from harebell.base.limits import (
    FRAME_FUDGE_BYTES,
    FRAME_OVERHEAD_BYTES,
    HANDSHAKE_FRAME_BYTES,
)
from harebell.base.message import Properties
from harebell.base.work import Work
from harebell.kernels.properties import parse_properties

METHOD = 1
HEADER = 2
BODY = 3
END = 0xCE

_HEAD = 7
_HEADER_FIXED = 12
_TICKET_SHIFT = 8
_PUBLISH = b"\x00\x3c\x00\x28"
_DELIVER = b"\x00\x3c\x00\x3c"
_ACK = b"\x00\x3c\x00\x50"
_ACK_SIZE = 13
_BASIC_CONTENT = b"\x00\x3c\x00\x00"


class FrameSink:
    """What a scanner calls. Every method returns 0 and may raise `ProtocolError`."""

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """One frame of any type."""
        raise NotImplementedError

    def publish(
        self,
        channel: int,
        flags: int,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """A whole basic.publish; `flags`: 1 mandatory, 2 immediate, and perhaps a ticket."""
        raise NotImplementedError

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """A basic.ack."""
        raise NotImplementedError

    def deliver(
        self,
        channel: int,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> int:
        """A whole basic.deliver (on a client's side)."""
        raise NotImplementedError


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolError(501, "Malformed UTF-8 in shortstr") from None


class FrameScanner:
    """Bytes in, calls of the sink out.

    Args:
        sink: called for every frame, in order.

    Attributes:
        frame_max: largest frame accepted, in octets, with type, channel, size and end.
        fast: whether whole contents and acks are handed over in one call.
        client: whether the peer is a server, so that contents are deliveries.
        tickets: whether the ticket of a publish stands in its flags, from bit 8 on.
        stopped: the sink sets it to have all further input ignored.
        hold: the sink sets it to have further input kept; `feed(b"")` goes on after it is unset.
        pending: contents that the sink is assembling from single frames.
        work: counts the frames; `hold` is set when that has to stop.
        cut: whether `hold` was set for that; the caller of `feed` unsets it.
    """

    def __init__(self, sink: FrameSink) -> None:
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.client = False
        self.tickets = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self.work = Work()
        self._rest = bytearray()
        self._held = b""
        self._last_properties = Properties(b"\0\0")
        self._diverted = sink
        self._diverted_channel = -1
        self._gather_channel = -1
        self._gathered = bytearray()
        self._gather_size = 0

    def divert(self, channel: int, sink: FrameSink | None) -> int:
        """Hand whole deliveries of one channel to another sink, or to the usual one again.

        Contents that arrive in pieces still go through `FrameSink.frame` of the usual sink.

        Args:
            channel: the channel; only one can be diverted.
            sink: where its deliveries go; None for the usual sink.
        """
        self._diverted = self._sink if sink is None else sink
        self._diverted_channel = channel
        return 0

    def gather(self, channel: int, size: int) -> int:
        """Pass the body frames of a channel's next content as one payload, copied once.

        A frame that is longer than what is missing comes after what was gathered until then.

        Args:
            channel: the channel; without effect if another one's content is gathered.
            size: of the whole body.
        """
        if self._gather_channel < 0 and size > 0:
            self._gathered = bytearray()
            self._gather_size = size
            self._gather_channel = channel
        return 0

    def let_go(self) -> int:
        """Nothing more comes: forget the sink, which may have this scanner, and what is kept."""
        self.stopped = True
        self._sink = self._diverted = FrameSink()
        self._rest = bytearray()
        self._held = b""
        self._gathered = bytearray()
        self._gather_channel = -1
        return 0

    @property
    def buffered(self) -> int:
        """Octets of incomplete frames and contents that are kept until the rest comes."""
        return len(self._rest) + len(self._held) + len(self._gathered)

    def feed(self, data: bytes | bytearray | memoryview) -> int:
        """Scan what has arrived.

        Raises:
            ProtocolError: 501 for a frame that is too large or badly ended; whatever the sink
            raises.
        """
        data = self._held + data
        self._held = b""
        if self.hold:
            self._held = data
            return 0
        while self._rest and data and not self.hold:
            data = data[self._finish_rest(data) :]
        if self.hold:
            self._held += data
        elif data and not self.stopped:
            used = self._scan(data)
            if self.hold:
                self._held = data[used:]
            elif not self.stopped:
                self._rest = bytearray(data[used:])
        return 0

    def _finish_rest(self, data: bytes) -> int:
        """Complete what was cut, a frame or a whole content, and hand it over.

        Returns:
            octets of `data` that were used.
        """
        rest = self._rest
        used = 0
        while True:
            want = self._wanted(rest, used < len(data))
            if want <= len(rest):
                break
            more = data[used : used + want - len(rest)]
            rest += more
            used += len(more)
            if len(rest) < want:
                return used
        self._rest = bytearray()
        scanned = self._scan(bytes(rest))
        if not self.stopped:
            if self.hold:
                self._held = bytes(rest[scanned:])
            else:
                self._rest = rest[scanned:]
        return used

    def _wanted(self, rest: bytearray, more: bool) -> int:
        """Octets that are to be there before they are scanned; `more`: others are at hand."""
        if len(rest) < _HEAD:
            return _HEAD
        size = int.from_bytes(rest[3:7])
        if size > self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES:
            return len(rest)
        if len(rest) < size + FRAME_OVERHEAD_BYTES:
            return size + FRAME_OVERHEAD_BYTES
        if self.fast and rest[0] == METHOD and self._begins_content(rest[_HEAD : _HEAD + 4]):
            return self._awaited(rest, size, more)
        return len(rest)

    def _begins_content(self, which: bytes | bytearray) -> bool:
        return not self.pending and which == (_DELIVER if self.client else _PUBLISH)

    def _awaited(self, unit: bytes | bytearray, size: int, more: bool) -> int:
        """Octets up to where a content is whole, or shows that it must go frame by frame.

        `len(unit)` when that is known already. A frame that has not begun is waited for only
        when there is `more` to look at: a peer may wait for an answer to what it has sent.
        """
        have = len(unit)
        limit = self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES
        at = size + FRAME_OVERHEAD_BYTES
        body_size = 0
        for kind in (HEADER, BODY):
            if have <= at:
                return at + 1 if more else have
            if unit[at] != kind:
                return have
            if have < at + _HEAD:
                return at + _HEAD
            size = int.from_bytes(unit[at + 3 : at + 7])
            fits = size == body_size if kind == BODY else _HEADER_FIXED + 2 <= size <= limit
            if unit[at + 1 : at + 3] != unit[1:3] or not fits:
                return have
            payload = at + _HEAD
            at += size + FRAME_OVERHEAD_BYTES
            if have < at:
                return at
            if kind == HEADER:
                body_size = int.from_bytes(unit[payload + 4 : payload + _HEADER_FIXED])
                known = unit[payload : payload + 4] == _BASIC_CONTENT
                if not known or not 0 < body_size <= limit:
                    break
        return have

    def _scan(self, data: bytes) -> int:
        at = 0
        length = len(data)
        while length - at >= _HEAD:
            size = self._frame_size(data, at)
            if length - at < size + FRAME_OVERHEAD_BYTES:
                break
            marker = data[at + _HEAD + size]
            kind = data[at]
            if marker != END:
                raise ProtocolError(
                    501,
                    f"type {kind}, all octets = <<>>: {{invalid_frame_end_marker,{marker}}}",
                )
            used = self._whole(data, at, size) if self.fast and kind == METHOD else 0
            if used < 0:
                break
            if used == 0:
                channel = int.from_bytes(data[at + 1 : at + 3])
                self._frame(kind, channel, data[at + _HEAD : at + _HEAD + size])
                used = size + FRAME_OVERHEAD_BYTES
            at += used
            if self.work.frame():
                self.hold = self.cut = True
            if self.stopped:
                return length
            if self.hold:
                return at
        return at

    def _frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Pass on a frame, or gather it."""
        if kind == BODY and channel == self._gather_channel:
            fits = len(self._gathered) + len(payload) <= self._gather_size
            if fits:
                self._gathered += payload
            if not fits or len(self._gathered) == self._gather_size:
                self._gather_channel = -1
                whole, self._gathered = bytes(self._gathered), bytearray()
                self._sink.frame(BODY, channel, whole)
            if fits:
                return
        self._sink.frame(kind, channel, payload)

    def _frame_size(self, data: bytes, at: int) -> int:
        size = int.from_bytes(data[at + 3 : at + 7])
        payload_max = self.frame_max - FRAME_OVERHEAD_BYTES
        if size > payload_max + FRAME_FUDGE_BYTES:
            raise ProtocolError(
                501, f"type {data[at]}, all octets = <<>>: {{frame_too_large,{size},{payload_max}}}"
            )
        return size

    def _whole(self, data: bytes, at: int, size: int) -> int:
        """Hand over a content or an ack that begins here.

        Returns:
            octets used; 0 when it must go frame by frame, -1 when more of it is to come first.
        """
        which = data[at + _HEAD : at + _HEAD + 4]
        channel = int.from_bytes(data[at + 1 : at + 3])
        if which == _ACK and size == _ACK_SIZE:
            tag = int.from_bytes(data[at + 11 : at + 19])
            self._sink.ack(channel, tag, bool(data[at + 19] & 1))
            return size + FRAME_OVERHEAD_BYTES
        if not self._begins_content(which):
            return 0
        used = self._whole_content(data, at, channel, size)
        if used == 0:
            unit = data[at:]
            if self._awaited(unit, size, False) > len(unit):
                return -1
        return used

    def _whole_content(self, data: bytes, at: int, channel: int, size: int) -> int:
        limit = self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES
        here = at + size + FRAME_OVERHEAD_BYTES
        header = self._neighbour(data, here, HEADER, channel)
        if header is None or len(header) < _HEADER_FIXED + 2 or header[:4] != _BASIC_CONTENT:
            return 0
        here += len(header) + FRAME_OVERHEAD_BYTES
        body_size = int.from_bytes(header[4:12])
        body = b""
        if body_size:
            found = self._neighbour(data, here, BODY, channel) if body_size <= limit else None
            if found is None or len(found) != body_size:
                return 0
            body = found
            here += body_size + FRAME_OVERHEAD_BYTES
        properties = self._properties(header[_HEADER_FIXED:])
        if properties is None:
            return 0
        arguments = data[at + _HEAD + 4 : at + _HEAD + size]
        if self.client:
            self._hand_delivery(channel, arguments, properties, body)
        elif self._hand_publish(channel, arguments, properties, body):
            return 0
        return here - at

    def _neighbour(self, data: bytes, at: int, kind: int, channel: int) -> bytes | None:
        """The payload of a complete frame of this type and channel at `at`."""
        if len(data) - at < FRAME_OVERHEAD_BYTES or data[at] != kind:
            return None
        size = int.from_bytes(data[at + 3 : at + 7])
        end = at + _HEAD + size
        if size > self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES or end >= len(data):
            return None
        if int.from_bytes(data[at + 1 : at + 3]) != channel or data[end] != END:
            return None
        return data[at + _HEAD : end]

    def _properties(self, raw: bytes) -> Properties | None:
        """The properties; None when they cannot be read, which is found out frame by frame."""
        if raw != self._last_properties.raw:
            try:
                self._last_properties = parse_properties(raw)
            except ProtocolError:
                return None
        return self._last_properties

    def _hand_publish(
        self, channel: int, arguments: bytes, properties: Properties, body: bytes
    ) -> int:
        """Call the sink; 1 when the method cannot be read, which is found out frame by frame."""
        fits = len(arguments) >= 5 and len(arguments) >= 5 + arguments[2]
        if fits:
            key_at = 4 + arguments[2]
            fits = len(arguments) == key_at + arguments[key_at - 1] + 1
        if not fits:
            return 1
        try:
            exchange = _text(arguments[3 : key_at - 1])
            key = _text(arguments[key_at:-1])
        except ProtocolError:
            return 1
        flags = arguments[-1] & 3
        if self.tickets:
            flags |= int.from_bytes(arguments[:2]) << _TICKET_SHIFT
        self._sink.publish(channel, flags, exchange, key, properties, body)
        return 0

    def _hand_delivery(
        self, channel: int, arguments: bytes, properties: Properties, body: bytes
    ) -> None:
        size = len(arguments)
        at = 10 + arguments[0] if size else 0
        fits = size >= 12 and size >= at + 2
        if fits:
            fits = size >= at + 2 + arguments[at]
        if fits:
            key_at = at + 2 + arguments[at]
            fits = size == key_at + arguments[key_at - 1]
        if not fits:
            raise ProtocolError(502, "basic.deliver: arguments do not fit the frame", 60, 60)
        tag_end = 1 + arguments[0]
        consumer_tag = _text(arguments[1:tag_end])
        tag = int.from_bytes(arguments[tag_end : tag_end + 8])
        sink = self._diverted if channel == self._diverted_channel else self._sink
        sink.deliver(
            channel,
            consumer_tag,
            tag,
            bool(arguments[tag_end + 8] & 1),
            _text(arguments[at + 1 : key_at - 1]),
            _text(arguments[key_at:]),
            properties,
            body,
        )
