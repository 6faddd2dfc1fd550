"""A peer that can send any octets and expects exactly the frames it says: the harness's front.

    peer.send(QueueDeclare(queue="q"))
    peer.expect(QueueDeclareOk, queue="q", message_count=0)
    peer.send(BasicGet(queue="missing"))
    peer.expect_channel_close(404, "NOT_FOUND - no queue 'missing' in vhost '/'", "basic.get")

What arrives and was not expected fails the test, also at its end: `done` sees to it.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties
from harebell.wire.v09.method import METHODS
from harebell.wire.v09.spec import ProtocolSpec
from tests.conformance.frames import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    PROTOCOL_HEADER,
    Frame,
    Reader,
    content_header,
    frame,
)
from tests.conformance.frames import body as body_frame
from tests.conformance.sites import Site, Wire

WAIT_SECONDS = 60.0
QUIET_SECONDS = 0.05
CAPABILITIES = {"basic.nack": True, "publisher_confirms": True}
_BARRIER_CHANNEL = 1_999

M = TypeVar("M", bound=m.Method)


@dataclass(frozen=True, slots=True)
class Content:
    """A method with content, as it arrived.

    Args:
        method: basic.deliver, basic.get-ok or basic.return.
        raw: the encoded properties.
        body: the whole body.
        pieces: sizes of the body frames.
    """

    method: Any
    raw: bytes
    body: bytes
    pieces: tuple[int, ...]

    @property
    def properties(self) -> BasicProperties:
        """The decoded properties."""
        return decode_properties(self.raw)


class Peer:
    """One connection to the broker under test, driven frame by frame.

    Attributes:
        SPEC: the version that it speaks.
        GREETING: the protocol header of that version.
    """

    SPEC: ProtocolSpec = AMQP_0_9_1
    GREETING: bytes = PROTOCOL_HEADER

    def __init__(self, site: Site, wire: Wire) -> None:
        self.site = site
        self.wire = wire
        self.reader = Reader()
        self.opened = False
        self.ended = False
        self.frame_max = 131_072
        self.declared: set[tuple[str, str]] = set()

    # --- sending --------------------------------------------------------------------------------

    def send_bytes(self, *pieces: bytes) -> Self:
        """Any octets, in one write."""
        self.wire.write(b"".join(pieces))
        return self

    def send(self, *methods: m.Method, channel: int = 1) -> Self:
        """Methods in one write; those of the connection class travel on channel 0."""
        for method in methods:
            if isinstance(method, m.QueueDeclare):
                self._remember("queue", method.queue)
            elif isinstance(method, m.ExchangeDeclare):
                self._remember("exchange", method.exchange)
        return self.send_bytes(*(encoded(method, channel, self.SPEC) for method in methods))

    def _remember(self, kind: str, name: str) -> None:
        """What the end of the test has to delete from a broker that others use, too."""
        name = name.replace("\r", "").replace("\n", "")
        if name and not name.startswith("amq."):
            self.declared.add((kind, name))

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: BasicProperties | bytes = b"\0\0",
        *,
        channel: int = 1,
        **flags: Any,
    ) -> Self:
        """basic.publish with its content, in one write."""
        octets = publish_octets(exchange, routing_key, body, properties, channel, self.frame_max,
                                self.SPEC, **flags)  # fmt: skip
        return self.send_bytes(octets)

    # --- expecting ------------------------------------------------------------------------------

    def next_frame(self, what: str, seconds: float = WAIT_SECONDS) -> Frame:
        """The next frame, which has to come."""
        found = self._frame(seconds)
        if found is None:
            ended = "the broker ended the connection" if self.ended else f"{seconds} s passed"
            raise AssertionError(f"{ended} while waiting for {what}")
        return found

    def _frame(self, seconds: float) -> Frame | None:
        until = time.monotonic() + seconds
        while True:
            found = self.reader.next()
            if found is not None or self.ended:
                return found
            data = self.wire.read(max(0.0, until - time.monotonic()))
            if data is None:
                self.ended = True
            elif data:
                self.reader.data += data
            elif not self.goes_on(until):
                return None

    def goes_on(self, until: float) -> bool:
        """Whether something may still come before a time, without our doing anything."""
        return self.waits and time.monotonic() < until

    @property
    def waits(self) -> bool:
        """Whether time passes at the broker by itself: one in memory waits for the test."""
        return not hasattr(self.site, "turn")

    def expect(self, kind: type[M], channel: int = 1, **fields: Any) -> M:
        """This method, on this channel, with these fields."""
        if kind.NAME.startswith("connection."):
            channel = 0
        found = self.next_frame(kind.NAME)
        assert found.kind == METHOD, f"expected {kind.NAME}, got {shown(found, self.SPEC)}"
        method = self.SPEC.decode(found.payload)
        assert isinstance(method, kind), f"expected {kind.NAME}, got {shown(found, self.SPEC)}"
        assert found.channel == channel, f"{kind.NAME} came on channel {found.channel}"
        for name, value in fields.items():
            assert getattr(method, name) == value, f"{name} of {method}"
        return method

    def ask(self, method: m.Method, channel: int = 1) -> Any:
        """Send a synchronous method and return its reply."""
        self.send(method, channel=channel)
        reply = self.SPEC.spec_of(method).responses[0]
        return self.expect(METHODS[reply], channel)

    def expect_content(
        self, kind: type[m.Method], channel: int = 1, *, of: int = 60, **fields: Any
    ) -> Content:
        """This method with its content, which is `of` a class."""
        method = self.expect(kind, channel, **fields)
        header = self.next_frame("a content header")
        assert (header.kind, header.channel) == (HEADER, channel), shown(header, self.SPEC)
        class_id, weight, size = struct.unpack_from(">HHQ", header.payload)
        assert (class_id, weight) == (of, 0)
        pieces: list[bytes] = []
        while sum(map(len, pieces)) < size:
            found = self.next_frame("a content body")
            assert (found.kind, found.channel) == (BODY, channel), shown(found, self.SPEC)
            pieces.append(found.payload)
        body = b"".join(pieces)
        assert len(body) == size, "the body is longer than its header says"
        return Content(method, header.payload[12:], body, tuple(map(len, pieces)))

    def expect_delivery(
        self, body: bytes | None = None, channel: int = 1, **fields: Any
    ) -> Content:
        """basic.deliver with this body."""
        found = self.expect_content(m.BasicDeliver, channel, **fields)
        assert body is None or found.body == body
        return found

    def next_is(self, kind: type[m.Method], channel: int = 1) -> bool:
        """Whether the next frame is this method; it is not taken."""
        found = self.next_frame(kind.NAME)
        self.reader.data[:0] = found.octets
        return found.channel == channel and found.payload[:4] == self.SPEC.named(kind.NAME).head

    def expect_delivery_or_ok(self, channel: int = 1) -> Content | None:
        """basic.deliver, or recover-ok as None: their order is not laid down."""
        if self.next_is(m.BasicRecoverOk, channel):
            self.expect(m.BasicRecoverOk, channel)
            return None
        return self.expect_delivery(None, channel)

    def expect_return_or_ack(self, channel: int = 1) -> Content | int:
        """basic.return, or the delivery tag of a basic.ack."""
        if self.next_is(m.BasicAck, channel):
            return self.expect(m.BasicAck, channel).delivery_tag
        return self.expect_content(m.BasicReturn, channel)

    def expect_ack_or_nack(self, channel: int = 1) -> m.BasicAck | m.BasicNack:
        """What the broker says of publishes, whichever it is."""
        if self.next_is(m.BasicAck, channel):
            return self.expect(m.BasicAck, channel)
        return self.expect(m.BasicNack, channel)

    def get(self, queue: str, *, no_ack: bool = True, channel: int = 1) -> Content:
        """basic.get of a message that has to be there."""
        self.send(m.BasicGet(queue=queue, no_ack=no_ack), channel=channel)
        return self.expect_content(m.BasicGetOk, channel)

    def expect_channel_close(
        self, code: int, text: str, at: str | tuple[int, int], channel: int = 1
    ) -> None:
        """channel.close with this reason and failing method; then answer it."""
        close = self.expect(m.ChannelClose, channel)
        assert (close.reply_code, close.reply_text) == (code, text)
        assert (close.class_id, close.method_id) == ids(at, self.SPEC)
        self.expect_silence()
        self.send(m.ChannelCloseOk(), channel=channel)

    def expect_connection_close(
        self, code: int, text: str, at: str | tuple[int, int] = (0, 0)
    ) -> None:
        """connection.close with this reason and failing method; then answer it: the end."""
        close = self.expect(m.ConnectionClose)
        assert (close.reply_code, close.reply_text) == (code, text)
        assert (close.class_id, close.method_id) == ids(at, self.SPEC)
        self.opened = False
        if code != 501:
            self.expect_silence()
            self.send(m.ConnectionCloseOk())
        self.expect_closed()

    def expect_closed(self) -> None:
        """The broker ends the connection without a word more."""
        found = self._frame(WAIT_SECONDS)
        assert found is None, f"expected the end of the connection, got {shown(found, self.SPEC)}"
        assert self.ended, "the broker keeps the connection"
        assert not self.reader.data, f"half a frame at the end: {bytes(self.reader.data)!r}"
        self.opened = False

    def expect_parting(self) -> None:
        """The broker leaves it to us to end the socket, and follows."""
        self.opened = False
        self.expect_silence()
        self.wire.end()
        self.expect_closed()

    def expect_silence(self) -> None:
        """Nothing comes now, and the connection stays."""
        if self.opened and self.waits:
            # The broker answers in order: what is behind this pair would come before it.
            self.ask(m.ChannelOpen(), _BARRIER_CHANNEL)
            self.ask(m.ChannelClose(reply_code=200), _BARRIER_CHANNEL)
            return
        found = self._frame(QUIET_SECONDS)
        assert found is None, f"expected silence, got {shown(found, self.SPEC)}"
        assert not self.ended, "the broker ended the connection"

    def expect_heartbeat(self) -> None:
        """A heartbeat, with nothing else before it."""
        found = self.next_frame("a heartbeat")
        assert found == Frame(HEARTBEAT, 0, b""), shown(found, self.SPEC)

    # --- longer moves ---------------------------------------------------------------------------

    def greet(self) -> m.ConnectionStart:
        """The protocol header, and what the broker answers."""
        self.send_bytes(self.GREETING)
        return self.expect(m.ConnectionStart)

    def log_in(self, **options: Any) -> m.ConnectionTune:
        """From start to tune."""
        self.send(start_ok(**options))
        return self.expect(m.ConnectionTune)

    def open(
        self,
        vhost: str = "/",
        *,
        frame_max: int | None = None,
        channel_max: int | None = None,
        heartbeat: int = 0,
        channels: Sequence[int] = (1,),
        **options: Any,
    ) -> Self:
        """The whole beginning, with these channels opened."""
        self.greet()
        tune = self.log_in(**options)
        self.frame_max = tune.frame_max if frame_max is None else frame_max
        channel_max = tune.channel_max if channel_max is None else channel_max
        self.send(m.ConnectionTuneOk(channel_max, self.frame_max, heartbeat))
        self.reader.frame_max = self.frame_max
        self.ask(m.ConnectionOpen(virtual_host=vhost))
        self.opened = True
        for number in channels:
            self.ask(m.ChannelOpen(), number)
        return self

    def queue(self, name: str, **options: Any) -> str:
        """Declare a queue and return its name."""
        declared: m.QueueDeclareOk = self.ask(m.QueueDeclare(queue=name, **options))
        return declared.queue

    def consume(self, queue: str, channel: int = 1, **options: Any) -> str:
        """Start a consumer and return its tag."""
        tag: str = self.ask(m.BasicConsume(queue=queue, **options), channel).consumer_tag
        return tag

    def count(self, queue: str, channel: int = 1) -> int:
        """Ready messages in a queue."""
        ready: int = self.ask(m.QueueDeclare(queue=queue, passive=True), channel).message_count
        return ready

    def close(self) -> None:
        """The polite end."""
        self.send(m.ConnectionClose(200, "bye"))
        self.expect(m.ConnectionCloseOk)
        self.expect_parting()

    def done(self) -> None:
        """The end of a test: nothing may be left that it did not expect."""
        try:
            if self.opened and not self.ended:
                self.expect_silence()
        finally:
            self.wire.drop()


def encoded(method: m.Method, channel: int = 1, spec: ProtocolSpec = AMQP_0_9_1) -> bytes:
    """A method's frame."""
    if method.NAME.startswith("connection."):
        channel = 0
    return frame(METHOD, channel, spec.encode(method))


