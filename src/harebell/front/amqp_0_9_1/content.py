"""A content in single frames: method, header, body, body, ... (AMQP 0-9-1 4.2.6).

Most contents do not use this: the scanner passes them on as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.base.gauge import Gauge
from harebell.base.limits import BODY_HARD_MAX_BYTES
from harebell.base.message import Properties
from harebell.base.work import Work
from harebell.front.amqp_0_9_1.channel_states import (
    CHANNEL,
    CONTENT_EVENTS,
    ChannelEvent,
    ChannelState,
)
from harebell.front.common.errors import hard
from harebell.front.common.state_table import Fault
from harebell.front.common.unfinished_body import free
from harebell.kernels.bodies import GatheredBody
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.method import Method

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_PUBLISH = (60, 40)
_FIXED = 12
_NO_BODY = GatheredBody()


def publish(channel: Channel, content: Content) -> None:
    """Publish a complete content."""
    method: Any = content.method
    flags = method.mandatory | method.immediate << 1
    channel.publish(flags, method.exchange, method.routing_key, content.properties, content.body())


class Content:
    """A content that is being received.

    Args:
        method: the method that began it.
        gauge: counts the bytes of incomplete bodies.
        place: class and number of the method.
        parse: reads the property list of its class.
        done: called with the channel and this object when it is complete.

    Attributes:
        size: the body size in the header; -1 before the header.
        properties: from the header.
    """

    __slots__ = (
        "_body",
        "_counted",
        "_gauge",
        "_parse",
        "_received",
        "_taken",
        "done",
        "method",
        "place",
        "properties",
        "size",
    )

    def __init__(
        self,
        method: Method,
        gauge: Gauge,
        place: tuple[int, int] = _PUBLISH,
        parse: Callable[[bytes], Properties] = parse_properties,
        done: Callable[[Channel, Content], None] = publish,
    ) -> None:
        self.method: Any = method
        self.place = place
        self.done = done
        self._gauge = gauge
        self._parse = parse
        self._counted = 0
        # No size that a header can give: the header is still to come.
        self.size = -1
        self.properties = Properties(b"\0\0")
        self._body = _NO_BODY
        self._taken: bytes | None = None
        self._received = 0

    def frame(self, kind: int, payload: bytes) -> bool:
        """Take the next frame; True when the content is whole.

        Raises:
            ProtocolError: 505 for a frame out of order, 501 for more body than announced.
        """
        if self.size < 0:
            self._header(kind, payload)
        else:
            self._body_frame(kind, payload)
        return self._received == self.size

    @property
    def received(self) -> int:
        """The bytes of the body that have arrived."""
        return self._received

    def release(self) -> None:
        """Stop counting the body: it is complete or was dropped."""
        self._gauge.take(self._counted)
        self._gauge.unread -= self._counted
        self._counted = 0

    def drop(self, work: Work) -> None:
        """Drop an incomplete content; the memory of a large body is freed in later turns."""
        self.release()
        free(self._body, work)

    def body(self) -> bytes:
        """Return the complete body."""
        if self._taken is None:
            # Kept, because `done` is repeated after a decision about a permission.
            self._taken = self._body.take()
        return self._taken

    def _header(self, kind: int, payload: bytes) -> None:
        self._check(ChannelState.CONTENT_HEADER, kind)
        if len(payload) < _FIXED:
            raise hard(505, "content header is too short", *self.place)
        class_id = int.from_bytes(payload[:2])
        weight = int.from_bytes(payload[2:4])
        # 4.2.6.1 asks for 501 with a wrong class; RabbitMQ sends 505, and clients expect that.
        if class_id != self.place[0] or weight != 0:
            wrong = f"class {class_id} with weight {weight}" if weight else f"class {class_id}"
            raise hard(
                505,
                f"expected content header for class {self.place[0]}, got one for {wrong} instead",
                *self.place,
            )
        size = int.from_bytes(payload[4:_FIXED])
        # The size has 64 bits: memory is never reserved for what a peer only announces.
        if size > BODY_HARD_MAX_BYTES:
            raise hard(
                501,
                f"content body size {size} exceeds maximum allowed size {BODY_HARD_MAX_BYTES}",
                *self.place,
            )
        self.properties = self._parse(payload[_FIXED:])
        self.size = size
        self._body = GatheredBody(size)
        self.took_header(self.properties)

    def _check(self, state: ChannelState, kind: int) -> None:
        outcome = CHANNEL[state][CONTENT_EVENTS.get(kind, ChannelEvent.METHOD)]
        if isinstance(outcome, Fault):
            raise outcome.error(*self.place)

    def took_header(self, properties: Properties) -> None:
        """Take the content header."""

    def _body_frame(self, kind: int, payload: bytes) -> None:
        self._check(ChannelState.CONTENT_BODY, kind)
        self._received += len(payload)
        if self._received > self.size:
            raise hard(501, "content body frame exceeds remaining content size", *self.place)
        self.keep(payload)

    def keep(self, payload: bytes) -> None:
        """Keep a piece of the body."""
        self._counted += len(payload)
        self._gauge.add(len(payload))
        self._gauge.unread += len(payload)
        self._body.add(payload)
