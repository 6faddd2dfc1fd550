"""A command on a terminal: what is typed into it, and what it shows."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 300.0
_AGAIN_S = 5.0


class Terminal:
    """A process on a pseudo-terminal.

    Args:
        process: the process.
        descriptor: the other end of its terminal.
    """

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._seen = ""

    def type(self, text: str) -> None:
        """Type; "\\x03" is Ctrl-C and "\\x04" Ctrl-D."""
        os.write(self._descriptor, text.encode())

    def until(self, wanted: str, again: str = "") -> str:
        """What is shown up to a text, which has to come; what follows is kept for the next call.

        Args:
            wanted: the text.
            again: what is typed every few seconds until it comes.
        """
        begun = typed = time.monotonic()
        while wanted not in self._seen:
            now = time.monotonic()
            assert now < begun + PATIENCE_S, f"{wanted!r} did not come: {self._seen}"
            if again and now > typed + _AGAIN_S:
                typed = now
                self.type(again)
            if not select.select([self._descriptor], [], [], 1.0)[0]:
                continue
            try:
                self._seen += os.read(self._descriptor, 65_536).decode(errors="replace")
            except OSError:  # Linux says so when the process has ended
                assert wanted in self._seen, f"it ended without {wanted!r}: {self._seen}"
        shown, _, self._seen = self._seen.partition(wanted)
        return shown


@contextmanager
def terminal(words: list[str], env: Mapping[str, str], directory: Path) -> Iterator[Terminal]:
    """Run a command on a terminal; it is killed at the end, with what it started."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words,
        env=env,
        cwd=directory,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        # Its controlling terminal, or Ctrl-C is a character like any other.
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        os.close(ours)
