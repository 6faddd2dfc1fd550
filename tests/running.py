"""A real broker in its own process, for tests that need one: `harebell serve` on a free port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

READY = "Server startup complete"
_START_SECONDS = 120.0
_STOP_SECONDS = 120.0


def command() -> str:
    """The installed command `harebell`, beside the Python that runs the tests.

    Raises:
        FileNotFoundError: the package is not installed there.
    """
    path = Path(sys.executable).with_name("harebell")
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: install the package with `make test`")
    return str(path)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without the settings of a broker, and with `extra`.

    Brokers of tests have no HTTP API unless a test asks for one: its port is one for all. They read
    no file of the machine, such as those of an installed RabbitMQ.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HAREBELL_", "RABBITMQ_")) or name == "HAREBELL_IMPL"
    }
    own = {
        "HAREBELL_CONFIG": "none",
        "HAREBELL_MANAGEMENT_PORT": "0",
        "HAREBELL_METRICS_PORT": "0",
    }
    return {**kept, **own, **(extra or {})}


class DidNotStartError(RuntimeError):
    """The broker ended, or said nothing for too long, before it was ready.

    Args:
        code: its exit code.
        output: everything it printed.
    """

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"harebell serve did not start ({code}):\n{output}")
        self.code = code


class RunningBroker:
    """A started `harebell serve`.

    Args:
        flags: more flags for `serve`; `--port 0` and a data directory are given unless named.
        env: variables for it.
        prefix: a command that runs the broker, such as strace with its flags.

    Raises:
        DidNotStartError: it ended before it was ready; its output is the text.
    """

    def __init__(
        self, *flags: str, env: Mapping[str, str] | None = None, prefix: Sequence[str] = ()
    ) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="harebell-")
        self.data_dir = Path(self._temporary.name) / "data"
        self.log_path = Path(self._temporary.name) / "log"
        defaults = []
        if "--port" not in flags and "HAREBELL_PORT" not in (env or {}):
            defaults += ["--port", "0"]
        if "--data-dir" in flags:
            self.data_dir = Path(flags[flags.index("--data-dir") + 1])
        else:
            defaults += ["--data-dir", str(self.data_dir)]
        self._log = self.log_path.open("wb")
        self._prefixed = bool(prefix)
        self.process = subprocess.Popen(
            [*prefix, command(), "serve", *defaults, *flags],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment(env),
        )
        self._wait_until_ready()

    @property
    def pid(self) -> int:
        """The broker's own process, also when a prefix runs it."""
        first = self.process.pid
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return int(children[0]) if self._prefixed and children else first

    @property
    def log(self) -> str:
        """Everything it has printed so far."""
        return self.log_path.read_text(errors="replace")

    def address(self, scheme: str = "amqp") -> str:
        """Where it listens, as a URL."""
        for line in self.log.splitlines():
            if line.startswith(f"listening on {scheme}://"):
                return line.removeprefix("listening on ")
        raise LookupError(f"no {scheme} address in: {self.log}")

    @property
    def port(self) -> int:
        """The port for plain AMQP."""
        return int(self.address().rpartition(":")[2])

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it with a signal and wait; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self.process.wait()
            raise

    def _kill(self) -> None:
        """Kill the broker itself too: strace does not take along what it traces."""
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.kill()

    def remove(self) -> None:
        """Remove its files; it must have stopped."""
        self._log.close()
        self._temporary.cleanup()

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while READY not in self.log:
            if self.process.poll() is not None or time.monotonic() > until:
                self._kill()
                code = self.process.wait()
                output = self.log
                self.remove()
                raise DidNotStartError(code, output)
            time.sleep(0.01)


@contextmanager
def running_broker(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[RunningBroker]:
    """A broker for the length of a block; killed at the end if it is still there."""
    broker = RunningBroker(*flags, env=env)
    try:
        yield broker
    finally:
        try:
            broker.stop()
        finally:
            broker.remove()
