"""Output: frames encoded one after the other into a buffer that is written once per turn.

The layouts are drawn in `frames.py`. `output.pyx` beside this file is the same, compiled.

What a consumer gets beside what was published goes into the header table without decoding it:

    before   flags | content-type content-encoding | size entry ...       | the rest
    after    flags | content-type content-encoding | size' entry ... more | the rest

    more     x-stream-offset l(8), in a stream
             x-delivery-count l(8) x-acquired-count l(8), when deliveries have failed

RabbitMQ 4.3 counts deliveries in `x-acquired-count`, and failed ones in `x-delivery-count`. Here
every delivery that returns to its queue counts as failed, so both are the same number.

Publishes that repeat their method need less. Where a consumer without acknowledgements takes each
at once, its basic.deliver is that of the message before, but for its tag (`DeliveryPassage`).
"""

from __future__ import annotations

from typing import Any

from harebell.base.arrivals import Arrivals
from harebell.base.body_frames import BodyFrames, encoded
from harebell.base.limits import FRAME_OVERHEAD_BYTES, NAME_BYTES
from harebell.base.message import Message, Properties
from harebell.kernels.limits import LONG_BODY_BYTES

_METHOD = 1
_HEADER = 2
_BODY = 3
_END = b"\xce"
_BASIC = 60
_NO_WEIGHT = b"\0\0"
_PUBLISH = b"\x00\x3c\x00\x28\x00\x00"
_DELIVER = b"\x00\x3c\x00\x3c"
_ACK = b"\x00\x3c\x00\x50"
_HEADERS = 0x2000
_BEFORE_HEADERS = (0x8000, 0x4000)
_OFFSET = b"\x0fx-stream-offset" + b"l"
_DELIVERIES = b"\x10x-delivery-count" + b"l"
_ACQUIRED = b"\x10x-acquired-count" + b"l"
# Type, channel and size before the payload of a frame.
_HEAD = 7
# Class and method before the consumer tag.
_IDS = 4
# Class, weight and body size before the property list of a content header (AMQP 0-9-1 4.2.6.1).
_HEADER_FIXED = 12


def _shortstr(text: str) -> bytes:
    data = text.encode()
    return bytes((len(data),)) + data


def _properties(message: Message) -> bytes:
    """Return a message's property list as its consumer gets it.

    A truncated list is sent unchanged: the publisher encoded it so.
    """
    raw = message.raw
    more = b""
    if message.offset >= 0:
        more = _OFFSET + message.offset.to_bytes(8)
    if message.deliveries > 0:
        count = message.deliveries.to_bytes(8)
        more += _DELIVERIES + count + _ACQUIRED + count
    # A list without flags is truncated: nothing can be added to it.
    if not more or len(raw) < 2:
        return raw
    flags = int.from_bytes(raw[:2])
    offset = 2
    for flag in _BEFORE_HEADERS:
        if flags & flag:
            if offset >= len(raw):
                return raw
            offset += 1 + raw[offset]
    end = offset
    if flags & _HEADERS:
        if offset + 4 > len(raw):
            return raw
        end = offset + 4 + int.from_bytes(raw[offset : offset + 4])
    if end > len(raw):
        return raw
    entries = raw[offset + 4 : end] + more
    size = len(entries).to_bytes(4)
    return (flags | _HEADERS).to_bytes(2) + raw[2:offset] + size + entries + raw[end:]


