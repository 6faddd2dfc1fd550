"""A peer of 0-8 that stages files, sends packets and blocks, and says frame by frame what it sees.

    sender.stage("id", b"the file", FileProperties(filename="x"))
    sender.send(FilePublish("", "q", identifier="id"))
    found = taker.take_file()
    assert found.body == b"the file"

What arrives and was not expected fails the test, also at its end: `done` sees to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from msgspec import Struct

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.method import Method
from harebell.wire.v09.methods_file import (
    FileConsume,
    FileDeliver,
    FileOpen,
    FileOpenOk,
    FilePublish,
    FileStage,
)
from harebell.wire.v09.methods_stream import StreamDeliver, StreamPublish
from harebell.wire.v09.property_list import (
    FILE,
    OTHER_LISTS,
    STREAM,
    FileProperties,
    PropertyList,
    StreamProperties,
)
from harebell.wire.v09.spec import ProtocolSpec
from tests.conformance.frames import (
    BODY,
    HEADER,
    METHOD,
    Frame,
    Reader,
    content_header,
    frame,
)
from tests.conformance.sites import MemorySite, Site, Wire

WAIT_SECONDS = 60.0
HEADER_0_8 = b"AMQP\x01\x01\x08\x00"
HEADER_0_9 = b"AMQP\x01\x01\x00\x09"
BARRIER = 999
MEMORY_TURNS = 50
"""How often a tenth of a second passes for a broker in memory, before nothing comes."""
M = TypeVar("M", bound=Method)


@dataclass(frozen=True, slots=True)
class Content:
    """A method with its content.

    Args:
        method: the method.
        properties: decoded.
        body: the whole body.
    """

    method: Any
    properties: Any
    body: bytes


class Peer08:
    """One connection to the broker under test."""

    def __init__(
        self, site: Site, wire: Wire, spec: ProtocolSpec = AMQP_0_8, header: bytes = HEADER_0_8
    ) -> None:
        self.site = site
        self.wire = wire
        self.spec = spec
        self.header = header
        self.reader = Reader()
        self.frame_max = 131_072
        self.ended = False
        self.opened = False
        self.declared: set[tuple[str, str]] = set()

    # --- sending --------------------------------------------------------------------------------

    def send(self, *methods: Method, channel: int = 1) -> Peer08:
        """Methods in one write."""
        octets = b""
        for method in methods:
            if isinstance(method, m.QueueDeclare):
                self.declared.add(("queue", method.queue))
            elif isinstance(method, m.ExchangeDeclare):
                self.declared.add(("exchange", method.exchange))
            number = 0 if method.NAME.startswith("connection.") else channel
            octets += frame(METHOD, number, self.spec.encode(method))
        self.wire.write(octets)
        return self

    def send_content(
        self,
        method: Method,
        listed: PropertyList,
        properties: Struct | bytes,
        body: bytes,
        channel: int = 1,
        size: int = -1,
    ) -> Peer08:
        """A method with its content; `size` is what the header says, if that shall be a lie."""
        raw = properties if isinstance(properties, bytes) else listed.encode(properties)
        octets = frame(METHOD, channel, self.spec.encode(method))
        octets += frame(HEADER, channel, listed.header(len(body) if size < 0 else size, raw))
        most = self.frame_max - 8
        for at in range(0, len(body), most):
            octets += frame(BODY, channel, body[at : at + most])
        self.wire.write(octets)
        return self

    def send_header(self, payload: bytes, channel: int = 1) -> Peer08:
        """A content header of any octets."""
        self.wire.write(frame(HEADER, channel, payload))
        return self

    def send_basic(self, key: str, raw: bytes, body: bytes, channel: int = 1) -> Peer08:
        """basic.publish to the default exchange, with its content."""
        method = m.BasicPublish("", key)
        octets = frame(METHOD, channel, self.spec.encode(method))
        octets += frame(HEADER, channel, content_header(len(body), raw, channel=channel)[7:-1])
        most = self.frame_max - 8
        for at in range(0, len(body), most):
            octets += frame(BODY, channel, body[at : at + most])
        self.wire.write(octets)
        return self

    def packet(
        self, key: str, body: bytes, exchange: str = "", channel: int = 1, *, flags: int = 0,
        **properties: Any,
    ) -> Peer08:  # fmt: skip
        """Publish a packet."""
        method = StreamPublish(exchange, key, bool(flags & 1), bool(flags & 2))
        return self.send_content(method, STREAM, StreamProperties(**properties), body, channel)

    def stage(
        self,
        identifier: str,
        body: bytes,
        properties: FileProperties | None = None,
        channel: int = 1,
    ) -> int:
        """Stage a file, from where it broke off; returns from where that was."""
        self.send(FileOpen(identifier, len(body)), channel=channel)
        start = self.expect(FileOpenOk, channel).staged_size
        listed = properties or FileProperties()
        self.send_content(FileStage(), FILE, listed, body[start:], channel)
        return start

    def publish_file(
        self, key: str, body: bytes, identifier: str = "id", exchange: str = "",
        properties: FileProperties | None = None, channel: int = 1, *, flags: int = 0,
    ) -> None:  # fmt: skip
        """Stage a file and publish it."""
        self.stage(identifier, body, properties, channel)
        method = FilePublish(exchange, key, bool(flags & 1), bool(flags & 2), identifier)
        self.send(method, channel=channel)

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
        turns = MEMORY_TURNS
        while True:
            found = self.reader.next()
            if found is not None or self.ended:
                return found
            data = self.wire.read(max(0.0, until - time.monotonic()))
            if data is None:
                self.ended = True
            elif data:
                self.reader.data += data
            elif isinstance(self.site, MemorySite) and turns:
                turns -= 1
                self.site.pass_time(0.1)
            elif isinstance(self.site, MemorySite) or time.monotonic() >= until:
                return None

    def next_method(self) -> tuple[int, Any]:
        """The next frame, which is a method: its channel and the method."""
        found = self.next_frame("a method")
        assert found.kind == METHOD, f"expected a method, got {found}"
        return found.channel, self.spec.decode(found.payload)

    def expect(self, kind: type[M], channel: int = 1, **fields: Any) -> M:
        """This method, on this channel, with these fields."""
        if kind.NAME.startswith("connection."):
            channel = 0
        found = self.next_frame(kind.NAME)
        assert found.kind == METHOD, f"expected {kind.NAME}, got {found}"
        method = self.spec.decode(found.payload)
        assert isinstance(method, kind), f"expected {kind.NAME}, got {method}"
        assert found.channel == channel, f"{kind.NAME} came on channel {found.channel}"
        for name, value in fields.items():
            assert getattr(method, name) == value, f"{name} of {method}"
        return method

    def ask(self, method: Method, channel: int = 1) -> Any:
        """Send a synchronous method and return its reply."""
        self.send(method, channel=channel)
        reply = self.spec.spec_of(method).responses[0]
        return self.expect(m.METHODS[reply], channel)

    def expect_content(self, kind: type[Method], channel: int = 1, **fields: Any) -> Content:
        """This method with its content."""
        method = self.expect(kind, channel, **fields)
        header = self.next_frame("a content header")
        assert (header.kind, header.channel) == (HEADER, channel), header
        class_id = self.spec.spec_of(method).class_id
        assert int.from_bytes(header.payload[:2]) == class_id
        size = int.from_bytes(header.payload[4:12])
        body = b""
        while len(body) < size:
            found = self.next_frame("a content body")
            assert (found.kind, found.channel) == (BODY, channel), found
            assert len(found.payload) + 8 <= self.frame_max
            body += found.payload
        assert len(body) == size, "the body is longer than its header says"
        listed = OTHER_LISTS.get(class_id)
        raw = header.payload[12:]
        return Content(method, raw if listed is None else listed.decode(raw), body)

    def take_file(self, channel: int = 1, have: bytes = b"", **fields: Any) -> Content:
        """Let the broker stage a file here, of which we have a part; then comes file.deliver."""
        opened = self.expect(FileOpen, channel)
        self.send(FileOpenOk(len(have)), channel=channel)
        staged = self.expect_content(FileStage, channel)
        delivered = self.expect(
            FileDeliver, channel, identifier=opened.identifier, **fields
        )
        body = have + staged.body
        assert len(body) == opened.content_size
        return Content(delivered, staged.properties, body)

    def take_packet(self, body: bytes | None = None, channel: int = 1, **fields: Any) -> Content:
        """A packet comes."""
        found = self.expect_content(StreamDeliver, channel, **fields)
        assert body is None or found.body == body, found
        return found

    def expect_silence(self, channel: int = BARRIER) -> None:
        """Nothing comes now, and the connection stays: what is behind the pair came before it."""
        self.ask(m.ChannelOpen(), channel)
        self.ask(m.ChannelClose(reply_code=200), channel)

    def expect_channel_close(self, code: int, text: str, channel: int = 1) -> Any:
        """The channel is closed for this reason; then we agree."""
        close = self.expect(m.ChannelClose, channel)
        assert close.reply_code == code, close
        assert text in close.reply_text, close
        self.send(m.ChannelCloseOk(), channel=channel)
        return close

    def expect_connection_close(self, code: int, text: str) -> Any:
        """The connection is closed for this reason; then we agree."""
        close = self.expect(m.ConnectionClose)
        assert close.reply_code == code, close
        assert text in close.reply_text, close
        self.opened = False
        self.send(m.ConnectionCloseOk())
        assert self._frame(WAIT_SECONDS) is None
        assert self.ended
        return close

    # --- longer moves ---------------------------------------------------------------------------

    def open(
        self, *, channels: Sequence[int] = (1,), user: str = "guest", frame_max: int = 0
    ) -> Peer08:
        """The whole beginning, with these channels opened."""
        self.wire.write(self.header)
        self.expect(m.ConnectionStart)
        response = f"\0{user}\0{user}".encode()
        self.send(m.ConnectionStartOk({}, "PLAIN", response, "en_US"))
        tune = self.expect(m.ConnectionTune)
        self.frame_max = frame_max or tune.frame_max
        self.reader.frame_max = self.frame_max
        self.send(m.ConnectionTuneOk(tune.channel_max, self.frame_max, 0))
        self.ask(m.ConnectionOpen("/"))
        self.opened = True
        for number in channels:
            self.ask(m.ChannelOpen(), number)
        return self

    def queue(self, name: str, **options: Any) -> str:
        """Declare a queue and return its name."""
        declared: m.QueueDeclareOk = self.ask(m.QueueDeclare(queue=name, **options))
        return declared.queue

    def count(self, queue: str, channel: int = 1) -> int:
        """Ready messages in a queue."""
        ready: int = self.ask(m.QueueDeclare(queue=queue, passive=True), channel).message_count
        return ready

    def wait_for_count(self, queue: str, count: int) -> None:
        """Ready messages in a queue, once what other connections do is done."""
        until = time.monotonic() + WAIT_SECONDS
        while (found := self.count(queue)) != count:
            assert time.monotonic() < until, f"{found} messages, not {count}"
            time.sleep(0.02)

    def files(self, queue: str, channel: int = 1, **options: Any) -> str:
        """Start a consumer of files."""
        tag: str = self.ask(FileConsume(queue=queue, **options), channel).consumer_tag
        return tag

    def lose(self) -> None:
        """The connection breaks."""
        self.opened = False
        self.wire.drop()

    def done(self) -> None:
        """The end of a test: nothing may be left that it did not expect."""
        if self.opened and not self.ended:
            self.expect_silence()
        self.wire.drop()


Connect08 = Callable[[], Peer08]
