"""Log lines, written by a thread of their own so that a slow terminal does not slow the broker."""

from __future__ import annotations

import logging
import logging.handlers
import queue
import sys

_FORMAT = "%(asctime)s [%(levelname)s] %(message)s"
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_LINES_MAX = 10_000


class _DropWhenFull(logging.handlers.QueueHandler):
    """Keeps the broker going when lines come faster than they can be written."""

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            return


class Journal:
    """Writes the broker's log to standard error.

    Args:
        level: "debug", "info", "warning" or "error": nothing below it is written.
    """

    def __init__(self, level: str) -> None:
        self._logger = logging.Logger("harebell", LEVELS[level])
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(_LINES_MAX)
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter(_FORMAT))
        self._logger.addHandler(_DropWhenFull(self._lines))
        self._listener = logging.handlers.QueueListener(self._lines, handler)
        self._listener.start()

    def write(self, level: str, text: str) -> None:
        """Write a line, its control characters shown and not obeyed."""
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
        self._logger.log(LEVELS[level], "%s", shown)

    def drain(self, seconds: float) -> bool:
        """Wait until every line so far is written; False if that takes longer than `seconds`."""
        lines = self._lines
        with lines.all_tasks_done:
            return lines.all_tasks_done.wait_for(lambda: not lines.unfinished_tasks, seconds)

    def close(self) -> None:
        """Write what is waiting, and end the thread."""
        self._listener.stop()
