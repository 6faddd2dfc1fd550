"""A fast raw client for harnesses: publishes that were encoded before, deliveries read by hand.

Like `raw.py` it has no opinion of what a broker should do and shares no scanner with it, but it
decodes only what a load needs, so that a Python process can drive a broker at full speed. It is
never surprised when the broker dies: `alive` becomes false.
"""

from __future__ import annotations

import select
import socket
import struct
import zlib
from collections.abc import Callable

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties
from tests.model.peer import FRAME_MAX, call, login
from tests.patience import SECONDS
from tests.running import RunningBroker

_READ = 1 << 18
_HEAD = struct.Struct(">BHI")
_STAMP = struct.Struct(">QI")
_CONTENT = struct.Struct(">BHIHHQ")
_ACK = struct.Struct(">BHIIQBB")
_CLASS_BASIC = 0x003C
_BASIC_DELIVER = 0x003C003C
_BASIC_ACK = 0x003C0050
_BASIC_NACK = 0x003C0078
_OK = (b"\x00", b"\x01")
_FORCED = 320
"""The reply code of a broker that stops or hands over (AMQP 0-9-1 1.2)."""


class Damaged(AssertionError):
    """A body is not what anybody sent."""


def body_of(number: int, padding: bytes = b"") -> bytes:
    """A body that proves itself: a number, a checksum of everything else, and padding."""
    checksum = zlib.crc32(padding, zlib.crc32(number.to_bytes(8)))
    return _STAMP.pack(number, checksum) + padding


def number_in(body: bytes) -> int:
    """The number of a body from `body_of`.

    Raises:
        Damaged: its checksum does not fit.
    """
    if len(body) < _STAMP.size:
        raise Damaged(f"a body of {len(body)} octets: {body!r}")
    number, checksum = _STAMP.unpack_from(body)
    if zlib.crc32(memoryview(body)[_STAMP.size :], zlib.crc32(body[:8])) != checksum:
        raise Damaged(f"a damaged body of {len(body)} octets: {body[:64]!r}")
    return int(number)


class Envelope:
    """The frames of a publish but for its body.

    Args:
        key: the queue, reached by the default exchange.
        persistent: whether the delivery mode is 2.
        priority: the priority; None for none.
    """

    def __init__(self, key: str, *, persistent: bool = True, priority: int | None = None) -> None:
        self._method = call(1, m.BasicPublish(routing_key=key))
        properties = BasicProperties(delivery_mode=2 if persistent else 1, priority=priority)
        self._properties = encode_properties(properties)

    def around(self, body: bytes, channel: int = 1) -> bytes:
        """The whole publish; a body fits into one frame."""
        assert 0 < len(body) <= FRAME_MAX - 8
        properties = self._properties
        head = _CONTENT.pack(2, channel, 12 + len(properties), _CLASS_BASIC, 0, len(body))
        method = self._method
        if channel != 1:
            method = method[:1] + channel.to_bytes(2) + method[3:]
        framed = _HEAD.pack(3, channel, len(body)) + body
        return method + head + properties + b"\xce" + framed + b"\xce"


class Delivery:
    """What came to a consumer.

    Args:
        channel: where it came.
        consumer: the consumer's tag.
        tag: the delivery tag.
        redelivered: the broker's mark.
        properties: the encoded property list.
        body: the body.
    """

    __slots__ = ("body", "channel", "consumer", "properties", "redelivered", "tag")

    def __init__(self, channel: int, consumer: str, tag: int, redelivered: bool) -> None:
        self.channel = channel
        self.consumer = consumer
        self.tag = tag
        self.redelivered = redelivered
        self.properties = b""
        self.body = b""

    @property
    def offset(self) -> int:
        """The value of the header `x-stream-offset`."""
        headers = decode_properties(self.properties).headers
        assert headers is not None
        return int(headers["x-stream-offset"])


