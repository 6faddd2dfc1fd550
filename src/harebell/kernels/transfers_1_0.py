"""Output in frames of AMQP 1.0, which `performatives.py` draws.

A delivery is a transfer with the sections as they were published, but for the header, which is
written anew, and the message annotations, which get what only a delivery has:

    raw      header?  annotations?  properties?  application-properties?
    sent     header'  annotations'  properties?  application-properties?  body

    header'       durable, priority, ttl, first-acquirer (not of a dead letter), delivery-count
    annotations'  those of the publisher, without such that the broker adds, and
                  x-exchange string, x-routing-key string; x-stream-offset long, in a stream;
                  x-delivery-count long, x-acquired-count long, when deliveries have failed

`transfers_1_0.pyx` beside this file is the same, compiled.
"""

from __future__ import annotations

from typing import Any

from harebell.base.body_frames import TransferFrames, transfer_head
from harebell.base.message import FAMILY_1_0, PERSISTENT, Message, Properties
from harebell.kernels.limits import LONG_BODY_BYTES, PLAIN_LIST_BYTES
from harebell.kernels.output import OutBuffer, OutputPassage
from harebell.kernels.sections import HEADER, MESSAGE_ANNOTATIONS, compound, section, skip

_HEAD = 8
_TAG_BYTES = 32
_SERIALS = 1 << 32
_MORE_HEAD = 24
"""Octets before the payload in a frame that goes on with a delivery."""
_DATA = b"\x00\x53\x75"
_DEATHS = b"\xa3\x0cx-opt-deaths"
_ADDED = (
    b"x-exchange",
    b"x-routing-key",
    b"x-stream-offset",
    b"x-delivery-count",
    b"x-acquired-count",
)


class TransferBuffer(OutBuffer):
    """One connection's output of one turn, in frames of AMQP 1.0."""

    def performative(self, channel: int, body: bytes) -> int:
        """Append a frame with a performative that is encoded, and its payload."""
        self.raw(_frame_head(channel, len(body)) + body)
        return 0

    def transfer(
        self,
        channel: int,
        handle: int,
        delivery_id: int,
        tag: bytes | None,
        settled: bool,
        first_acquirer: bool,
        delivery_count: int,
        ttl: int,
        message: Message,
        frame_max: int,
        window: int,
    ) -> int:
        """Append a delivery, if its frames are no more than the window; return how many they are.

        Args:
            channel: of the session.
            handle: of the link.
            delivery_id: of the delivery.
            tag: of the delivery, at most 32 octets; None for the delivery-id, in four.
            settled: whether it is settled with that.
            first_acquirer: whether it was delivered to no other before.
            delivery_count: failed deliveries before this one.
            ttl: what is left of the publisher's time to live, in milliseconds; -1 for all of it. It
                has no effect for a message without one.
            message: what is delivered, of the family FAMILY_1_0 or FAMILY_1_0_SECTIONS.
            frame_max: largest frame, in octets; at least 512.
            window: most frames that the session may send.

        Returns:
            The number of frames; 0 if they are more than the window, and nothing is written.

        Raises:
            ValueError: the tag is too long.
        """
        if tag is None:
            tag = delivery_id.to_bytes(4)
        if len(tag) > _TAG_BYTES:
            raise ValueError(f"a delivery tag of {len(tag)} octets, at most {_TAG_BYTES} may be")
        before = _before_body(message, first_acquirer, delivery_count, ttl)
        body = message.body
        fields = _uint(handle) + _uint(delivery_id) + bytes((0xA0, len(tag))) + tag + b"\x43"
        fields += b"\x41" if settled else b"\x42"
        head = b"\x00\x53\x14\xc0" + bytes((len(fields) + 2, 6)) + fields
        later = self.postpones and len(body) >= LONG_BODY_BYTES
        payload = before if later else before + body
        first = frame_max - _HEAD - len(head) - 1
        limit = frame_max - _MORE_HEAD
        left = max(len(payload) - first, 0)
        count = 1 + -(-left // limit) + (-(-len(body) // limit) if later else 0)
        if count > window:
            return 0
        more = b"\x41" if left or later else b"\x42"
        self.performative(channel, head + more + payload[:first])
        for at in range(first, len(payload), limit):
            part = payload[at : at + limit]
            ends = at + limit >= len(payload) and not later
            names = (channel.to_bytes(2), handle.to_bytes(4))
            self.raw(transfer_head(*names, len(part), not ends) + part)
        if later:
            self.postpone(TransferFrames(channel, handle, body, limit))
        return count

    def disposition(
        self, channel: int, role: bool, first: int, last: int, settled: bool, state: bytes
    ) -> int:
        """Append a disposition.

        Args:
            channel: of the session.
            role: true as the receiver of the deliveries.
            first: the first delivery.
            last: the last delivery.
            settled: whether they are settled.
            state: encoded; b"" for none.
        """
        fields = (b"\x41" if role else b"\x42") + _uint(first) + _uint(last)
        fields += (b"\x41" if settled else b"\x42") + (state or b"\x40")
        self.performative(channel, b"\x00\x53\x15" + _list(5, fields))
        return 0

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
        drain: bool,
        echo: bool,
    ) -> int:
        """Append a flow; numbers of -1 are left out, which is null."""
        session = (next_incoming_id, incoming_window, next_outgoing_id, outgoing_window)
        numbers = (*session, handle, delivery_count, link_credit, available)
        fields = b"".join(b"\x40" if number < 0 else _uint(number) for number in numbers)
        fields += (b"\x41" if drain else b"\x42") + (b"\x41" if echo else b"\x42")
        self.performative(channel, b"\x00\x53\x13" + _list(10, fields))
        return 0


