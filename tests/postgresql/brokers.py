"""Brokers over one store in PostgreSQL: who serves, who waits, and how each of them ends."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tests.patience import eventually
from tests.ports import free_port
from tests.running import command, environment

LEASE_MS = 8_000
"""A machine may stand still for seconds before a broker loses its store, which no test expects."""
SERVE_SECONDS = 60.0
SMALL_GENERATIONS = """
from harebell.cluster.postgresql import fenced_log_writer
from harebell.store.journal import row_compression
fenced_log_writer.GENERATION_BYTES = fenced_log_writer.DEAD_MAX_BYTES = 100_000
row_compression.COMPRESS_MIN_BYTES = 200
"""
"""For `planted`: generations of the log end and are removed all the time, as after a day.

Small rows are compressed, too, because those of tests are small.
"""
_FRAME_HEADER = 7
_HEADER = b"AMQP\x00\x00\x09\x01"
_POLL_SECONDS = 0.005


class StoreBroker:
    """`harebell serve` over a store; it need not own it. As a context manager it is killed.

    Args:
        name: of the broker, which it gives to its clients too.
        url: of the database.
        flags: more flags.
        lease_ms: the milliseconds of the lease.
        planted: Python that the broker runs before anything else, to plant a fault.
        prefix: a command that runs the broker, such as env with variables.

    Attributes:
        name: as given.
        port: for AMQP, the same in all of its lives.
        data_dir: its cache and control socket.
    """

    def __init__(
        self,
        name: str,
        url: str,
        flags: Sequence[str] = (),
        lease_ms: int = LEASE_MS,
        planted: str = "",
        prefix: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.port = free_port()
        self._url = url
        self._home = Path(tempfile.mkdtemp(prefix="hb-over-pg-"))
        self.data_dir = self._home / "data"
        program = [command()]
        if planted:
            plan = f"{planted}\nfrom harebell.__main__ import main\nmain()"
            program = [sys.executable, "-c", plan]
        self._command = [
            # It ends when the tests are killed.
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *prefix,
            *program,
            "serve",
            f"--port={self.port}",
            f"--data-dir={self.data_dir}",
            f"--node-name={name}@localhost",
            f"--cluster-name={name}",
            f"--storage-lease-ms={lease_ms}",
            *flags,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything that it printed, in all of its lives."""
        path = self._home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def has_logged(self, text: str) -> bool:
        """Whether it has printed this."""
        return text in self.log

    def start(self) -> None:
        """Start it; it serves when it owns the store."""
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment({"HAREBELL_STORAGE": self._url}),
            )

    def serves(self) -> bool:
        """Whether it answers clients itself: one that stands by passes them on to the owner."""
        name = self.name.encode()
        wanted = b"\x0ccluster_nameS" + len(name).to_bytes(4) + name
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as probe:
            probe.settimeout(1)
            probe.sendall(_HEADER)
            with probe.makefile("rb") as answer:
                frame = answer.read(_FRAME_HEADER)
                return wanted in answer.read(int.from_bytes(frame[3:]))
        return False

    def wait_until_it_serves(self, seconds: float = SERVE_SECONDS) -> float:
        """Wait until it answers clients; how many seconds that took.

        Raises:
            AssertionError: it does not; its log is the text.
        """
        began = time.monotonic()
        while not self.serves():
            waits = self.running and time.monotonic() - began < seconds
            assert waits, f"{self.name} does not serve:\n{self.log}"
            time.sleep(_POLL_SECONDS)
        return time.monotonic() - began

    def wait_until_it_answers(self) -> None:
        """Wait until it accepts connections, be it as a standby.

        Raises:
            AssertionError: it does not; its log is the text.
        """

        def answers() -> bool:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return True
            return False

        assert eventually(answers), self.log

    def ended(self, seconds: float = SERVE_SECONDS) -> int:
        """Wait until it ends by itself; its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        """kill -9, and wait for the end."""
        assert self._process is not None
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """Stop it in good order; its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(SERVE_SECONDS)

    def pause(self) -> None:
        """SIGSTOP, and wait until it has stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.pid}/stat")
        assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def forget(self) -> None:
        """Lose its machine: kill it, and empty its data directory."""
        self.kill()
        shutil.rmtree(self.data_dir)

    def remove(self) -> None:
        """Kill it and remove its files."""
        self.kill()
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> StoreBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def owner_of(brokers: Sequence[StoreBroker], seconds: float = SERVE_SECONDS) -> StoreBroker:
    """The first of these that serves, as soon as one does.

    Raises:
        AssertionError: none does; their logs are the text.
    """
    found: list[StoreBroker] = []

    def serving() -> bool:
        found.extend(each for each in brokers if each.running and each.serves())
        return bool(found) or not any(each.running for each in brokers)

    in_time = eventually(serving, seconds) and bool(found)
    assert in_time, "no broker serves:\n" + "\n".join(
        f"--- {each.name}:\n{each.log}" for each in brokers
    )
    return found[0]
