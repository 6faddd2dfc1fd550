"""Scan the input for frames, and pass whole contents to the sink in one call.

    0      1         3             7                  size+7
    +------+---------+-------------+------------------+-----------+
    | type | channel |    size     | payload          | frame-end |      AMQP 0-9-1 4.2.3
    +------+---------+-------------+------------------+-----------+
      octet   short       long        'size' octets      0xCE

A content is sent as a method frame, a header frame and body frames. Mostly all three are adjacent
in the input; then the scanner passes the content on in one call instead of three. Everything else
goes through `FrameSink.frame`, one frame at a time. `frames.pyx` beside this file is the same,
compiled.
"""

from __future__ import annotations

from harebell.base.errors import ProtocolError
from harebell.base.limits import FRAME_OVERHEAD_BYTES, HANDSHAKE_FRAME_BYTES
from harebell.base.message import Properties
from harebell.base.work import Work
from harebell.kernels.limits import FRAME_FUDGE_BYTES, PASSAGE_MESSAGES
from harebell.kernels.output import Passage
from harebell.kernels.properties import parse_properties

METHOD = 1
HEADER = 2
BODY = 3
END = 0xCE

# Type, channel and size before the payload of a frame.
_HEAD = 7
# Class, weight and body size before the property list of a content header (AMQP 0-9-1 4.2.6.1).
_HEADER_FIXED = 12
_TICKET_SHIFT = 8
# Class 60 and a method of it, as the payload of a method frame begins (4.2.4).
_PUBLISH = b"\x00\x3c\x00\x28"
_DELIVER = b"\x00\x3c\x00\x3c"
_ACK = b"\x00\x3c\x00\x50"
# Class, method, delivery tag (8) and the octet of the bit `multiple`.
_ACK_SIZE = 13
# Class 60 and the weight, which is unused and must be zero (4.2.6.1).
_BASIC_CONTENT = b"\x00\x3c\x00\x00"
_HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


