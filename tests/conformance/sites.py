"""Where the broker under test lives: in this process without a socket, or in one of its own.

Both sites give out wires, which move octets and know nothing else. The site in memory runs the
broker's turn by hand and has a clock that only the test moves; the other starts `harebell serve`
on a free port, as a user would, and stops it by SIGTERM.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from harebell.auth.password_hashes import SHA256
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.front.arrival import Arrival
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_ports import Transport
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.kept import KeptChecks
from harebell.front.common.peer import Peer as Origin
from harebell.front.common.settings import Settings
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from tests.passwords import QuickUsers
from tests.running import STORAGE, storage

START_SECONDS = 60.0
STOP_SECONDS = 60.0
_READ_OCTETS = 65_536
_MORNING_MS = 1_700_000_000_000
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != STORAGE}
_LINGER_SECONDS = 20.0
_MAIN = f"""
from harebell.front import limits
limits.LINGER_SECONDS = {_LINGER_SECONDS}
from harebell.__main__ import main
main()
"""
"""A broker that leaves the end of a connection to a peer for longer than a test stands still."""


class Wire(Protocol):
    """One connection's octets."""

    def write(self, data: bytes) -> None:
        """Send."""

    def read(self, seconds: float) -> bytes | None:
        """What has come, waiting at most so long; b"" for nothing yet, None for the end."""

    def end(self) -> None:
        """Send no more."""

    def drop(self) -> None:
        """Let go of it."""


class MemoryWire:
    """A wire to a broker in this process; the broker's turn runs inside `write`."""

    def __init__(self, site: MemorySite, connection: BaseConnection) -> None:
        self._site = site
        self.connection: Any = connection
        self.arrived = bytearray()
        self.reading = True
        connection.transport = cast(Transport, self)

    def unread(self) -> bool:
        """Whether octets lie in the socket: what is written here is read at once."""
        return False

    def write(self, data: bytes) -> None:
        """Hand octets over in a buffer that is overwritten at once, as the shell's is."""
        if self.connection.closing:
            return
        buffer = bytearray(data)
        self.connection.receive(memoryview(buffer), self._site.now)
        buffer[:] = b"\xaa" * len(buffer)
        self._site.turn()

    def read(self, seconds: float) -> bytes | None:
        """What has come. There is nothing to wait for: turns end before `write` returns."""
        if self.arrived:
            data = bytes(self.arrived)
            self.arrived.clear()
            return data
        return None if self.connection.closing else b""

    def end(self) -> None:
        """The broker reads the end of the stream."""
        self.connection.eof()
        self._site.turn()

    drop = end

    def stop_reading(self) -> None:
        """The socket's buffers are full: the broker cannot write any more."""
        self.reading = False
        self.connection.congested = True

    def start_reading(self) -> None:
        """The socket takes octets again."""
        self.reading = True
        self.connection.congested = False
        self.connection.touch()
        self._site.turn()

    def succeed(self, connection: BaseConnection) -> None:
        """The version is known."""
        self.connection = connection

    def flush(self) -> None:
        """What the shell does for a connection at the end of a turn."""
        if not self.reading:
            return
        self.arrived += self.connection.take_output(self._site.now)
        if not self.connection.closing:
            self.connection.relieved()
            self.connection.resume(self._site.now)


