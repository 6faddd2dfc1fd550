"""What every load has: its place, its time, and connections that cost little CPU."""

from __future__ import annotations

import select
import socket as tcp
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from bench.peer import READ_BYTES, SECONDS, BenchError, Peer
from harebell.base.message import Message, Properties
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import METHOD, OutBuffer

USER = "mallory"
FRAME_MAX = 131_072
_PIECE_BYTES = 262_144
_PREPARE_SECONDS = 600.0


class Task(msgspec.Struct, frozen=True):
    """What a load is told.

    Args:
        load: its name.
        port: where the broker listens.
        seconds: how long it goes on.
        scale: what its numbers are multiplied by.
        data_dir: of a Harebell, for what is asked at the control socket; empty for others.
        http_port: of the HTTP API of a Harebell; 0 for others.
    """

    load: str
    port: int
    seconds: float
    scale: float = 1.0
    data_dir: str = ""
    http_port: int = 0


def call(method: m.Method, channel: int = 1) -> bytes:
    """A method's frame."""
    out = OutBuffer()
    out.frame(METHOD, channel, AMQP_0_9_1.encode(method))
    return bytes(out.take())


def publish(
    exchange: str,
    key: str,
    body: bytes = b"",
    properties: BasicProperties | None = None,
    channel: int = 1,
) -> bytes:
    """A publish with its content."""
    raw = encode_properties(properties or BasicProperties())
    out = OutBuffer()
    out.publish(channel, 0, Message(exchange, key, Properties(raw), body), FRAME_MAX)
    return bytes(out.take())


class Connected(Protocol):
    """A connection of any version.

    Attributes:
        socket: its socket.
    """

    socket: tcp.socket


class Line(Peer):
    """A connection that counts deliveries and forgets them.

    Attributes:
        delivered: how many came.
        latest: the delivery tag of the last one.
    """

    def __init__(self, port: int) -> None:
        self.delivered = self.latest = 0
        super().__init__(port, self._count, user=USER)
        self.socket.settimeout(_PREPARE_SECONDS)

    def _count(self, _: str, tag: int, __: bytes) -> None:
        self.delivered += 1
        self.latest = tag

    def sync(self) -> None:
        """Return when the broker has done all that was written before."""
        # A channel's methods are done in their order, and qos changes nothing here.
        self.call(m.BasicQos(), m.BasicQosOk)

    def take(self, count: int) -> None:
        """Wait for so many deliveries."""
        while self.delivered < count:
            self.read()


class Side:
    """A load's own side of the wire.

    Args:
        task: what it is told.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.until = float("inf")
        self.done = 0
        self._dump = memoryview(bytearray(READ_BYTES))

    def many(self, count: int) -> int:
        """A number, at the scale of this run."""
        return max(1, int(count * self.task.scale))

    def begin(self) -> None:
        """The time counts from now on."""
        self.until = time.monotonic() + self.task.seconds

    @property
    def over(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self.until

    def line(self) -> Line:
        """A connection with channel 1 open."""
        return Line(self.task.port)

    def lines(self, count: int) -> list[Line]:
        """So many."""
        return [self.line() for _ in range(count)]

    def pour(self, line: Connected, pieces: Iterable[bytes]) -> None:
        """Write pieces until the time is over, and drop unread whatever is answered."""
        socket, dump = line.socket, self._dump
        waiting = _joined(pieces)
        data = memoryview(b"")
        socket.setblocking(False)
        while not self.over:
            if not data:
                data = memoryview(next(waiting, b""))
                if not data:
                    break
            readable, writable, _ = select.select([socket], [socket], [], 0.2)
            if readable and socket.recv_into(dump) == 0:
                raise BenchError(f"{self.task.load}: the broker closed the connection")
            if writable:
                data = data[socket.send(data) :]
                self.done += 1
        # The rest of a frame is never written: the connection ends with the process.

    def pour_all(self, lines: list[Line], piece: bytes) -> None:
        """Write one piece to all lines again and again until the time is over."""
        left = {line.socket: memoryview(piece) for line in lines}
        for socket in left:
            socket.setblocking(False)
        while not self.over:
            readable, writable, _ = select.select(left, left, [], 0.2)
            for socket in readable:
                if socket.recv_into(self._dump) == 0:
                    raise BenchError(f"{self.task.load}: the broker closed the connection")
            for socket in writable:
                rest = left[socket]
                left[socket] = rest[socket.send(rest) :] or memoryview(piece)
                self.done += 1

    def idle(self, lines: Iterable[Connected] = ()) -> None:
        """Wait until the time is over, and drop unread whatever comes."""
        sockets = [line.socket for line in lines]
        while not self.over:
            left = min(max(self.until - time.monotonic(), 0.0), 0.2)
            for socket in select.select(sockets, [], [], left)[0]:
                if socket.recv_into(self._dump) == 0:
                    sockets.remove(socket)

    def prepared(self, line: Line, pieces: Iterable[bytes]) -> None:
        """Write what needs no answer, and wait until it is done."""
        for piece in _joined(pieces):
            line.socket.sendall(piece)
        line.sync()

    def queues(
        self,
        line: Line,
        prefix: str,
        count: int,
        arguments: Mapping[str, object] | None = None,
        *,
        durable: bool = False,
    ) -> list[str]:
        """Declare so many queues."""
        names = [f"{prefix}.{number}" for number in range(count)]
        given = dict(arguments or {})
        pieces = (
            call(m.QueueDeclare(name, durable=durable, nowait=True, arguments=given))
            for name in names
        )
        self.prepared(line, pieces)
        return names

    def bound(self, line: Line, exchange: str, kind: str, names: Iterable[str]) -> None:
        """Declare an exchange and bind queues to it, each by its name."""
        line.call(m.ExchangeDeclare(exchange, kind), m.ExchangeDeclareOk)
        self.prepared(line, (call(m.QueueBind(name, exchange, name, True)) for name in names))

    def filled(self, line: Line, queue: str, count: int, body: bytes = b"x" * 16) -> None:
        """Declare a queue and put so many messages into it."""
        line.call(m.QueueDeclare(queue), m.QueueDeclareOk)
        batch = 500
        block = publish("", queue, body) * batch
        self.prepared(line, (block for _ in range(-(-count // batch))))


def _joined(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pieces side by side, so many that a write is worth it."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _PIECE_BYTES:
            yield b"".join(gathered)
            gathered.clear()
            size = 0
    if gathered:
        yield b"".join(gathered)


Load = Callable[[Side], Iterator[None]]


class Kind(msgspec.Struct, frozen=True):
    """A load that can be chosen.

    Args:
        name: how it is called.
        says: what it does, for people.
        play: the generator function.
        everywhere: whether other brokers than Harebell can be asked for it.
        chosen: whether it is part of a run without a choice.
    """

    name: str
    says: str
    play: Load
    everywhere: bool = True
    chosen: bool = True


LOADS: dict[str, Kind] = {}
"""All loads by name, in the order of the modules that have them."""


def load(*, everywhere: bool = True, chosen: bool = True) -> Callable[[Load], Load]:
    """Make a generator function a load; its name is the function's, with dashes."""

    def kept(play: Load) -> Load:
        name = play.__name__.replace("_", "-")
        says = (play.__doc__ or "").rstrip(".")
        LOADS[name] = Kind(name, says, play, everywhere, chosen)
        return play

    return kept


__all__ = ["LOADS", "SECONDS", "USER", "Kind", "Line", "Side", "Task", "call", "load", "publish"]