class OutBuffer:
    """One connection's output of one turn.

    Attributes:
        size: octets waiting to be taken.
        postpones: encode a body of `LONG_BODY_BYTES` or more when it is written, not before: the
            copy of 50 MiB would take the time of ten turns. `take_parts` has such bodies.
    """

    def __init__(self) -> None:
        self._data = bytearray()
        self._parts: list[bytes | BodyFrames] = []
        self._before = 0
        self.postpones = False

    @property
    def size(self) -> int:
        """Octets waiting to be taken."""
        return self._before + len(self._data)

    def __len__(self) -> int:
        return self.size

    def raw(self, data: bytes) -> int:
        """Append octets that are already frames."""
        self._data += data
        return 0

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        """Append one frame."""
        self._data += bytes((kind,)) + channel.to_bytes(2) + len(payload).to_bytes(4)
        self._data += payload
        self._data += _END
        return 0

    def deliver(
        self,
        channel: int,
        consumer_tag: bytes,
        tag: int,
        redelivered: bool,
        message: Message,
        frame_max: int,
    ) -> int:
        """Append basic.deliver and the message's content.

        Args:
            channel: the channel of the consumer.
            consumer_tag: the encoded consumer tag, length octet included.
            tag: the delivery tag.
            redelivered: whether it was delivered before.
            message: what is delivered.
            frame_max: largest frame the peer takes, in octets.
        """
        method = _DELIVER + consumer_tag + tag.to_bytes(8) + bytes((redelivered,))
        method += _shortstr(message.exchange) + _shortstr(message.routing_key)
        return self.content(channel, method, message, frame_max)

    def content(
        self, channel: int, method: bytes, message: Message, frame_max: int, kind: int = _BASIC
    ) -> int:
        """Append a method that is already encoded, and the message's content.

        Args:
            channel: the number of the channel.
            method: the method's payload.
            message: what has the content.
            frame_max: largest frame the peer takes, in octets.
            kind: the class of the content.
        """
        self.frame(_METHOD, channel, method)
        body = message.body
        header = kind.to_bytes(2) + _NO_WEIGHT + len(body).to_bytes(8) + _properties(message)
        self.frame(_HEADER, channel, header)
        payload_max = frame_max - FRAME_OVERHEAD_BYTES
        if self.postpones and len(body) >= LONG_BODY_BYTES:
            self.postpone(BodyFrames(channel, body, payload_max))
            return 0
        for offset in range(0, len(body), payload_max):
            self.frame(_BODY, channel, body[offset : offset + payload_max])
        return 0

    def publish(self, channel: int, flags: int, message: Message, frame_max: int) -> int:
        """Append basic.publish and the message's content.

        Raises:
            ValueError: the exchange or the routing key does not fit a shortstr.
        """
        exchange = message.exchange.encode()
        key = message.routing_key.encode()
        if len(exchange) > NAME_BYTES or len(key) > NAME_BYTES:
            raise ValueError("an exchange name or routing key has more than 255 octets")
        method = _PUBLISH + _shortstr(message.exchange) + _shortstr(message.routing_key)
        return self.content(channel, method + bytes((flags,)), message, frame_max)

    def ack(self, channel: int, tag: int, multiple: bool) -> int:
        """Append basic.ack."""
        return self.frame(_METHOD, channel, _ACK + tag.to_bytes(8) + bytes((multiple,)))

    def postpone(self, frames: BodyFrames) -> int:
        """Append frames that are encoded when they are written."""
        # The bytes before the body are a part of their own, which keeps the order of the frames.
        if self._data:
            self._parts.append(bytes(self._data))
            self._before += len(self._data)
            self._data.clear()
        self._parts.append(frames)
        self._before += frames.left
        return 0

    def take(self) -> bytes:
        """Return everything appended so far and empty the buffer."""
        return encoded(self.take_parts())

    def take_parts(self) -> list[bytes | BodyFrames]:
        """Return the parts in order: bytes, and frames of bodies that are encoded later."""
        parts = self._parts
        if self._data:
            parts.append(bytes(self._data))
            self._data.clear()
        self._parts = []
        self._before = 0
        return parts


_NO_PUBLISHER = Arrivals()
_UNLIMITED = 1 << 62


class Passage:
    """The way of publishes that repeat the method of the last one.

    Attributes:
        count: the messages that have gone this way.
        limit: how many may, by credit and windows; for the scanner of a version that has them.
    """

    def __init__(self) -> None:
        self.count = 0
        self.limit = _UNLIMITED

    def put(self, properties: Properties, body: bytes) -> bool:
        """Pass on a message; False if it has to go the usual way."""
        raise NotImplementedError

    def end(self) -> int:
        """Count the messages; the scanner calls it before it passes on anything else."""
        raise NotImplementedError


