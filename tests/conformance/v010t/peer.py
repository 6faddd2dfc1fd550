"""A client of transitional 0-10, frame by frame, as the one of 2007 was: it counts commands.

    peer.send(ExchangeDeclare("e"))                 a command without a reply
    peer.settle()                                   flush, and wait until it is complete
    peer.run(QueueBind("q", "e"))                   both
    peer.ask(QueueDeclare("q"))                     a command with a reply
    found = peer.expect(MessageTransfer)            a command of the broker's
    peer.complete(peer.received())                  we are done with all up to that one

`peer.sent(1)` is the number of the last command on channel 1, `peer.received(1)` that of the
broker's. What arrives and was not expected fails the test, also at its end.
"""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from typing import Any, TypeVar

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_session as s
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties
from harebell.wire.v09.typed_fields import encode_typed
from tests.conformance.frames import BODY, HEADER, METHOD, Frame, Reader, content_header, frame
from tests.conformance.frames import body as body_frame
from tests.conformance.sites import MemorySite, Site, Wire

HEADER_0_10 = b"AMQP\x01\x01\x00\x0a"
HEADER_PREVIEW = b"AMQP\x01\x01\x63\x00"
"""Means transitional 0-10 on every listener."""
WAIT_SECONDS = 60.0
_QUIET_SECONDS = 0.05
CONTROLS = (10, 20, 21, 140)
_BARRIER_CHANNEL = 1_999

M = TypeVar("M", bound=m.Method)


def ids(at: str | tuple[int, int]) -> tuple[int, int]:
    """Class and method id of a method's name."""
    if isinstance(at, tuple):
        return at
    spec = SPEC.named(at)
    return spec.class_id, spec.method_id


def is_command(payload: bytes) -> bool:
    """Whether a method is numbered."""
    return int.from_bytes(payload[:2]) not in CONTROLS


class Content:
    """A method with content, as it arrived."""

    def __init__(self, method: Any, raw: bytes, body: bytes) -> None:
        self.method = method
        self.raw = raw
        self.body = body

    @property
    def properties(self) -> BasicProperties:
        """The decoded properties; the header table has to be one of letters."""
        return decode_properties(self.raw)


