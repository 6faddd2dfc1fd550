"""Who is measured: Harebell, RabbitMQ where it is installed, and the floor, which only relays."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Protocol

from tests.interop.rabbitmq import RabbitNode
from tests.ports import free_port

_START_SECONDS = 120.0
_STOP_SECONDS = 120.0
QUORUM_NODES = 3
"""Nodes of the smallest cluster of RabbitMQ that outlives one of them."""
_FLOOR = Path(__file__).with_name("floor.c")
_SERVE = "from harebell.__main__ import main; main()"


class Broker(Protocol):
    """A broker in a process of its own."""

    name: str
    port: int
    start_seconds: float

    @property
    def pid(self) -> int:
        """The process that it and its children descend from."""

    def stop(self) -> None:
        """End it and remove its files."""


def answers(port: int) -> bool:
    """Whether a broker there answers the protocol header."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0) as probe:
            probe.sendall(b"AMQP\x00\x00\x09\x01")
            return bool(probe.recv(1))
    except OSError:
        return False


class Harebell:
    """`harebell serve` with its defaults, as this Python has it installed.

    Args:
        definitions: a file of what is declared at its start.
        http: whether it has the HTTP API.

    Attributes:
        data_dir: where its control socket is.
        http_port: of the HTTP API; 0 for none.
    """

    name = "harebell"

    def __init__(self, definitions: Path | None = None, *, http: bool = False) -> None:
        self.port = free_port()
        self.http_port = free_port() if http else 0
        self._flags = ["--load-definitions", str(definitions)] if definitions else []
        self._home = Path(tempfile.mkdtemp(prefix="harebell-bench-"))
        self.data_dir = self._home / "data"
        self._log = (self._home / "log").open("wb")
        self.start_seconds = self._start()

    def _start(self) -> float:
        begin = time.monotonic()
        serve = [sys.executable, "-c", _SERVE, "serve", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [
                *serve,
                "--management-port",
                str(self.http_port),
                "--metrics-port",
                "0",
                "--data-dir",
                str(self.data_dir),
                *self._flags,
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        while not answers(self.port):
            late = time.monotonic() > begin + _START_SECONDS
            if late or self._process.poll() is not None:
                output = (self._home / "log").read_text(errors="replace")
                self.stop()
                raise RuntimeError(f"harebell serve did not start:\n{output}")
            time.sleep(0.002)
        return time.monotonic() - begin

    def restart(self) -> tuple[float, float]:
        """Stop it in good order and start it again; how many seconds each took."""
        begin = time.monotonic()
        self._end()
        return time.monotonic() - begin, self._start()

    @property
    def pid(self) -> int:
        """The broker's process."""
        return self._process.pid

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def stop(self) -> None:
        """End it and remove its files."""
        self._end()
        self._log.close()
        shutil.rmtree(self._home, ignore_errors=True)


class RabbitMQ:
    """A RabbitMQ node of our own with its defaults.

    Args:
        definitions: a file of what is declared at its start.
    """

    name = "rabbitmq"

    def __init__(self, definitions: Path | None = None) -> None:
        settings = [f"load_definitions = {definitions}"] if definitions else []
        self._node = RabbitNode(settings=settings)
        self.port = self._node.port
        begin = time.monotonic()
        self._node.start()
        self.start_seconds = time.monotonic() - begin

    @property
    def pid(self) -> int:
        """The node's launcher."""
        return self._node.pid

    def stop(self) -> None:
        """End it and remove its files."""
        self._node.stop()


class RabbitQuorum:
    """Three RabbitMQ nodes of our own on this machine, of which a quorum queue has a member each.

    Attributes:
        port: of the first node, where a queue that a client declares has its leader.
        start_seconds: how long it took until three nodes were there.
    """

    name = "rabbitmq, three nodes"

    def __init__(self) -> None:
        begin = time.monotonic()
        first = RabbitNode()
        self._nodes = [first]
        self.port = first.port
        try:
            first.start()
            while len(self._nodes) < QUORUM_NODES:
                node = RabbitNode(joins=first)
                self._nodes.append(node)
                node.start()
            first.ctl("await_online_nodes", str(QUORUM_NODES))
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.monotonic() - begin

    @property
    def pid(self) -> int:
        """The launcher of the first node."""
        return self._nodes[0].pid

    def members_of(self, queue: str) -> int:
        """How many members a quorum queue has that run."""
        found = self._nodes[0].ctl("list_queues", "--formatter=json", "name", "online")
        rows = {row["name"]: row["online"] for row in json.loads(found)}
        return len(rows.get(queue, ()))

    def stop(self) -> None:
        """End all of them, the port mapper last, and remove their files."""
        while self._nodes:
            self._nodes.pop().stop()


class Floor:
    """A relay of frames in C, `floor.c`, which this compiles: what a broker costs at least.

    It speaks AMQP 0-9-1 and keeps nothing, so it plays loads that consume while they publish.
    """

    name = "floor"

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="harebell-bench-"))
        program = self._home / "floor"
        subprocess.run(["cc", "-O2", "-o", program, _FLOOR], check=True)
        begin = time.monotonic()
        self._process = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.start_seconds = time.monotonic() - begin

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def stop(self) -> None:
        """End it and remove its files."""
        with self._process:
            self._process.kill()
        shutil.rmtree(self._home, ignore_errors=True)


def rabbitmq_is_installed() -> bool:
    """Whether there is a RabbitMQ to measure beside Harebell."""
    return RabbitNode.installed()


KINDS: dict[str, type[Harebell] | type[RabbitMQ]] = {"harebell": Harebell, "rabbitmq": RabbitMQ}