def publish_octets(
    exchange: str,
    routing_key: str,
    body: bytes = b"",
    properties: BasicProperties | bytes = b"\0\0",
    channel: int = 1,
    frame_max: int = 131_072,
    spec: ProtocolSpec = AMQP_0_9_1,
    **flags: Any,
) -> bytes:
    """basic.publish, content header and body frames."""
    raw = properties if isinstance(properties, bytes) else encode_properties(properties)
    method = m.BasicPublish(exchange=exchange, routing_key=routing_key, **flags)
    limit = frame_max - 8
    pieces = [body_frame(body[at : at + limit], channel) for at in range(0, len(body), limit)]
    header = content_header(len(body), raw, channel=channel)
    return b"".join((encoded(method, channel, spec), header, *pieces))


def start_ok(
    user: str = "guest",
    password: str = "guest",
    *,
    mechanism: str = "PLAIN",
    response: bytes | None = None,
    locale: str = "en_US",
    capabilities: Iterable[str] = (),
) -> m.ConnectionStartOk:
    """connection.start-ok with PLAIN credentials, unless told otherwise."""
    table = CAPABILITIES | dict.fromkeys(capabilities, True)
    if response is None:
        response = f"\0{user}\0{password}".encode()
    return m.ConnectionStartOk({"capabilities": table}, mechanism, response, locale)


def ids(at: str | tuple[int, int], spec: ProtocolSpec = AMQP_0_9_1) -> tuple[int, int]:
    """Class and method id of a method's name."""
    if isinstance(at, tuple):
        return at
    named = spec.named(at)
    return named.class_id, named.method_id


def shown(found: Frame, spec: ProtocolSpec = AMQP_0_9_1) -> str:
    """A frame for the reader of a failed test."""
    if found.kind == METHOD:
        return f"{spec.decode(found.payload)} on channel {found.channel}"
    return f"{found}"
