"""A broker in a process of its own: `harebell serve` on a free port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from harebell.base.errors import HarebellError

READY = "Server startup complete\n"
"""The whole line: each of several workers has one that goes on in its log before."""
START_SECONDS = 120.0
"""A machine under load may take long; a broker that ends is noticed at once."""
STOP_SECONDS = 120.0
_LOOK_SECONDS = 0.002
_TERM = signal.SIGTERM


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without settings of brokers, and with `extra`.

    A broker of a test reads no configuration file of the machine, and has no HTTP ports unless the
    test asks for them: their default numbers are the same for all brokers.
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


class DidNotStart(HarebellError):
    """The broker ended, or printed nothing for too long, before it was ready.

    Args:
        code: its exit code.
        output: everything that it printed.
    """

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"harebell serve did not start (exit code {code}):\n{output}")
        self.code = code


class RunningBroker:
    """A started `harebell serve`; as a context manager, it is stopped and removed at the end.

    It listens on a free port of 127.0.0.1 and keeps its data in a temporary directory, unless
    settings say otherwise.

    Args:
        flags: flags of `harebell serve`, such as "--heartbeat", "0".
        env: environment variables of the broker, such as `HAREBELL_DEFAULT_PASS`.
        prefix: a command that runs the broker, such as strace with its flags.
        settings: keys of docs/reference/configuration.md with their values, such as `heartbeat=0`.

    Attributes:
        process: the process; with a prefix, the one of that command.
        data_dir: the data directory.
        log_path: the file with everything that the broker prints.

    Raises:
        DidNotStart: it ended before it was ready; its output is the text.
    """

    def __init__(
        self,
        *flags: str,
        env: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        **settings: object,
    ) -> None:
        flags += tuple(
            f"--{name.replace('_', '-')}={_written(value)}" for name, value in settings.items()
        )
        names = {flag.partition("=")[0] for flag in flags}
        self._temporary = tempfile.TemporaryDirectory(prefix="harebell-")
        self.data_dir = _value_of("--data-dir", flags) or Path(self._temporary.name) / "data"
        self.log_path = Path(self._temporary.name) / "log"
        defaults = []
        if "--port" not in names and "HAREBELL_PORT" not in (env or {}):
            defaults += ["--port", "0"]
        if "--data-dir" not in names:
            defaults += ["--data-dir", str(self.data_dir)]
        self._log = self.log_path.open("wb")
        self._prefixed = bool(prefix)
        self.process = subprocess.Popen(  # noqa: S603 - our own command
            [*prefix, *_command(), "serve", *defaults, *flags],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=environment(env),
        )
        self._wait_until_ready()

    @property
    def pid(self) -> int:
        """The process number of the broker, also if a prefix runs it."""
        first = self.process.pid
        if not self._prefixed:
            return first
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return int(children[0]) if children else first

    @property
    def log(self) -> str:
        """Everything that it has printed so far."""
        return self.log_path.read_text(errors="replace")

    @property
    def port(self) -> int:
        """The port for AMQP without TLS."""
        return int(self.address().rpartition(":")[2])

    @property
    def url(self) -> str:
        """The URL for clients, with the default user."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/%2F"

    def address(self, scheme: str = "amqp") -> str:
        """Return where it listens, as a URL without a user.

        Args:
            scheme: "amqp", "amqps", "http" or "metrics", as `harebell serve` prints it.

        Raises:
            LookupError: it has no such listener.
        """
        for line in self.log.splitlines():
            if line.startswith(f"listening on {scheme}://"):
                return line.removeprefix("listening on ")
        raise LookupError(f"no {scheme} address in: {self.log}")

    def stop(self, number: signal.Signals = _TERM) -> int:
        """Stop it with a signal, wait, and return its exit code. Its files stay.

        Raises:
            subprocess.TimeoutExpired: it did not end in time, and was killed.
        """
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self.process.wait()
            raise

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL). Its files stay."""
        self._kill()
        self.process.wait()

    def remove(self) -> None:
        """Remove its files; it must have stopped."""
        self._log.close()
        self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            self.remove()

    def _kill(self) -> None:
        # strace does not take along the process that it traces.
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.process.kill()

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + START_SECONDS
        while READY not in self.log:
            if self.process.poll() is not None or time.monotonic() > until:
                self._kill()
                code = self.process.wait()
                output = self.log
                self.remove()
                raise DidNotStart(code, output)
            time.sleep(_LOOK_SECONDS)


def _command() -> list[str]:
    """Return the command line of `harebell`: the script beside this Python, or the module."""
    script = Path(sys.executable).with_name("harebell")
    return [str(script)] if script.exists() else [sys.executable, "-m", "harebell"]


def _written(value: object) -> str:
    """Return a setting as a flag has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value_of(flag: str, flags: tuple[str, ...]) -> Path | None:
    for at, given in enumerate(flags):
        name, equals, value = given.partition("=")
        if name == flag:
            return Path(value if equals else flags[at + 1])
    return None