class TransferPassage(OutputPassage):
    """The way into the output of a link that settles what it sends.

    Args:
        consumer, out, output_max: as for `OutputPassage`.
        channel: of the session.
        handle: of the link.
        number: the delivery-id of the next message.
        exchange, routing_key: of the messages.
        frame_max: largest frame the peer takes, in octets.
    """

    def __init__(
        self,
        consumer: Any,
        out: TransferBuffer,
        channel: int,
        handle: int,
        number: int,
        exchange: str,
        routing_key: str,
        frame_max: int,
        output_max: int,
    ) -> None:
        # A body that is encoded when it is written goes the usual way.
        super().__init__(consumer, out, LONG_BODY_BYTES - 1, output_max, False)
        self._frames = out
        self._link = (channel, handle)
        self._number = number
        self._route = (exchange, routing_key)
        self._frame_max = frame_max

    def put(self, properties: Properties, body: bytes) -> bool:
        """Deliver a message; False if it has to go the usual way, as one of several frames."""
        size = len(properties.raw) + len(body)
        full = self._frames.size >= self.output_max
        if full or size > self.size_max or len(properties.raw) > PLAIN_LIST_BYTES:
            return False
        message = Message(*self._route, properties, body)
        number = self._number % _SERIALS
        frame_max = self._frame_max
        if not self._frames.transfer(
            *self._link, number, b"", True, True, 0, -1, message, frame_max, window=1
        ):
            return False
        self.arrivals.count(len(body), 1, self.answered)
        self._number += 1
        self.count += 1
        return True


def delivered_payload(
    message: Message, first_acquirer: bool, delivery_count: int, ttl: int
) -> bytes:
    """Return the whole payload of a delivery; the arguments are those of `transfer`."""
    return _before_body(message, first_acquirer, delivery_count, ttl) + message.body