class MemorySite:
    """A whole broker without sockets and with a clock of our own."""

    def __init__(self, memory_high: int = 0, **settings: Any) -> None:
        self.now = 1_000.0
        self.log: list[tuple[str, str]] = []
        self.gauge = Gauge(memory_high) if memory_high else Gauge()
        self.broker = Broker(
            MemoryStore(self.gauge), self.gauge, headers_of, EDITOR, Clock(_MORNING_MS)
        )
        self.registry = ConnectionRegistry(self.gauge)
        self.kept = KeptChecks(self.registry)
        self.users = QuickUsers(os.urandom, algorithm=SHA256)
        self.users.add("guest", "guest", loopback_only=True, tags=("administrator",), vhosts=("/",))
        self.settings = Settings(
            rng=os.urandom,
            log=lambda level, text, *about: self.log.append((level, text)),
            **settings,
        )

    def connect(self, address: str = "127.0.0.1") -> MemoryWire:
        """A new connection from that address."""
        origin = Origin(address, 50_000)
        connection = Arrival(
            self.broker, self.users, self.registry, self.settings, origin, self.now
        )
        return MemoryWire(self, connection)

    def turn(self) -> None:
        """The end of a turn, repeated until nobody has anything left to do."""
        self.registry.publishers.relieve()
        while self.registry.dirty:
            for connection in self.registry.take_dirty():
                wire: Any = connection.transport
                wire.flush()

    def run_turns(self) -> int:
        """Do what is left of long operations; returns in how many turns."""
        count = 0
        while self.registry.turns.busy:
            self.registry.turns.next_turn()
            self.turn()
            count += 1
        return count

    def pass_time(self, seconds: float, step: float = 0.5) -> None:
        """Let the clock run, with the broker's tick."""
        until = self.now + seconds
        while self.now < until:
            before = self.now
            self.now = min(self.now + step, until)
            self.broker.clock.advance(round(self.now * 1000) - round(before * 1000))
            self.broker.tick()
            for connection in list(self.registry.connections):
                connection.tick(self.now)
            self.kept.look(self.now)
            self.broker.events.alarms(self.registry.publishers.short_of())
            self.turn()

    def logged(self, *words: str) -> bool:
        """Whether a line of the log holds all these words."""
        return any(all(word in text for word in words) for _, text in self.log)

    def close(self) -> None:
        """Nothing to stop."""


class SocketWire:
    """A wire to a broker in another process."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lost = False

    def write(self, data: bytes) -> None:
        """Send; a broker that has closed already may refuse to listen."""
        try:
            self._socket.sendall(data)
        except (ConnectionResetError, BrokenPipeError):
            self._lost = True

    def read(self, seconds: float) -> bytes | None:
        """What has come, waiting at most so long."""
        ready, _, _ = select.select([self._socket], [], [], seconds)
        if not ready:
            return None if self._lost else b""
        try:
            return self._socket.recv(_READ_OCTETS) or None
        except ConnectionResetError:
            return None

    def end(self) -> None:
        """Shut the sending side."""
        self._socket.shutdown(socket.SHUT_WR)

    def drop(self) -> None:
        """Close the socket."""
        self._socket.close()


class SocketSite:
    """`harebell serve` in a process of its own, on a free port of loopback."""

    def __init__(self, directory: Path, *flags: str) -> None:
        self._log = (directory / "broker.log").open("w+")
        command = [sys.executable, "-c", _MAIN, "serve", "--port", "0"]
        command += ["--data-dir", str(directory / "data"), *flags]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**_ENVIRONMENT, **storage(str(directory / "data"))},
        )
        try:
            self.port = self._read_port()
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise

    def _read_port(self) -> int:
        assert self.process.stdout is not None
        until = time.monotonic() + START_SECONDS
        said, port = "", 0
        descriptor = self.process.stdout.fileno()
        while "Server startup complete" not in said:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(descriptor, _READ_OCTETS).decode() if ready else ""
            assert piece, f"the broker did not start: {said!r}; it logged: {self.logs()}"
            said += piece
        for line in said.splitlines():
            if line.startswith("listening on "):
                port = int(line.split()[2].rpartition(":")[2].rstrip("/"))
        assert port, f"the broker did not say its port: {said!r}"
        return port

    def logs(self) -> str:
        """What the broker wrote to its log."""
        self._log.seek(0)
        return self._log.read()

    def connect(self) -> SocketWire:
        """A new connection."""
        assert self.process.poll() is None, f"the broker has died: {self.logs()}"
        return SocketWire(self.port)

    def kill(self) -> None:
        """Kill it, if it runs; a test that has failed does not stop it."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()

    def close(self) -> None:
        """Stop it as a service manager would, and see that it goes."""
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the broker did not stop: {self.logs()}") from None
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
        assert code == 0, f"the broker ended with {code}: {self.logs()}"
        assert "internal error" not in self.logs(), self.logs()
        self._log.close()


Site = MemorySite | SocketSite
Connect = Callable[[], Wire]
