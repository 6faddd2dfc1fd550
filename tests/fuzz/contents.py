"""Fuzzed: property lists of the other classes, the staging area, and a connection of 0-8."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from harebell.base.clock import Clock
from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_09, Message
from harebell.base.ports import Commit
from harebell.base.timers import Timers
from harebell.front.convert import converted
from harebell.model.staging import DIRECTORY, Staging
from harebell.store.memory_files import MemoryFiles
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older as f
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.method import Method
from harebell.wire.v09.property_list import (
    FILE,
    OTHER_LISTS,
    STREAM,
    TEST,
    TUNNEL,
    FileProperties,
    PropertyList,
    StreamProperties,
    TunnelProperties,
)
from tests.conformance.frames import Reader
from tests.model.memory import MemoryBroker
from tests.model.peer import frame

_KEY = ("/", "guest", "id")
_HEADER = b"AMQP\x01\x01\x08\x00"


def contents(data: bytes) -> None:
    """A property list is refused, or written as it was read, and converts to basic and back."""
    if not data:
        return
    listed = list(OTHER_LISTS.values())[data[0] % len(OTHER_LISTS)]
    try:
        found = listed.parse(data[1:])
    except ProtocolError as error:
        if error.code != 505:
            raise AssertionError(error) from None
        return
    decoded = listed.decode(found.raw)
    assert repr(listed.decode(listed.encode(decoded))) == repr(decoded)
    if listed.family != FAMILY_09:
        there = converted(Message("e", "k", found, b""), FAMILY_09)
        assert converted(there, listed.family).family == listed.family


def _area(files: MemoryFiles) -> Staging:
    clock = Clock(1_000)
    return Staging(files, clock, Timers(clock), Commit())


def staged(data: bytes) -> None:
    """Whatever is in the directory, a file can be staged; what is found is what was sent before."""
    files = MemoryFiles()
    area = _area(files)
    body = bytes(range(256)) * 40
    one = area.open(_KEY, len(body), area)
    area.describe(one, b"\0\0")
    area.write(one, body[:5_000])
    area.release(one)
    (name,) = files.names(DIRECTORY)
    file = files.open(f"{DIRECTORY}/{name}")
    at = int.from_bytes(data[:2]) % (file.size() + 1)
    file.write_at(data[2:], at)
    files.open(f"{DIRECTORY}/stray", create=True).write_at(data, 0)
    area = _area(files)
    two = area.open(_KEY, len(body), area)
    area.describe(two, b"\0\0")
    area.write(two, body[two.staged :])
    area.release(two)
    assert area.body(two) == body


def connection08(data: bytes) -> None:
    """Anything after login to 0-8 ends in frames of the protocol, and nothing escapes."""
    broker = MemoryBroker(seed=1)
    connection = broker.accept()
    shell = _Shell(connection)
    reader = Reader()
    shell.connection.receive(_login(), 0.0)
    shell.connection.receive(data, 1.0)
    for now in (1.0, 20.0, 40.0, 60.0):
        broker.clock.advance(20_000)
        broker.broker.tick()
        shell.connection.tick(now)
        reader.data += shell.connection.take_output(now)
    while reader.next() is not None:
        pass
    assert not reader.data, "the output ends inside a frame"
    shell.connection.eof()
    assert not broker.registry.connections
    assert not broker.internal_errors(), broker.internal_errors()


class _Shell:
    """Follows a connection from its arrival to the version that it chose."""

    @staticmethod
    def unread() -> bool:
        """Nothing lies in a socket, for there is none."""
        return False

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        connection.transport = self

    def succeed(self, successor: object) -> None:
        """The version is known."""
        self.connection = successor


def _call(channel: int, method: Method) -> bytes:
    return frame(1, channel, AMQP_0_8.encode(method))


def _content(channel: int, method: Method, listed: PropertyList, raw: bytes, body: bytes) -> bytes:
    octets = _call(channel, method) + frame(2, channel, listed.header(len(body), raw))
    return octets + (frame(3, channel, body) if body else b"")


def _login() -> bytes:
    start = m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US")
    tune = m.ConnectionTuneOk(10, 131_072, 10)
    steps = (start, tune, m.ConnectionOpen("/"))
    return _HEADER + b"".join(_call(0, step) for step in steps) + _call(1, m.ChannelOpen())


def _steps() -> Iterator[bytes]:
    whole = FileProperties("a/b", None, {"h": 1}, 3, filename="x")
    yield _call(1, m.QueueDeclare("q"))
    yield _call(1, f.FileQos(100, 2))
    yield _call(1, f.FileConsume("q", "f"))
    yield _call(1, f.FileOpen("id", 4))
    yield _content(1, f.FileStage(), FILE, FILE.encode(whole), b"body")
    yield _call(1, f.FilePublish("", "q", True, False, "id"))
    yield _call(1, f.FileOpenOk(0))
    yield _call(1, f.FileReject(1, True))
    yield _call(1, f.FileAck(0, True))
    yield _call(1, f.StreamQos(0, 2, 100))
    yield _call(1, f.StreamConsume("q", "s"))
    packet = StreamProperties(headers={"CC": ["q"]}, priority=9)
    yield _content(1, f.StreamPublish("", "q"), STREAM, STREAM.encode(packet), b"packet")
    yield _call(1, f.TestInteger(1, 2, 3, 4, 1))
    yield _call(1, f.TestTable({"a": 1, "b": "x"}, 1, 2))
    yield _content(1, f.TestContent(), TEST, b"\0\0", b"test")
    block = TunnelProperties({"a": 1}, "q", "x/y", 1, 0)
    yield _content(1, f.TunnelRequest({"k": 1}), TUNNEL, TUNNEL.encode(block), b"block")
    yield _call(1, f.FileCancel("f"))
    yield _call(1, f.StreamCancel("s"))
    yield _call(1, m.ChannelClose(reply_code=200))


def content_seeds(target: str) -> list[bytes]:
    """The inputs that a target of this file starts with."""
    if target == "contents":
        full = FileProperties("a/b", "c", {"x-amqp-type": "t"}, 1, "r", "m", "x", 1, "k")
        return [b"\0" + FILE.encode(full), b"\1" + STREAM.encode(StreamProperties(priority=1))]
    if target == "staged":
        return [b"\0\0", b"\x10\0HBSTAGE\1", b"\0\x08" + bytes(40)]
    steps = list(_steps())
    return [b"".join(steps), *steps]


TARGETS: tuple[Callable[[bytes], None], ...] = (contents, staged, connection08)
