"""Scan the input for frames of AMQP 1.0, and pass what every message needs to the sink by field.

    0      4      5      6         8               4 * doff
    +------+------+------+---------+----------------+--------------------------------+
    | size | doff | type | channel | extended header | body: performative, payload   |
    +------+------+------+---------+----------------+--------------------------------+
      of all  in words of four octets; at least 2     empty in a frame that only keeps alive

    performative   00 53 14 list transfer   00 53 15 list disposition   00 53 13 list flow
    list           45   or   C0 size(1) count(1) fields   or   D0 size(4) count(4) fields

A transfer with a whole message, whose sections `harebell.kernels.sections` splits, is one call. So
is each other transfer, disposition and flow. Every other frame, and each that is malformed or has
another form, goes through `PerformativeSink.frame`, whose reader finds and names the fault.

Settled transfers in a row that differ in delivery-id and tag only pass together, by a passage of
the sink (`harebell.kernels.output`).

`performatives.pyx` beside this file is the same, compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harebell.base.errors import DecodeError, FramingError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.base.message import Properties
from harebell.base.work import Work
from harebell.kernels.limits import PASSAGE_MESSAGES
from harebell.kernels.output import Passage
from harebell.kernels.sections import compound, parse_properties, skip, split

AMQP = 0
SASL = 1
"""Types of frames."""

HEAD = 8
"""Octets of a frame before its extended header and body."""

SETTLED = 1
SETTLED_GIVEN = 2
MORE = 4
RESUME = 8
ABORTED = 16
BATCHABLE = 32
SECOND = 64
SECOND_GIVEN = 128
"""Flags of a transfer: whether it is settled and says so, and so on; SECOND: its rcv-settle-mode is
`second`. A field that is not given has the value of the first transfer of its delivery."""

DRAIN = 1
ECHO = 2
"""Flags of a flow."""

ACCEPTED = 0x24
REJECTED = 0x25
RELEASED = 0x26
MODIFIED = 0x27

_MIN_DOFF = 2
_FLOW = 0x13
_TRANSFER = 0x14
_DISPOSITION = 0x15
_LIST0, _LIST8, _LIST32 = 0x45, 0xC0, 0xD0
_NULL, _TRUE, _FALSE, _BOOLEAN = 0x40, 0x41, 0x42, 0x56
_UINT0, _SMALL_UINT, _UINT = 0x43, 0x52, 0x70
_UBYTE = 0x50
_BINARY8, _BINARY32 = 0xA0, 0xB0
_SMALL_ULONG = 0x53
_TAG_BYTES = 32
"""Most octets of a delivery tag (AMQP 1.0 2.8.7)."""
_MODIFYING = RESUME | ABORTED | MORE
_ALIKE_BYTES = 64
"""Longest performative that a following one is compared with."""


class PerformativeSink:
    """The methods that a scanner calls. Each returns 0 and may raise `ConditionError`.

    A number that the peer left out is -1.
    """

    def frame(self, channel: int, kind: int, body: bytes) -> int:
        """One frame.

        Args:
            channel: that it came on.
            kind: its type.
            body: a performative and its payload; b"" if the frame only keeps alive.
        """
        raise NotImplementedError

    def transfer(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        properties: Properties,
        body: bytes,
    ) -> int:
        """A transfer with a whole message.

        Args:
            channel: that it came on.
            handle: of the link.
            delivery_id: of the delivery.
            tag: of the delivery; None if it was left out.
            message_format: usually 0.
            flags: SETTLED, SETTLED_GIVEN, BATCHABLE, SECOND, SECOND_GIVEN.
            properties: the sections before the body, and the values that the broker needs of them.
            body: of the message; `properties.family` says what it is.
        """
        raise NotImplementedError

    def passage(self, channel: int, handle: int, flags: int) -> Passage | None:
        """The passage of settled transfers that repeat the last one; None for most.

        Until it has ended, nothing else of the sink is called.
        """
        return None

    def partial(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        state: bytes,
        payload: bytes,
    ) -> int:
        """A transfer of another kind: with a part of a message, a state, or a malformed message.

        Args:
            channel: as for `transfer`, like the next four.
            handle: of the link.
            delivery_id: of the delivery.
            tag: of the delivery; None if it was left out.
            message_format: usually 0.
            flags: also MORE, RESUME, ABORTED.
            state: the encoded state; b"" if there is none.
            payload: octets of the sections.
        """
        raise NotImplementedError

    def disposition(
        self,
        channel: int,
        role: bool,
        first: int,
        last: int,
        settled: bool,
        outcome: int,
        state: bytes,
    ) -> int:
        """A disposition.

        Args:
            channel: that it came on.
            role: true if a receiver sent it.
            first: the first delivery.
            last: the last delivery.
            settled: whether they are settled.
            outcome: the code of the state's descriptor, as ACCEPTED; 0 without a state.
            state: the encoded state, if it has fields; else b"".
        """
        raise NotImplementedError

    def flow(
        self,
        channel: int,
        next_incoming_id: int,
        incoming_window: int,
        next_outgoing_id: int,
        outgoing_window: int,
        handle: int,
        delivery_count: int,
        link_credit: int,
        available: int,
        flags: int,
    ) -> int:
        """A flow without properties; flags are DRAIN and ECHO, the rest as in the performative."""
        raise NotImplementedError


class PerformativeScanner:
    """Bytes in, calls of the sink out.

    Args:
        sink: called for every frame, in order.

    Attributes:
        frame_max: largest frame accepted, in octets.
        fast: whether transfers, dispositions and flows are handed over by field.
        stopped: the sink sets it to have all further input ignored.
        hold: the sink sets it to have further input kept; `feed(b"")` goes on after it is unset.
        pending: deliveries that the sink has begun and not ended; while there is one, a transfer
            that is no whole message by itself cannot be told from one that is.
        work: counts the frames; `hold` is set when that has to stop.
        cut: whether `hold` was set for that; the caller of `feed` unsets it.
    """

    def __init__(self, sink: PerformativeSink) -> None:
        self._sink = sink
        self.frame_max = HANDSHAKE_FRAME_BYTES
        self.fast = False
        self.stopped = False
        self.hold = False
        self.cut = False
        self.pending = 0
        self.work = Work()
        self._rest = b""
        self._last_properties = Properties(b"", family=-1)
        self._alike: _Alike | None = None
        self._looks = False

    def break_cycle(self) -> int:
        """End the scanner: drop the kept input and the sink, which may refer to this scanner."""
        self.stopped = True
        self._sink = PerformativeSink()
        self._rest = b""
        return 0

    @property
    def buffered(self) -> int:
        """Return the number of bytes that are kept until the rest of their frame arrives."""
        return len(self._rest)

    def feed(self, data: bytes | memoryview) -> int:
        """Scan new input.

        Raises:
            FramingError: a frame has an impossible head.
        """
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
        self._looks = True
        while len(data) - at >= HEAD:
            if self._looks and self.pending == 0 and self._alike is not None:
                at += self._pass_repeats(self._alike, data, at)
                if self.stopped or self.hold or len(data) - at < HEAD:
                    break
            size = int.from_bytes(data[at : at + 4])
            start = 4 * data[at + 4]
            self._check(size, start)
            if len(data) - at < size:
                break  # The rest of the frame comes with the next read.
            kind = data[at + 5]
            channel = int.from_bytes(data[at + 6 : at + HEAD])
            body = data[at + start : at + size]
            if not (self.fast and kind == AMQP and self._by_field(channel, body)):
                # It may begin or end links: what repeats is looked at behind a transfer only.
                self._alike = None
                self._sink.frame(channel, kind, body)
            at += size
            self._count()
            if self.stopped or self.hold:
                break
        return at

    def _count(self) -> None:
        # Enough for one turn: the rest of the input is kept until the caller goes on.
        if self.work.frame():
            self.hold = self.cut = True

    def _pass_repeats(self, alike: _Alike, data: bytes, start: int) -> int:
        """Pass on settled transfers that are like the last one; return how many octets they are."""
        at = start
        passage: Passage | None = None
        try:
            while not self.hold and not self.stopped:
                size = int.from_bytes(data[at : at + 4])
                body = data[at + HEAD : at + size]
                whole = HEAD <= size <= min(len(data) - at, self.frame_max)
                if not whole or data[at + 4 : at + HEAD] != alike.head or not alike.begins(body):
                    break
                if passage is None:
                    self._looks = False
                    passage = self._sink.passage(*alike.known)
                    if passage is None:
                        break
                if passage.count >= passage.limit:
                    break
                try:
                    raw, content, family = split(body[alike.size :])
                    properties = self._properties(raw, family)
                except DecodeError:
                    break
                if properties.suspect or not passage.put(properties, content):
                    break
                at += size
                self._count()
        finally:
            if passage is not None:
                passage.end()
                # Where transfers repeat each other rarely, a passage costs more than it saves.
                self._looks = passage.count >= PASSAGE_MESSAGES
        return at - start

    def _check(self, size: int, start: int) -> None:
        # The texts are RabbitMQ's.
        if size < HEAD:
            raise FramingError(f"frame size ({size} bytes) < minimum frame size ({HEAD} bytes)")
        if size > self.frame_max:
            raise FramingError(
                f"frame size ({size} bytes) > maximum frame size ({self.frame_max} bytes)"
            )
        if start < 4 * _MIN_DOFF:
            raise FramingError(f"data offset ({start // 4}) < minimum data offset ({_MIN_DOFF})")
        if start > size:
            raise FramingError(f"data offset ({start} bytes) > frame size ({size} bytes)")

    def _by_field(self, channel: int, body: bytes) -> bool:
        """Pass a performative on; return whether it is one that is passed on by field."""
        if len(body) < 4 or body[0] or body[1] != _SMALL_ULONG:
            return False
        # Only the reading may fail: what the sink raises is for the caller of `feed`.
        try:
            call = self._call(channel, body)
        except (_UnreadableError, DecodeError):
            return False
        if call is None:
            return False
        call()
        return True

    def _call(self, channel: int, body: bytes) -> Callable[[], int] | None:
        """Return the call of the sink for a performative; None if it is none of those by field."""
        if body[2] == _TRANSFER:
            return self._transfer(channel, body)
        if body[2] == _DISPOSITION:
            return self._disposition(channel, _Fields(body, 3))
        if body[2] == _FLOW:
            return self._flow(channel, _Fields(body, 3))
        return None

    def _transfer(self, channel: int, body: bytes) -> Callable[[], int]:
        fields = _Fields(body, 3)
        handle = fields.uint(mandatory=True)
        id_at = fields.at
        delivery_id = fields.uint()
        tag = fields.binary()
        message_format = fields.uint()
        flags = 0
        settled = fields.boolean()
        if settled >= 0:
            flags |= SETTLED_GIVEN | (SETTLED if settled else 0)
        flags |= MORE if fields.boolean() == 1 else 0
        mode = fields.ubyte()
        if mode > 1:
            raise _UnreadableError
        if mode >= 0:
            flags |= SECOND_GIVEN | (SECOND if mode else 0)
        state = fields.any()
        for flag in (RESUME, ABORTED, BATCHABLE):
            flags |= flag if fields.boolean() == 1 else 0
        fields.close()
        payload = body[fields.end :]
        known = (channel, handle, delivery_id, tag, message_format, flags)
        if self.pending == 0 and not state and not flags & _MODIFYING:
            self._alike = _alike(channel, handle, flags, body[: fields.end], id_at)
            try:
                raw, content, family = split(payload)
                properties = self._properties(raw, family)
            except DecodeError:
                # The sink gets it as a part of a message, and names the fault.
                pass
            else:
                return partial(self._sink.transfer, *known, properties, content)
        return partial(self._sink.partial, *known, state, payload)

    def _properties(self, raw: bytes, family: int) -> Properties:
        """Return the properties of the sections; equal ones in a row are one object."""
        last = self._last_properties
        if last.family != family or last.raw != raw:
            self._last_properties = parse_properties(raw, family)
        return self._last_properties

    def _disposition(self, channel: int, fields: _Fields) -> Callable[[], int]:
        role = fields.boolean()
        first = fields.uint(mandatory=True)
        last = fields.uint()
        settled = fields.boolean() == 1
        state = fields.any()
        fields.boolean()
        fields.close()
        outcome = 0
        if role < 0:
            raise _UnreadableError
        if state:
            # Another form of descriptor is decoded by the reader of `frame`.
            if state[:2] != b"\0\x53" or len(state) < 4:
                raise _UnreadableError
            outcome = state[2]
            if _is_empty(state[3:]):
                state = b""
        last = first if last < 0 else last
        return partial(
            self._sink.disposition, channel, role == 1, first, last, settled, outcome, state
        )

    def _flow(self, channel: int, fields: _Fields) -> Callable[[], int]:
        next_incoming_id = fields.uint()
        # Incoming window, next outgoing id and outgoing window are mandatory.
        incoming_window = fields.uint(mandatory=True)
        next_outgoing_id = fields.uint(mandatory=True)
        outgoing_window = fields.uint(mandatory=True)
        handle, delivery_count, link_credit, available = (fields.uint() for _ in range(4))
        flags = DRAIN if fields.boolean() == 1 else 0
        flags |= ECHO if fields.boolean() == 1 else 0
        # Properties are rare: the reader of `frame` decodes them.
        if fields.any():
            raise _UnreadableError
        fields.close()
        return partial(
            self._sink.flow,
            channel,
            next_incoming_id,
            incoming_window,
            next_outgoing_id,
            outgoing_window,
            handle,
            delivery_count,
            link_credit,
            available,
            flags,
        )


class _Alike:
    """A settled transfer that following ones may be like.

    Args:
        known: its channel, handle and flags, for `PerformativeSink.passage`.
        performative: its octets before the payload.
        id_at: where the constructor of its delivery-id is.
        tag_at: where that of its tag is.
    """

    def __init__(
        self, known: tuple[int, int, int], performative: bytes, id_at: int, tag_at: int
    ) -> None:
        self.known = known
        self.head = bytes((_MIN_DOFF, AMQP)) + known[0].to_bytes(2)
        self.size = len(performative)
        tag_end = tag_at + 2 + performative[tag_at + 1]
        # All but the delivery-id and the tag.
        self._parts = [
            (slice(at, end), performative[at:end])
            for at, end in ((0, id_at + 1), (tag_at, tag_at + 2), (tag_end, self.size))
        ]

    def begins(self, body: bytes) -> bool:
        """Return whether a body begins with a transfer that is like this one."""
        if len(body) < self.size:
            return False
        return all(body[place] == part for place, part in self._parts)


def _alike(channel: int, handle: int, flags: int, performative: bytes, id_at: int) -> _Alike | None:
    """Note a settled transfer with a delivery-id and a short tag."""
    widths = {_SMALL_UINT: 1, _UINT: 4}
    if not flags & SETTLED or len(performative) > _ALIKE_BYTES or id_at >= len(performative):
        return None
    tag_at = id_at + 1 + widths.get(performative[id_at], len(performative))
    if tag_at >= len(performative) or performative[tag_at] != _BINARY8:
        return None
    return _Alike((channel, handle, flags), performative, id_at, tag_at)


class _UnreadableError(Exception):
    """A performative that has to be decoded the slow way, which finds and names its fault."""


class _Fields:
    """The fields of a list, one after the other; those that were left out are null.

    Args:
        data: octets with the list in them.
        start: where its constructor begins.
    """

    def __init__(self, data: bytes, start: int) -> None:
        code = data[start]
        self._data = data
        self._left = 0
        self.at = self.end = start + 1
        if code in (_LIST8, _LIST32):
            self.end = skip(data, start, len(data))
            self._left, self.at = compound(data, code, start + 1, self.end)
        elif code != _LIST0:
            raise _UnreadableError

    def _code(self) -> int:
        """Return the constructor of the next field; that of null if there is none."""
        if self._left == 0:
            return _NULL
        if self.at >= self.end:
            raise _UnreadableError
        self._left -= 1
        self.at += 1
        return self._data[self.at - 1]

    def _take(self, width: int) -> bytes:
        start = self.at
        self.at += width
        if self.at > self.end:
            raise _UnreadableError
        return self._data[start : self.at]

    def uint(self, mandatory: bool = False) -> int:
        """Read a uint; -1 for null."""
        code = self._code()
        if code == _NULL and not mandatory:
            return -1
        if code == _UINT0:
            return 0
        if code == _SMALL_UINT:
            return self._take(1)[0]
        if code == _UINT:
            return int.from_bytes(self._take(4))
        raise _UnreadableError

    def ubyte(self) -> int:
        """Read a ubyte; -1 for null."""
        code = self._code()
        if code == _NULL:
            return -1
        if code == _UBYTE:
            return self._take(1)[0]
        raise _UnreadableError

    def boolean(self) -> int:
        """Read a boolean: 1, 0, or -1 for null."""
        code = self._code()
        if code == _BOOLEAN:
            code = {0: _FALSE, 1: _TRUE}.get(self._take(1)[0], 0)
        known = {_NULL: -1, _FALSE: 0, _TRUE: 1}
        if code not in known:
            raise _UnreadableError
        return known[code]

    def binary(self) -> bytes | None:
        """Read a binary that is a delivery tag; None for null."""
        code = self._code()
        if code == _NULL:
            return None
        if code not in (_BINARY8, _BINARY32):
            raise _UnreadableError
        tag = self._take(int.from_bytes(self._take(1 if code == _BINARY8 else 4)))
        if len(tag) > _TAG_BYTES:
            raise _UnreadableError
        return tag

    def any(self) -> bytes:
        """Read the octets of any value; b"" for null."""
        start = self.at
        if self._left == 0:
            return b""
        self._left -= 1
        self.at = skip(self._data, start, self.end)
        value = self._data[start : self.at]
        return b"" if value[0] == _NULL else value

    def close(self) -> None:
        """Check that there is nothing behind the last field."""
        if self._left or self.at != self.end:
            raise _UnreadableError


def _is_empty(data: bytes) -> bool:
    """Return whether the list of a state has no fields."""
    return data in (b"\x45", b"\xc0\x01\0", b"\xd0\0\0\0\x04\0\0\0\0")