class Peer:
    """One connection, driven frame by frame."""

    def __init__(self, site: Site, wire: Wire) -> None:
        self.site = site
        self.wire = wire
        self.reader = Reader()
        self.ended = False
        self.opened = False
        self.frame_max = 131_072
        self._sent: dict[int, int] = defaultdict(int)
        self._received: dict[int, int] = defaultdict(int)
        self.marks: dict[int, s.ExecutionComplete] = {}

    # --- sending --------------------------------------------------------------------------------

    def send_bytes(self, *pieces: bytes) -> Peer:
        """Any octets, in one write."""
        self.wire.write(b"".join(pieces))
        return self

    def payload(self, payload: bytes, channel: int = 1) -> int:
        """A method that is encoded already; returns the number of the last command."""
        if is_command(payload):
            self._sent[channel] += 1
        self.send_bytes(frame(METHOD, channel, payload))
        return self._sent[channel]

    def send(self, method: m.Method, channel: int = 1) -> int:
        """A method; returns the number of the last command."""
        if method.NAME.startswith("connection."):
            channel = 0
        if isinstance(method, m.ChannelOpen | s.SessionOpen):
            self._sent[channel] = self._received[channel] = 0
        return self.payload(SPEC.encode(method), channel)

    def sent(self, channel: int = 1) -> int:
        """The number of our last command."""
        return self._sent[channel]

    def received(self, channel: int = 1) -> int:
        """The number of the broker's last command."""
        return self._received[channel]

    def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes = b"",
        properties: BasicProperties | bytes = b"\0\0",
        *,
        channel: int = 1,
        **fields: Any,
    ) -> int:
        """basic.publish with its content, in one write; returns its number."""
        method = m.BasicPublish(exchange=exchange, routing_key=routing_key, **fields)
        raw = properties if isinstance(properties, bytes) else encode_properties(properties)
        pieces = [frame(METHOD, channel, SPEC.encode(method))]
        pieces.append(content_header(len(body), raw, channel=channel))
        most = self.frame_max - 8
        places = range(0, len(body), most)
        pieces += [body_frame(body[at : at + most], channel) for at in places]
        self._sent[channel] += 1
        self.send_bytes(*pieces)
        return self._sent[channel]

    def complete(self, mark: int, *ranges: tuple[int, int], channel: int = 1) -> None:
        """execution.complete."""
        self.send(s.ExecutionComplete(mark, ranges), channel)

    # --- expecting ------------------------------------------------------------------------------

    def next_frame(self, what: str, seconds: float = WAIT_SECONDS) -> Frame:
        """The next frame, which has to come."""
        found = self._frame(seconds)
        if found is None:
            ended = "the broker ended the connection" if self.ended else f"{seconds} s passed"
            raise AssertionError(f"{ended} while waiting for {what}")
        if found.kind == METHOD and is_command(found.payload):
            self._received[found.channel] += 1
        return found

    def _frame(self, seconds: float) -> Frame | None:
        until = time.monotonic() + seconds
        while True:
            found = self._next()
            if found is not None or self.ended:
                return found
            data = self.wire.read(max(0.0, until - time.monotonic()))
            if data is None:
                self.ended = True
            elif data:
                self.reader.data += data
            elif time.monotonic() >= until or isinstance(self.site, MemorySite):
                return None

    def _next(self) -> Frame | None:
        return self.reader.next()

    def expect(self, kind: type[M], channel: int = 1, **fields: Any) -> M:
        """This method, on this channel, with these fields."""
        if kind.NAME.startswith("connection."):
            channel = 0
        found = self.next_frame(kind.NAME)
        assert found.kind == METHOD, f"expected {kind.NAME}, got {found}"
        method = SPEC.decode(found.payload)
        assert isinstance(method, kind), f"expected {kind.NAME}, got {method}"
        assert found.channel == channel, f"{kind.NAME} came on channel {found.channel}"
        for name, value in fields.items():
            assert getattr(method, name) == value, f"{name} of {method}"
        return method

    def ask(self, method: m.Method, channel: int = 1) -> Any:
        """A method with a reply, and the first kind of reply that it may have."""
        self.send(method, channel)
        return self.expect(m.METHODS[SPEC.spec_of(method).responses[0]], channel)

    def run(self, method: m.Method, channel: int = 1) -> int:
        """A command without a reply, until it is complete; returns its number."""
        number = self.send(method, channel)
        self.settle(channel)
        return number

    def settle(self, channel: int = 1) -> s.ExecutionComplete:
        """Flush, and wait until all that was sent is complete."""
        self.send(s.ExecutionFlush(), channel)
        while True:
            answer = self.expect(s.ExecutionComplete, channel)
            if answer.cumulative_execution_mark == self._sent[channel]:
                assert answer.ranged_execution_set == ()
                return answer

    def expect_content(self, kind: type[m.Method], channel: int = 1, **fields: Any) -> Content:
        """This method with its content."""
        method = self.expect(kind, channel, **fields)
        header = self.next_frame("a content header")
        assert (header.kind, header.channel) == (HEADER, channel), header
        _, weight, size = struct.unpack_from(">HHQ", header.payload)
        assert weight == 0
        body = b""
        while len(body) < size:
            found = self.next_frame("a content body")
            assert (found.kind, found.channel) == (BODY, channel), found
            body += found.payload
        assert len(body) == size, "the body is longer than its header says"
        return Content(method, header.payload[12:], body)

    def expect_delivery(self, body: bytes, channel: int = 1, **fields: Any) -> Content:
        """basic.deliver with this body."""
        found = self.expect_content(m.BasicDeliver, channel, **fields)
        assert found.body == body
        return found

    def expect_channel_close(
        self, code: int, at: str | tuple[int, int], *words: str, channel: int = 1
    ) -> None:
        """channel.close with this code, failing method and these words; then answer it."""
        close = self.expect(m.ChannelClose, channel, reply_code=code)
        assert (close.class_id, close.method_id) == ids(at)
        _check_words(close.reply_text, words)
        self.expect_silence()
        self.send(m.ChannelCloseOk(), channel)

    def expect_session_closed(self, code: int, *words: str, channel: int = 1) -> None:
        """session.closed with this code and these words."""
        closed = self.expect(s.SessionClosed, channel, reply_code=code)
        _check_words(closed.reply_text, words)

    def expect_connection_close(
        self, code: int, at: str | tuple[int, int] = (0, 0), *words: str
    ) -> None:
        """connection.close with this code, failing method and these words; answer it: the end."""
        close = self.expect(m.ConnectionClose, reply_code=code)
        assert (close.class_id, close.method_id) == ids(at)
        _check_words(close.reply_text, words)
        if code != 501:
            self.send(m.ConnectionCloseOk())
        self.expect_closed()

    def expect_closed(self) -> None:
        """The broker ends the connection without a word more."""
        found = self._frame(WAIT_SECONDS)
        assert found is None, f"expected the end of the connection, got {found}"
        assert self.ended, "the broker keeps the connection"
        self.opened = False

    def expect_parting(self) -> None:
        """The broker leaves it to us to end the socket, and follows."""
        self.opened = False
        assert self._frame(_QUIET_SECONDS) is None
        assert not self.ended, "the broker ended the connection"
        self.wire.end()
        self.expect_closed()

    def expect_silence(self) -> None:
        """Nothing comes now, and the connection stays."""
        # The broker answers in order: what is behind this pair would come before it.
        self.ask(m.ChannelOpen(), _BARRIER_CHANNEL)
        self.ask(m.ChannelClose(reply_code=200), _BARRIER_CHANNEL)

    # --- longer moves ---------------------------------------------------------------------------

    def greet(self, header: bytes = HEADER_PREVIEW) -> m.ConnectionStart:
        """The protocol header, and what the broker answers: a method, no header."""
        self.send_bytes(header)
        return self.expect(m.ConnectionStart)

    def log_in(
        self,
        user: str = "guest",
        password: str = "guest",
        mechanism: str = "AMQPLAIN",
        properties: Any = None,
    ) -> m.ConnectionTune:
        """From start to tune."""
        response = encode_typed({"LOGIN": user, "PASSWORD": password})[4:]
        if mechanism == "PLAIN":
            response = b"\0" + user.encode() + b"\0" + password.encode()
        self.send(m.ConnectionStartOk(properties or {}, mechanism, response, "en_US"))
        return self.expect(m.ConnectionTune)

    def open(
        self,
        vhost: str = "/",
        *,
        frame_max: int | None = None,
        channels: tuple[int, ...] = (1,),
        header: bytes = HEADER_PREVIEW,
        **options: Any,
    ) -> Peer:
        """The whole beginning, with these channels opened by channel.open."""
        self.greet(header)
        tune = self.log_in(**options)
        self.frame_max = tune.frame_max if frame_max is None else frame_max
        self.send(m.ConnectionTuneOk(tune.channel_max, self.frame_max, tune.heartbeat))
        self.reader.frame_max = self.frame_max
        self.ask(m.ConnectionOpen(virtual_host=vhost))
        self.opened = True
        for number in channels:
            self.ask(m.ChannelOpen(), number)
        return self

    def attach(self, lifetime: int = 0, channel: int = 1) -> s.SessionAttached:
        """session.open."""
        attached: s.SessionAttached = self.ask(s.SessionOpen(lifetime), channel)
        return attached

    def queue(self, name: str = "", channel: int = 1, **options: Any) -> str:
        """Declare a queue and return its name."""
        declared: m.QueueDeclareOk = self.ask(m.QueueDeclare(queue=name, **options), channel)
        return declared.queue

    def consume(self, queue: str, channel: int = 1, **options: Any) -> str:
        """Start a consumer of class basic and return its tag."""
        started: m.BasicConsumeOk = self.ask(m.BasicConsume(queue=queue, **options), channel)
        return started.consumer_tag

    def get(self, queue: str, *, channel: int = 1, **options: Any) -> Content:
        """basic.get of a message that has to be there."""
        self.send(m.BasicGet(queue=queue, **options), channel)
        return self.expect_content(m.BasicGetOk, channel)

    def close(self) -> None:
        """The whole end."""
        self.ask(m.ConnectionClose(reply_code=200))
        self.expect_parting()

    def drop(self) -> None:
        """The socket is lost; nothing else is looked at."""
        self.wire.drop()
        self.ended = True
        self.opened = False

    def done(self) -> None:
        """The end of the test: nothing may have come that nobody expected."""
        if self.opened:
            self.expect_silence()
        self.wire.drop()


def _check_words(text: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert word in text, f"{text!r} does not say {word!r}"
