"""Durable logs that are no AMQP brokers, in the scenarios that confirm what is on disk.

Redis keeps a stream, with `appendfsync always`: an answer means synced. NATS keeps a JetStream
file store. The release in Debian (2.9) syncs every two minutes, which cannot be set, so its
acknowledgement means less than that of the others.

Each has one connection that publishes with as many unanswered messages as the scenario has
unconfirmed, and one that consumes with its prefetch and acknowledges as often.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Result
from bench.peer import BenchError
from bench.process import cpu_seconds, resident_bytes
from bench.scenarios import Scenario
from tests.ports import free_port

_PATIENCE_SECONDS = 60.0
_READ_BYTES = 262_144
_NAME = "bench"
_PROGRAMS = f"{os.environ.get('PATH', '')}:/usr/sbin"
_MIB = 1024 * 1024
_NUMBER = 16
"""Every body begins with its number in so many hexadecimal digits."""


class Served:
    """A server in a directory of its own.

    Attributes:
        port: where it listens.
        pid: its process.
        start_seconds: how long it took until it listened.
    """

    name: str

    def __init__(self) -> None:
        self.port = free_port()
        self._home = Path(tempfile.mkdtemp(prefix="harebell-bench-"))
        begin = time.monotonic()
        self._process = subprocess.Popen(
            self.command(self._home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > begin + _PATIENCE_SECONDS:
                self.stop()
                raise RuntimeError(f"{self.name} did not start")
            time.sleep(0.01)
        self.start_seconds = time.monotonic() - begin

    def command(self, home: Path) -> list[str]:
        """The command that starts it with its files in a directory."""
        raise NotImplementedError

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def stop(self) -> None:
        """End it and remove its files."""
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)


class Redis(Served):
    """A Redis that syncs its log before it answers."""

    name = "redis"

    def command(self, home: Path) -> list[str]:
        """`redis-server` without snapshots."""
        flags = {"port": self.port, "bind": "127.0.0.1", "dir": home, "save": ""}
        flags |= {"appendonly": "yes", "appendfsync": "always"}
        return [
            _program(self.name) or "",
            *(f for k, v in flags.items() for f in (f"--{k}", str(v))),
        ]


class Nats(Served):
    """A NATS server with JetStream."""

    name = "nats"

    def command(self, home: Path) -> list[str]:
        """`nats-server` with its files in a directory."""
        return [
            _program(self.name) or "",
            "-a",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-js",
            "-sd",
            str(home),
        ]


def installed() -> list[type[Served]]:
    """Those that this machine has."""
    return [kind for kind in (Redis, Nats) if _program(kind.name)]


def _program(name: str) -> str | None:
    """The server, which not every user has on PATH."""
    return shutil.which(f"{name}-server", path=_PROGRAMS)


class _Wire:
    """A connection whose input is kept until it is understood."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b""

    def read(self) -> None:
        """Wait for input."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise BenchError("the server closed the connection")
        self.input += data

    def read_if_any(self) -> None:
        """Take what has come."""
        while select.select([self.socket], [], [], 0)[0]:
            self.read()


class _Log(ABC):
    """How one of them is published to and consumed from.

    Args:
        port: where it listens.
        scenario: what is played.
    """

    def __init__(self, port: int, scenario: Scenario) -> None:
        self.publisher, self.consumer, self.settler = _Wire(port), _Wire(port), _Wire(port)
        self.window = scenario.prefetch
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Make the log and its consumer."""

    @abstractmethod
    def publish(self, bodies: list[bytes]) -> None:
        """Write messages."""

    @abstractmethod
    def answers(self) -> int:
        """Return how many answers to publishes have come, and forget them."""

    @abstractmethod
    def deliveries(self) -> Iterator[bytes]:
        """Return the bodies that have come."""

    @abstractmethod
    def acknowledge(self) -> None:
        """Acknowledge all that have come."""


class _RedisLog(_Log):
    def prepare(self) -> None:
        self._ids: list[bytes] = []
        for words in (b"DEL " + _KEY, b"XGROUP CREATE " + _KEY + b" group $ MKSTREAM"):
            self.publisher.socket.sendall(_redis(*words.split()))
            self.publisher.read()
        self.publisher.input = b""
        self._ask()

    def _ask(self) -> None:
        room = self.window - len(self._ids)
        self._asked = room > 0
        if not self._asked:
            return
        group = (b"XREADGROUP", b"GROUP", b"group", b"reader", b"COUNT", b"%d" % room)
        self.consumer.socket.sendall(_redis(*group, b"BLOCK", b"0", b"STREAMS", _KEY, b">"))

    def publish(self, bodies: list[bytes]) -> None:
        self.publisher.socket.sendall(
            b"".join(_redis(b"XADD", _KEY, b"*", b"body", body) for body in bodies)
        )

    def answers(self) -> int:
        lines = self.publisher.input.split(b"\r\n")
        if any(line.startswith(b"-") for line in lines):
            raise BenchError(f"redis: {lines[0].decode()}")
        # An answer is the length of an identifier, and the identifier.
        whole = (len(lines) - 1) // 2
        self.publisher.input = b"\r\n".join(lines[2 * whole :])
        return whole

    def deliveries(self) -> Iterator[bytes]:
        data = self.consumer.input
        count = re.match(rb"\*1\r\n\*2\r\n\$\d+\r\n\w+\r\n\*(\d+)\r\n", data)
        entries = list(_REDIS_ENTRY.finditer(data, count.end())) if count else []
        if count is None or len(entries) < int(count[1]):
            return
        self.consumer.input = data[entries[-1].end() :]
        for entry in entries:
            self._ids.append(entry[1])
            yield entry[2]
        self._ask()

    def acknowledge(self) -> None:
        if self._ids:
            # Not on the connection of the consumer, which waits for its next messages.
            self.settler.socket.sendall(_redis(b"XACK", _KEY, b"group", *self._ids))
            self.settler.read_if_any()
            self.settler.input = b""
            self._ids = []
        if not self._asked:
            self._ask()


