"""Octets in both directions: what a broker would write, and what the client's core wrote."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.v09.core import CoreConnection
from harebell.client.url import URL
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import HEADER, METHOD, FrameScanner, FrameSink, OutBuffer

T = TypeVar("T", bound=m.Method)
FRAME_MAX = 4096


def method_frame(method: m.Method, channel: int = 0) -> bytes:
    """A method frame as the broker writes it."""
    out = OutBuffer()
    out.frame(METHOD, channel, AMQP_0_9_1.encode(method))
    return out.take()


def content_frames(
    method: m.Method,
    body: bytes,
    channel: int = 1,
    frame_max: int = FRAME_MAX,
    properties: BasicProperties | None = None,
) -> bytes:
    """A method with its content."""
    out = OutBuffer()
    encoded = Properties(encode_properties(properties or BasicProperties()))
    message = WireMessage("", "", encoded, body)
    out.content(channel, AMQP_0_9_1.encode(method), message, frame_max)
    return out.take()


def delivery(
    body: bytes,
    *,
    consumer_tag: str,
    tag: int,
    channel: int = 1,
    exchange: str = "",
    routing_key: str = "q",
    redelivered: bool = False,
) -> bytes:
    """A basic.deliver with its content."""
    method = m.BasicDeliver(consumer_tag, tag, redelivered, exchange, routing_key)
    return content_frames(method, body, channel)


@dataclass
class Frame:
    """One frame that the client wrote."""

    kind: int
    channel: int
    payload: bytes

    @property
    def method(self) -> m.Method:
        """The method in it."""
        assert self.kind == METHOD
        return AMQP_0_9_1.decode(self.payload)


@dataclass
class _Frames(FrameSink):
    found: list[Frame] = field(default_factory=list)

    def frame(self, kind: int, channel: int, payload: bytes) -> int:
        self.found.append(Frame(kind, channel, payload))
        return 0


class Peer:
    """A core, and the broker's octets for it.

    Args:
        url: what the core was told.
        step: most octets fed at once; 0 feeds everything.
    """

    def __init__(self, url: str = "amqp://", step: int = 0, now: float = 100.0) -> None:
        self.now = now
        self.step = step
        self.core = CoreConnection(URL.parse(url), now)
        self._frames = _Frames()
        self._scanner = FrameScanner(self._frames)
        self._scanner.frame_max = 1 << 20

    def feed(self, data: bytes) -> None:
        """Octets of the broker."""
        if not self.step:
            self.core.receive(data, self.now)
            return
        for at in range(0, len(data), self.step):
            self.core.receive(data[at : at + self.step], self.now)

    def send(self, *methods: m.Method, channel: int = 0) -> None:
        """Methods of the broker, in one read."""
        self.feed(b"".join(method_frame(method, channel) for method in methods))

    def written(self) -> list[Frame]:
        """The frames that the client wrote since the last time."""
        return self.frames_in(b"".join(iter(self.core.take_output, b"")))

    def frames_in(self, data: bytes) -> list[Frame]:
        """The frames in octets that the client wrote."""
        self._frames.found = []
        self._scanner.feed(data)
        return self._frames.found

    def methods(self) -> list[m.Method]:
        """The methods that the client wrote since the last time."""
        return [frame.method for frame in self.written() if frame.kind == METHOD]

    def one(self, kind: type[T]) -> T:
        """The only method that the client wrote since the last time."""
        (method,) = self.methods()
        assert isinstance(method, kind)
        return method

    def start(self, mechanisms: bytes = b"PLAIN AMQPLAIN") -> None:
        """The protocol header is taken; the broker introduces itself."""
        header = self.core.take_output()
        assert header == b"AMQP\x00\x00\x09\x01"
        properties = {"product": "octets", "capabilities": {"basic.nack": True}}
        self.send(m.ConnectionStart(0, 9, properties, mechanisms, b"en_US"))

    def open(self, heartbeat: int = 0, frame_max: int = FRAME_MAX, channel_max: int = 8) -> None:
        """The whole handshake."""
        self.start()
        assert isinstance(self.methods()[0], m.ConnectionStartOk)
        self.send(m.ConnectionTune(channel_max, frame_max, heartbeat))
        tune_ok, opening = self.methods()
        assert isinstance(tune_ok, m.ConnectionTuneOk)
        assert isinstance(opening, m.ConnectionOpen)
        self.send(m.ConnectionOpenOk())
        self.core.opened.value()

    def channel(self, *, confirms: bool = True, keep: bool = False) -> CoreChannel:
        """An open channel on an open connection."""
        call = self.core.open_channel(confirms=confirms, keep=keep)
        frames = self.written()
        number = frames[-1].channel
        self.send(m.ChannelOpenOk(), channel=number)
        return call.value()


def headers(frames: list[Frame]) -> list[Frame]:
    """The content headers among frames."""
    return [frame for frame in frames if frame.kind == HEADER]
