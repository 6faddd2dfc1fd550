"""A blocking raw client, and what a broker process costs."""

from __future__ import annotations

import os
import resource
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from harebell.wire.v09 import methods as m
from tests.model.peer import Event, Reader, call, login
from tests.patience import SECONDS
from tests.running import RunningBroker

PATIENCE = SECONDS
MIB = 1024 * 1024


class Gone(ConnectionError):
    """The broker has closed the connection."""


class RawClient:
    """One socket that speaks frames and has no opinions.

    Args:
        broker: whom to connect to.
        log_in: whether to open the connection and channel 1.
        receive_buffer: size of the socket's receive buffer; 0 leaves it to the system.
    """

    def __init__(
        self, broker: RunningBroker, *, log_in: bool = True, receive_buffer: int = 0
    ) -> None:
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(("127.0.0.1", broker.port))
        self.reader = Reader()
        self.events: list[Event] = []
        if log_in:
            self.send(login() + call(1, m.ChannelOpen()))
            self.until(m.ChannelOpenOk)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Write everything."""
        self.socket.sendall(data)

    def ask(self, method: m.Method, answer: type[m.Method]) -> Event:
        """A method on channel 1, and its answer."""
        self.send(call(1, method))
        return self.until(answer)

    def read(self) -> list[Event]:
        """What has come with the next read."""
        data = self.socket.recv(1 << 20)
        if not data:
            raise Gone("the broker has closed the connection")
        return self.reader.feed(data)

    def until(self, wanted: type[m.Method]) -> Event:
        """Read until such a method comes; what came before it is dropped."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if isinstance(event.method, wanted):
                    return event
            self.events = self.read()

    def collect(self, enough: Callable[[list[Event]], bool]) -> list[Event]:
        """Read until it is enough."""
        found = self.events
        self.events = []
        while not enough(found):
            found += self.read()
        return found

    def ended(self) -> bool:
        """Whether the broker closes the connection (reads the rest away)."""
        try:
            while True:
                self.events += self.read()
        except (Gone, ConnectionResetError):
            return True
        except TimeoutError:
            return False

    def reset(self) -> None:
        """Vanish with a TCP reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def memory_of(pid: int) -> dict[str, int]:
    """Octets of memory that a process has: VmRSS now, VmHWM at most so far, and others."""
    found = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith(" kB"):
            found[name] = int(value.removesuffix(" kB")) * 1024
    if "VmRSS" not in found:
        raise RuntimeError("the broker process is gone")
    return found


def resident(broker: RunningBroker) -> int:
    """Octets of memory that the process has."""
    return memory_of(broker.process.pid)["VmRSS"]


def allocated(broker: RunningBroker) -> int:
    """Octets of memory without the pages of its files, which the system drops and reads again."""
    return memory_of(broker.process.pid)["RssAnon"]


def open_files(broker: RunningBroker) -> int:
    """File descriptors that the process has open."""
    return len(os.listdir(f"/proc/{broker.process.pid}/fd"))


def allow_files(count: int) -> None:
    """Have this process and the brokers it starts open that many files.

    Raises:
        RuntimeError: the system does not allow it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        raise RuntimeError(f"this test needs {count} open files: raise the limit (ulimit -Hn)")
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


def assert_serves(broker: RunningBroker) -> None:
    """A well-behaved client is served."""
    from tests.model.peer import publish

    with RawClient(broker) as client:
        client.ask(m.QueueDeclare(queue="health", exclusive=True), m.QueueDeclareOk)
        client.send(publish(1, "", "health", b"well"))
        answer = client.ask(m.BasicGet(queue="health", no_ack=True), m.BasicGetOk)
        assert answer.body == b"well"
    assert "Traceback" not in broker.log
    assert "internal error" not in broker.log.lower()