def _before_body(message: Message, first_acquirer: bool, delivery_count: int, ttl: int) -> bytes:
    """Return the sections before the body, and what is before the octets of a data section."""
    raw = message.raw
    published_ttl, pairs, at = -1, b"", 0
    count = 0
    while at < len(raw):
        code, value, after = section(raw, at, len(raw))
        if code == HEADER:
            published_ttl = _ttl(raw, value, after)
        elif code == MESSAGE_ANNOTATIONS:
            count, pairs, died = _kept(raw, value, after)
            first_acquirer = first_acquirer and not died
        else:
            break
        at = after
    left = published_ttl if published_ttl < 0 or ttl < 0 else min(published_ttl, ttl)
    sections = _header(message, first_acquirer, delivery_count, left)
    sections += _annotations(message, count, pairs) + raw[at:]
    if message.family == FAMILY_1_0:
        size = len(message.body)
        length = bytes((0xA0, size)) if size <= 255 else b"\xb0" + size.to_bytes(4)
        sections += _DATA + length
    return sections


def _ttl(raw: bytes, start: int, end: int) -> int:
    """Return the time to live in the list of a header; -1 without one."""
    if raw[start] == 0x45:
        return -1
    count, at = compound(raw, raw[start], start + 1, end)
    if count < 3:
        return -1
    for _ in range(2):
        at = skip(raw, at, end)
    if raw[at] == 0x43:
        return 0
    if raw[at] == 0x52:
        return raw[at + 1]
    return int.from_bytes(raw[at + 1 : at + 5]) if raw[at] == 0x70 else -1


def _kept(raw: bytes, start: int, end: int) -> tuple[int, bytes, bool]:
    """Return a map of annotations without those that the broker adds: a count, and its values.

    The last result is whether there is a history, as dead letters have.
    """
    count, at = compound(raw, raw[start], start + 1, end)
    kept = 0
    pairs, died = b"", False
    for _ in range(count // 2):
        value = skip(raw, at, end)
        after = skip(raw, value, end)
        name = raw[at + 2 : value] if raw[at] == 0xA3 else raw[at + 5 : value]
        if raw[at] not in (0xA3, 0xB3) or name not in _ADDED:
            kept += 2
            pairs += raw[at:after]
            died = died or raw[at:value] == _DEATHS
        at = after
    return kept, pairs, died


def _header(message: Message, first_acquirer: bool, delivery_count: int, ttl: int) -> bytes:
    fields = b"\x41" if message.delivery_mode == PERSISTENT else b"\x42"
    fields += b"\x40" if message.priority < 0 else bytes((0x50, message.priority))
    fields += b"\x40" if ttl < 0 else _uint(ttl)
    fields += (b"\x41" if first_acquirer else b"\x42") + _uint(delivery_count)
    return b"\x00\x53\x70" + _list(5, fields)


def _annotations(message: Message, count: int, pairs: bytes) -> bytes:
    for name, text in zip(_ADDED, (message.exchange, message.routing_key), strict=False):
        data = text.encode()
        pairs += _key(name) + bytes((0xA1, len(data))) + data
        count += 2
    if message.offset >= 0:
        pairs += _key(b"x-stream-offset") + _long(message.offset)
        count += 2
    if message.deliveries > 0:
        for name in (b"x-delivery-count", b"x-acquired-count"):
            pairs += _key(name) + _long(message.deliveries)
        count += 4
    if len(pairs) < 255 and count <= 255:
        return b"\x00\x53\x72\xc1" + bytes((len(pairs) + 1, count)) + pairs
    return b"\x00\x53\x72\xd1" + (len(pairs) + 4).to_bytes(4) + count.to_bytes(4) + pairs


def _key(name: bytes) -> bytes:
    return bytes((0xA3, len(name))) + name


def _long(number: int) -> bytes:
    return bytes((0x55, number)) if number < 128 else b"\x81" + number.to_bytes(8)


def _uint(number: int) -> bytes:
    if number == 0:
        return b"\x43"
    return bytes((0x52, number)) if number <= 255 else b"\x70" + number.to_bytes(4)


def _list(count: int, fields: bytes) -> bytes:
    if len(fields) < 255:
        return b"\xc0" + bytes((len(fields) + 1, count)) + fields
    return b"\xd0" + (len(fields) + 4).to_bytes(4) + count.to_bytes(4) + fields


def _frame_head(channel: int, size: int) -> bytes:
    return (size + _HEAD).to_bytes(4) + b"\2\0" + channel.to_bytes(2)