_KEY = _NAME.encode()
_REDIS_ENTRY = re.compile(
    rb"\*2\r\n\$\d+\r\n([\d-]+)\r\n\*2\r\n\$4\r\nbody\r\n\$\d+\r\n([^\r]*)\r\n"
)
_NATS_MESSAGE = re.compile(rb"MSG \S+ \d+ +(\S+ )?(\d+)\r\n")


def _redis(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(
        b"$%d\r\n%b\r\n" % (len(each), each) for each in words
    )


class _NatsLog(_Log):
    def prepare(self) -> None:
        self._reply = b""
        for wire in (self.publisher, self.consumer):
            wire.socket.sendall(b'CONNECT {"verbose":false}\r\nPING\r\n')
            while b"PONG\r\n" not in wire.input:
                wire.read()
            wire.input = b""
        stream = {"name": _NAME, "subjects": [_NAME], "storage": "file"}
        self._call("STREAM.DELETE.bench", {}, absent=True)
        self._call("STREAM.CREATE.bench", stream)
        settings = {"durable_name": "reader", "ack_policy": "all", "max_ack_pending": self.window}
        self._call(
            "CONSUMER.DURABLE.CREATE.bench.reader",
            {"stream_name": _NAME, "config": {**settings, "deliver_subject": "deliver.bench"}},
        )
        self.publisher.socket.sendall(b"SUB _INBOX.bench 1\r\n")
        self.consumer.socket.sendall(b"SUB deliver.bench 2\r\n")

    def _call(self, what: str, request: object, *, absent: bool = False) -> None:
        body = json.dumps(request).encode()
        head = f"PUB $JS.API.{what} _INBOX.call {len(body)}\r\n".encode()
        self.publisher.socket.sendall(b"SUB _INBOX.call 3\r\n" + head + body + b"\r\n")
        while not (answers := list(_nats_messages(self.publisher))):
            self.publisher.read()
        if b'"error"' in answers[0][1] and not absent:
            raise BenchError(f"nats: {answers[0][1].decode()}")
        self.publisher.socket.sendall(b"UNSUB 3\r\n")

    def publish(self, bodies: list[bytes]) -> None:
        self.publisher.socket.sendall(
            b"".join(b"PUB bench _INBOX.bench %d\r\n%b\r\n" % (len(each), each) for each in bodies)
        )

    def answers(self) -> int:
        return sum(1 for _ in _nats_messages(self.publisher))

    def deliveries(self) -> Iterator[bytes]:
        for reply, body in _nats_messages(self.consumer):
            self._reply = reply
            yield body

    def acknowledge(self) -> None:
        if self._reply:
            self.consumer.socket.sendall(b"PUB %b 4\r\n+ACK\r\n" % self._reply)
            self._reply = b""


def _nats_messages(wire: _Wire) -> Iterator[tuple[bytes, bytes]]:
    """Return the reply subject and the body of each message that has come as a whole."""
    data, offset = wire.input, 0
    while True:
        if data.startswith(b"PING\r\n", offset):
            wire.socket.sendall(b"PONG\r\n")
            offset += 6
            continue
        head = _NATS_MESSAGE.match(data, offset)
        if head is None or head.end() + int(head[2]) + 2 > len(data):
            break
        end = head.end() + int(head[2])
        offset = end + 2
        yield (head[1] or b"").strip(), data[head.end() : end]
    wire.input = data[offset:]


def _body(number: int, size: int) -> bytes:
    return b"%0*x" % (_NUMBER, number) + b"x" * (size - _NUMBER)


def play(server: Served, scenario: Scenario, seconds: float) -> Result:
    """Run a scenario that confirms.

    Raises:
        BenchError: something was lost, doubled, out of order, or took too long.
    """
    log = (_RedisLog if isinstance(server, Redis) else _NatsLog)(server.port, scenario)
    before, begin = cpu_seconds(server.pid), time.monotonic()
    sent = answered = received = acknowledged = 0
    batch = max(1, scenario.confirms // 4)
    until = begin + seconds
    while (sending := time.monotonic() < until) or received < sent or answered < sent:
        if time.monotonic() > until + _PATIENCE_SECONDS:
            raise BenchError(f"{server.name} {scenario.name}: {received} of {sent} were delivered")
        while sending and sent + batch - answered <= scenario.confirms:
            log.publish([_body(sent + n, scenario.size) for n in range(batch)])
            sent += batch
        ready, _, _ = select.select([log.publisher.socket, log.consumer.socket], [], [], 0.1)
        if log.publisher.socket in ready:
            log.publisher.read()
            answered += log.answers()
        if log.consumer.socket in ready:
            log.consumer.read()
        for body in log.deliveries():
            if body != _body(received, scenario.size):
                raise BenchError(f"{server.name}: expected {received}, got {body[:_NUMBER]!r}")
            received += 1
        if received - acknowledged >= scenario.ack_every or received == sent:
            acknowledged = received
            log.acknowledge()
    took = time.monotonic() - begin
    return Result(
        broker=server.name,
        scenario=scenario.name,
        us_per_message=(cpu_seconds(server.pid) - before) * 1e6 / received,
        messages_per_second=received / took,
        messages=received,
        resident_mib=resident_bytes(server.pid) / _MIB,
    )
