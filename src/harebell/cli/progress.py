"""Show on a terminal how far something is that takes longer than two seconds.

    importing definitions.json ... 4 s
    move from queue 'orders'  [##########----------]  12,000 of 24,000  4 s

It stands on standard error, in one line that is gone at the end, so that the output of a command is
the same as without it. Where standard error is no terminal, nothing is shown.
"""

from __future__ import annotations

import sys
import threading
import time

from harebell.base.printable import printable
from harebell.cli.limits import PROGRESS_AFTER_SECONDS, PROGRESS_EVERY_SECONDS

_WIDTH = 20
_CLEAR = "\r\x1b[K"


class Progress:
    """A line that says how far something is; a context manager.

    Args:
        label: what is done.
    """

    def __init__(self, label: str) -> None:
        self._label = printable(label)
        self._done = self._total = 0
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def at(self, done: int, total: int = 0) -> None:
        """Note how far it is.

        Args:
            done: how much is done.
            total: how much there is; 0 if that is not known.
        """
        self._done, self._total = done, total

    def line(self) -> str:
        """Return the line of progress."""
        seconds = int(time.monotonic() - self._begun)
        if self._total:
            share = min(self._done / self._total, 1.0)
            filled = int(share * _WIDTH)
            bar = "#" * filled + "-" * (_WIDTH - filled)
            return f"{self._label}  [{bar}]  {self._done:,} of {self._total:,}  {seconds} s"
        count = f"  {self._done:,}" if self._done else ""
        return f"{self._label} ...{count} {seconds} s"

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._thread = threading.Thread(target=self._show, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._ended.wait(PROGRESS_AFTER_SECONDS):
            return
        while True:
            sys.stderr.write(_CLEAR + self.line())
            sys.stderr.flush()
            if self._ended.wait(PROGRESS_EVERY_SECONDS):
                break
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()
