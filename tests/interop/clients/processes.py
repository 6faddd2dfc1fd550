"""An application in a process of its own, as its users start it: a worker, or a service."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.patience import eventually
from tests.running import environment

ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60.0
MARKS_VARIABLE = "HAREBELL_TEST_MARKS"
URL_VARIABLE = "HAREBELL_TEST_URL"


def mark(name: str, text: str) -> None:
    """Called by an application: leave a line in a file for the test to read."""
    with (Path(os.environ[MARKS_VARIABLE]) / name).open("a") as marks:
        marks.write(f"{text}\n")


class Application:
    """A process with a session of its own, whose output is kept.

    Args:
        command: how it is started.
        ready: what it prints when it is.
        directory: for its log and marks.
        url: the broker's.
        about: more of its environment.
        start_seconds: how long it may take until it is ready.
    """

    def __init__(
        self,
        command: Sequence[str],
        ready: str,
        directory: Path,
        url: str,
        about: Mapping[str, str] = MappingProxyType({}),
        *,
        start_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._command = list(command)
        self._ready = ready
        self._log = directory / "application.log"
        self._marks = directory / "marks"
        self._marks.mkdir(exist_ok=True)
        self._about = {URL_VARIABLE: url, MARKS_VARIABLE: str(self._marks), **about}
        self._start_seconds = start_seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What the process has printed."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def start(self) -> None:
        """Start the process and wait until it says that it is ready."""
        seen = self.log.count(self._ready)
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command, cwd=ROOT, env=environment(self._about), stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self._process = process
        deadline = time.monotonic() + self._start_seconds
        while self.log.count(self._ready) == seen:
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                pytest.fail(f"{self._command} did not start:\n{self.log}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End the process and its children without a farewell."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE_SECONDS)

    def stop(self) -> int:
        """Ask the process to end, and wait for it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def marks(self, name: str) -> list[str]:
        """The lines that the application left under this name, each written to its end."""
        path = self._marks / name
        lines = path.read_text().split("\n") if path.exists() else [""]
        return lines[:-1]

    def wait_for_marks(self, name: str, count: int) -> list[str]:
        """The lines, when there are so many."""
        assert eventually(lambda: len(self.marks(name)) >= count), self.log
        return self.marks(name)
