"""A command of `harebell` in a pseudo-terminal: what a user sees, and Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.running import command, environment

_SECONDS = 120


def _at_the_terminal() -> None:
    """Let Ctrl-C of the terminal end this process, as a shell does."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Terminal:
    """A command in a pseudo-terminal.

    Args:
        words: the command line after `harebell`.
        directory: where it runs.
    """

    def __init__(self, *words: str, directory: Path) -> None:
        self._end, inner = pty.openpty()
        self.process = subprocess.Popen(
            [command(), *words],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=directory,
            env=environment({"HAREBELL_MANAGEMENT_PORT": str(free_port())}),
            start_new_session=True,
            preexec_fn=_at_the_terminal,
        )
        os.close(inner)
        self.text = ""

    def read_until(self, pattern: str) -> str:
        """Read until the output matches, and return all of it."""
        until = time.monotonic() + _SECONDS
        while not re.search(pattern, self.text):
            assert time.monotonic() < until, self.text
            self.text += os.read(self._end, 65_536).decode().replace("\r\n", "\n")
        return self.text

    def press_ctrl_c(self) -> int:
        """Press Ctrl-C; returns the exit code."""
        os.write(self._end, b"\x03")
        reads = True
        while reads:
            try:
                more = os.read(self._end, 65_536)
            except OSError:
                more = b""
            self.text += more.decode()
            reads = bool(more)
        return self.process.wait(_SECONDS)


@contextmanager
def terminal(*words: str, directory: Path) -> Iterator[Terminal]:
    shown = Terminal(*words, directory=directory)
    try:
        yield shown
    finally:
        if shown.process.poll() is None:
            os.killpg(shown.process.pid, signal.SIGKILL)
            shown.process.wait()