class Link:
    """One connection with channel 1 open.

    Args:
        port: where the broker listens.
        receive_buffer: size of the socket's receive buffer; 0 leaves it to the system.

    Raises:
        ConnectionError: the broker is not there, or goes while the connection opens.

    Attributes:
        alive: whether the broker has not closed the connection.
        on_delivery: called with every delivery.
        on_ack: called with channel, delivery tag, multiple and whether it is a basic.nack.
        methods: every other method that came, in order.
        broker: the `cluster_name` that the broker has given.
    """

    def __init__(self, port: int, *, receive_buffer: int = 0) -> None:
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(SECONDS)
        sock.connect(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._begin(sock)
        self.send(login() + call(1, m.ChannelOpen()))
        self.until(m.ChannelOpenOk)

    def _begin(self, sock: socket.socket) -> None:
        """Know nothing yet of a socket that is connected."""
        self.alive = True
        self.on_delivery: Callable[[Delivery], None] = lambda _delivery: None
        self.on_ack: Callable[[int, int, bool, bool], None] = lambda *_: None
        self.methods: list[m.Method] = []
        self.broker = ""
        self._rest = b""
        self._delivery: Delivery | None = None
        self._missing = -1
        self._parts: list[bytes] = []
        self.socket = sock

    @classmethod
    def to(cls, broker: RunningBroker) -> Link:
        """A connection to a broker of the tests."""
        return cls(broker.port)

    def fileno(self) -> int:
        """The socket's number, for select."""
        return self.socket.fileno()

    def send(self, data: bytes | memoryview) -> bool:
        """Write everything; returns whether the broker was still there to take it."""
        if self.alive:
            try:
                self.socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                # What the broker wrote before it went can still be read.
                return False
        return self.alive

    def ask(self, method: m.Method, answer: type[m.Method], channel: int = 1) -> m.Method:
        """A method and its answer.

        Raises:
            ConnectionError: the broker goes before it answers.
        """
        self.send(call(channel, method))
        return self.until(answer)

    def until(self, wanted: type[m.Method]) -> m.Method:
        """Read until such a method comes; other methods before it are dropped.

        Raises:
            ConnectionError: the broker goes before.
            AssertionError: the broker closes the channel or the connection.
        """
        while True:
            while self.methods:
                found = self.methods.pop(0)
                if isinstance(found, wanted):
                    return found
                if isinstance(found, m.ConnectionClose) and found.reply_code == _FORCED:
                    raise ConnectionError(found.reply_text)
                assert not isinstance(found, m.ChannelClose | m.ConnectionClose), found
            if not self.alive:
                raise ConnectionError("the broker has closed the connection")
            self.read()

    def read(self) -> None:
        """Wait for input and take it."""
        try:
            data = self.socket.recv(_READ)
        except (ConnectionResetError, BrokenPipeError):
            data = b""
        if data:
            self.feed(data)
        else:
            self.alive = False

    def readable(self, seconds: float = 0.0) -> bool:
        """Whether there is something to read, or becomes so in time."""
        return bool(select.select([self.socket], [], [], seconds)[0])

    def read_if_any(self) -> None:
        """Take input that is there already."""
        while self.alive and self.readable():
            self.read()

    def goodbye(self) -> None:
        """Close as one should, so that the broker knows it when this returns."""
        self.send(call(0, m.ConnectionClose(200, "done")))
        while self.alive and not any(
            isinstance(each, m.ConnectionCloseOk) for each in self.methods
        ):
            self.read()
        self.close()

    def close(self) -> None:
        """Go without a word."""
        self.socket.close()
        self.alive = False

    # --- frames ---------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take frames apart."""
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        while end - at >= 8:
            kind, channel, size = _HEAD.unpack_from(data, at)
            if at + size + 8 > end:
                break
            assert data[at + size + 7] == 0xCE, "a frame does not end where it should"
            self._frame(kind, channel, data, at + 7, size)
            at += size + 8
        self._rest = data[at:]

    def _frame(self, kind: int, channel: int, data: bytes, at: int, size: int) -> None:
        if kind == 3:
            self._parts.append(data[at : at + size])
            self._missing -= size
        elif kind == 2:
            delivery = self._delivery
            assert delivery is not None, "a content without a method"
            self._missing = int.from_bytes(data[at + 4 : at + 12])
            delivery.properties = data[at + 12 : at + size]
        elif kind == 1:
            self._method(channel, data, at, size)
            return
        else:
            return
        if self._missing == 0:
            delivery, self._delivery = self._delivery, None
            self._missing = -1
            assert delivery is not None
            delivery.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
            self._parts.clear()
            self.on_delivery(delivery)

    def _method(self, channel: int, data: bytes, at: int, size: int) -> None:
        name = int.from_bytes(data[at : at + 4])
        if name == _BASIC_DELIVER:
            tag_at = at + 5 + data[at + 4]
            consumer = data[at + 5 : tag_at].decode()
            tag = int.from_bytes(data[tag_at : tag_at + 8])
            self._delivery = Delivery(channel, consumer, tag, data[tag_at + 8] != 0)
        elif name in (_BASIC_ACK, _BASIC_NACK):
            tag = int.from_bytes(data[at + 4 : at + 12])
            self.on_ack(channel, tag, bool(data[at + 12] & 1), name == _BASIC_NACK)
        else:
            method = AMQP_0_9_1.decode(data[at : at + size])
            if isinstance(method, m.ConnectionStart):
                self.broker = str(method.server_properties.get("cluster_name", ""))
            self.methods.append(method)


def acknowledgement(tag: int, *, multiple: bool = False, channel: int = 1) -> bytes:
    """A basic.ack from a consumer."""
    return _ACK.pack(1, channel, 13, _BASIC_ACK, tag, multiple, 0xCE)