class FrameSink:
    """The methods that a scanner calls. Each returns 0 and may raise `ProtocolError`."""

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

    def passage(self, channel: int, flags: int, exchange: str, routing_key: str) -> Passage | None:
        """The passage of publishes that repeat the last one's method; None for most.

        Until it has ended, nothing else of the sink is called.
        """
        return None

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
        self._last: tuple[int, str, str] = (0, "", "")
        self._looks = False
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

    def break_cycle(self) -> int:
        """End the scanner: drop the kept input and the sink, which may refer to this scanner."""
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
        # Only the frame or content that a read has cut is copied together; the rest of the read is
        # scanned where it lies.
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

    def is_heartbeat(self, data: bytes | memoryview) -> bool:
        """Return whether new input is a heartbeat alone, between two frames: no need to feed it."""
        waits = self.hold or self.stopped or self._rest or self._held
        return not waits and data == _HEARTBEAT

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
        """Return the bytes needed before the next scan; `more`: further input is there."""
        if len(rest) < _HEAD:
            return _HEAD
        size = int.from_bytes(rest[3:7])
        if size > self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES:
            # Too large (4.2.3): the scan raises the error now, without waiting for all of it.
            return len(rest)
        if len(rest) < size + FRAME_OVERHEAD_BYTES:
            return size + FRAME_OVERHEAD_BYTES
        if self.fast and rest[0] == METHOD and self._begins_content(rest[_HEAD : _HEAD + 4]):
            return self._awaited(rest, size, more)
        return len(rest)

    def _begins_content(self, which: bytes | bytearray) -> bool:
        # While a content is assembled from single frames, a method on its channel is an error that
        # only the sink finds (4.2.6).
        return not self.pending and which == (_DELIVER if self.client else _PUBLISH)

    def _awaited(self, unit: bytes | bytearray, size: int, more: bool) -> int:
        """Return the bytes that make a content whole, or show that it must be passed as frames.

        Returns `len(unit)` when that is known already. A frame that has not begun is awaited only
        when there is `more` input: a peer may wait for an answer to what it has sent.
        """
        have = len(unit)
        limit = self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES
        offset = size + FRAME_OVERHEAD_BYTES
        body_size = 0
        for kind in (HEADER, BODY):
            if have <= offset:
                return offset + 1 if more else have
            if unit[offset] != kind:
                # Frames of other channels may lie in between (4.2.6): it goes frame by frame.
                return have
            if have < offset + _HEAD:
                return offset + _HEAD
            size = int.from_bytes(unit[offset + 3 : offset + 7])
            fits = size == body_size if kind == BODY else _HEADER_FIXED + 2 <= size <= limit
            if unit[offset + 1 : offset + 3] != unit[1:3] or not fits:
                return have
            payload = offset + _HEAD
            offset += size + FRAME_OVERHEAD_BYTES
            if have < offset:
                return offset
            if kind == HEADER:
                body_size = int.from_bytes(unit[payload + 4 : payload + _HEADER_FIXED])
                # A body of several frames is gathered elsewhere; one without octets has no frame.
                known = unit[payload : payload + 4] == _BASIC_CONTENT
                if not known or not 0 < body_size <= limit:
                    break
        return have

    def _scan(self, data: bytes) -> int:
        offset = 0
        length = len(data)
        self._looks = not self.client
        while length - offset >= _HEAD:
            size = self._frame_size(data, offset)
            if length - offset < size + FRAME_OVERHEAD_BYTES:
                break
            # A wrong end means that the sizes before cannot be trusted either (4.2.3).
            marker = data[offset + _HEAD + size]
            kind = data[offset]
            if marker != END:
                raise ProtocolError(
                    501,
                    f"type {kind}, all octets = <<>>: {{invalid_frame_end_marker,{marker}}}",
                )
            whole = used = self._whole(data, offset, size) if self.fast and kind == METHOD else 0
            if used < 0:
                break
            if used == 0:
                channel = int.from_bytes(data[offset + 1 : offset + 3])
                self._frame(kind, channel, data[offset + _HEAD : offset + _HEAD + size])
                used = size + FRAME_OVERHEAD_BYTES
            like, offset = offset, offset + used
            self._count()
            method = data[like : like + size + FRAME_OVERHEAD_BYTES]
            looks = self._looks and whole and method[_HEAD : _HEAD + 4] == _PUBLISH
            goes_on = not self.hold and not self.stopped
            if looks and goes_on and data.startswith(method, offset):
                offset += self._pass_repeats(data, method, offset)
            if self.stopped:
                # What follows a close must be discarded (connection.close): all of it is used.
                return length
            if self.hold:
                return offset
        return offset

    def _count(self) -> None:
        # One read may hold thousands of small frames: other connections get their turn.
        if self.work.frame():
            self.hold = self.cut = True

    def _pass_repeats(self, data: bytes, method: bytes, offset: int) -> int:
        """Pass on publishes whose method is this one again.

        Returns:
            octets used.
        """
        channel = int.from_bytes(method[1:3])
        passage = self._sink.passage(channel, *self._last)
        self._looks = False
        if passage is None:
            return 0
        begin = offset
        size = len(method) - FRAME_OVERHEAD_BYTES
        try:
            while not self.hold and not self.stopped and data.startswith(method, offset):
                found = self._find_content(data, offset, channel, size)
                properties = None if found is None else self._properties(found[0])
                if found is None or properties is None or properties.suspect:
                    break
                if not passage.put(properties, found[1]):
                    break
                offset = found[2]
                self._count()
        finally:
            passage.end()
        # Where publishes repeat each other rarely, a passage costs more than it saves.
        self._looks = passage.count >= PASSAGE_MESSAGES
        return offset - begin

    def _frame(self, kind: int, channel: int, payload: bytes) -> None:
        """Pass on a frame, or gather it."""
        if kind == BODY and channel == self._gather_channel:
            # More than the header announced: the sink gets both, and refuses the content (4.2.6.2).
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

    def _frame_size(self, data: bytes, offset: int) -> int:
        size = int.from_bytes(data[offset + 3 : offset + 7])
        payload_max = self.frame_max - FRAME_OVERHEAD_BYTES
        if size > payload_max + FRAME_FUDGE_BYTES:
            raise ProtocolError(
                501,
                f"type {data[offset]}, all octets = <<>>: {{frame_too_large,{size},{payload_max}}}",
            )
        return size

    def _whole(self, data: bytes, offset: int, size: int) -> int:
        """Hand over a content or an ack that begins here.

        Returns:
            octets used; 0 when it must go frame by frame, -1 when more of it is to come first.
        """
        which = data[offset + _HEAD : offset + _HEAD + 4]
        channel = int.from_bytes(data[offset + 1 : offset + 3])
        if which == _ACK and size == _ACK_SIZE:
            tag = int.from_bytes(data[offset + 11 : offset + 19])
            self._sink.ack(channel, tag, bool(data[offset + 19] & 1))
            return size + FRAME_OVERHEAD_BYTES
        if not self._begins_content(which):
            return 0
        used = self._whole_content(data, offset, channel, size)
        if used == 0:
            unit = data[offset:]
            if self._awaited(unit, size, False) > len(unit):
                return -1
        return used

    def _whole_content(self, data: bytes, offset: int, channel: int, size: int) -> int:
        found = self._find_content(data, offset, channel, size)
        if found is None:
            return 0
        raw, body, end = found
        properties = self._properties(raw)
        if properties is None:
            return 0
        arguments = data[offset + _HEAD + 4 : offset + _HEAD + size]
        if self.client:
            self._hand_delivery(channel, arguments, properties, body)
        elif self._hand_publish(channel, arguments, properties, body):
            return 0
        return end - offset

    def _find_content(
        self, data: bytes, offset: int, channel: int, size: int
    ) -> tuple[bytes, bytes, int] | None:
        """Return property list, body and end of a content; None if its frames are not adjacent."""
        limit = self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES
        here = offset + size + FRAME_OVERHEAD_BYTES
        header = self._neighbour(data, here, HEADER, channel)
        if header is None or len(header) < _HEADER_FIXED + 2 or header[:4] != _BASIC_CONTENT:
            return None
        here += len(header) + FRAME_OVERHEAD_BYTES
        body_size = int.from_bytes(header[4:12])
        body = b""
        if body_size:
            neighbour = self._neighbour(data, here, BODY, channel) if body_size <= limit else None
            if neighbour is None or len(neighbour) != body_size:
                return None
            body = neighbour
            here += body_size + FRAME_OVERHEAD_BYTES
        return header[_HEADER_FIXED:], body, here

    def _neighbour(self, data: bytes, offset: int, kind: int, channel: int) -> bytes | None:
        """Return the payload of a complete frame of this type and channel; None for another."""
        if len(data) - offset < FRAME_OVERHEAD_BYTES or data[offset] != kind:
            return None
        size = int.from_bytes(data[offset + 3 : offset + 7])
        end = offset + _HEAD + size
        if size > self.frame_max - FRAME_OVERHEAD_BYTES + FRAME_FUDGE_BYTES or end >= len(data):
            return None
        if int.from_bytes(data[offset + 1 : offset + 3]) != channel or data[end] != END:
            return None
        return data[offset + _HEAD : end]

    def _properties(self, raw: bytes) -> Properties | None:
        """Return the properties; None for a malformed list, which the frame path reports."""
        # Publishers repeat their properties: equal ones share one object, and are checked once.
        if raw != self._last_properties.raw:
            try:
                self._last_properties = parse_properties(raw)
            except ProtocolError:
                return None
        return self._last_properties

    def _hand_publish(
        self, channel: int, arguments: bytes, properties: Properties, body: bytes
    ) -> int:
        """Call the sink; return 1 for a malformed method, which the frame path reports."""
        # ticket(2) exchange(shortstr) routing-key(shortstr) bits(1): five octets without the texts.
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
        self._last = (flags, exchange, key)
        self._sink.publish(channel, flags, exchange, key, properties, body)
        return 0

    def _hand_delivery(
        self, channel: int, arguments: bytes, properties: Properties, body: bytes
    ) -> None:
        # consumer-tag(shortstr) delivery-tag(8) redelivered(1) exchange(shortstr)
        # routing-key(shortstr): twelve octets without the texts; `offset` is that of the exchange.
        size = len(arguments)
        offset = 10 + arguments[0] if size else 0
        fits = size >= 12 and size >= offset + 2
        if fits:
            fits = size >= offset + 2 + arguments[offset]
        if fits:
            key_at = offset + 2 + arguments[offset]
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
            _text(arguments[offset + 1 : key_at - 1]),
            _text(arguments[key_at:]),
            properties,
            body,
        )