class OutputPassage(Passage):
    """The way into the output of a consumer that takes each message at once.

    Args:
        consumer: the `harebell.model.consumer.Consumer` that takes them.
        out: the output of its connection.
        size_max: the largest message that passes, in octets.
        output_max: the size of the output from which the consumer takes no message.
        plain: whether only messages without headers pass.

    Attributes:
        consumer, out, size_max, output_max, plain: as given, or as `open_to` has changed them.
        arrivals, answered: of `open_to`.
    """

    def __init__(
        self, consumer: Any, out: OutBuffer, size_max: int, output_max: int, plain: bool
    ) -> None:
        super().__init__()
        self.consumer = consumer
        self._publisher: Any = None
        self.out = out
        self.size_max = size_max
        self.output_max = output_max
        self.plain = plain
        self.arrivals = _NO_PUBLISHER
        self.answered = False

    def open_to(
        self, publisher: Any, arrivals: Arrivals, answered: bool, size_max: int, plain: bool
    ) -> int:
        """Say what the publisher adds.

        Args:
            publisher: its method `passed` counts what has gone this way.
            arrivals: counts the messages and their sizes.
            answered: whether the publisher gets confirms.
            size_max: the largest message that it may send, in octets.
            plain: whether messages with headers have to be looked at.
        """
        self._publisher = publisher
        self.arrivals = arrivals
        self.answered = answered
        self.size_max = min(self.size_max, size_max)
        self.plain = self.plain or plain
        return 0

    def end(self) -> int:
        """Have it counted what has gone this way."""
        if self.count:
            self._publisher.passed(self)
        return 0


class DeliveryPassage(OutputPassage):
    """The way into the output of a consumer of the 0-9-1 family; sizes are those of bodies.

    Args:
        consumer, out, output_max, plain: as for `OutputPassage`.
        frames: of a delivery on this route, of which the method is used.
        consumer_tag_size: of the encoded consumer tag in it, with its length octet.
        tag: the delivery tag of the next message.
        frame_max: largest frame the peer takes, in octets.
    """

    def __init__(
        self,
        consumer: Any,
        out: OutBuffer,
        frames: bytes,
        consumer_tag_size: int,
        tag: int,
        frame_max: int,
        output_max: int,
        plain: bool,
    ) -> None:
        # A body of several frames, and one that is encoded when it is written, goes the usual way.
        body_max = min(frame_max - FRAME_OVERHEAD_BYTES, LONG_BODY_BYTES - 1)
        super().__init__(consumer, out, body_max, output_max, plain)
        self._method = frames[: int.from_bytes(frames[3:_HEAD]) + FRAME_OVERHEAD_BYTES]
        self._tag_at = _HEAD + _IDS + consumer_tag_size
        self._tag = tag

    def put(self, properties: Properties, body: bytes) -> bool:
        """Deliver a message; False if it has to go the usual way."""
        full = self.out.size >= self.output_max
        if full or len(body) > self.size_max or (self.plain and properties.has_headers):
            return False
        channel, raw = self._method[1:3], properties.raw
        delivery = self._method[: self._tag_at] + self._tag.to_bytes(8)
        delivery += self._method[self._tag_at + 8 :]
        delivery += bytes((_HEADER,)) + channel + (_HEADER_FIXED + len(raw)).to_bytes(4)
        delivery += _BASIC.to_bytes(2) + _NO_WEIGHT + len(body).to_bytes(8) + raw + _END
        if body:
            delivery += bytes((_BODY,)) + channel + len(body).to_bytes(4) + body + _END
        self.out.raw(delivery)
        self.arrivals.count(len(body), 1, self.answered)
        self._tag += 1
        self.count += 1
        return True
