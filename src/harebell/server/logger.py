"""Write the log in a separate thread, so that a slow terminal does not block the event loop."""

from __future__ import annotations

import asyncio
import logging
import logging.handlers
import queue
import sys
from collections import deque
from collections.abc import Callable

from harebell.base.limits import LOG_EXCHANGE_LINES
from harebell.model.log_exchange import LogExchange

_FORMAT = "%(asctime)s [%(levelname)s] %(message)s"
LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_LINES_MAX = 10_000


class _DropWhenFull(logging.handlers.QueueHandler):
    """Drops lines if the queue is full, so that logging never blocks the event loop."""

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            return


class Logger:
    """Writes the broker's log to standard error.

    Args:
        level: the lowest level that is written: "debug", "info", "warning" or "error".
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
        """Write a line; control characters are escaped."""
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
        self._logger.log(LEVELS[level], "%s", shown)

    def drain(self, seconds: float) -> bool:
        """Wait until all queued lines are written; False after `seconds`."""
        lines = self._lines
        with lines.all_tasks_done:
            return lines.all_tasks_done.wait_for(lambda: not lines.unfinished_tasks, seconds)

    def close(self) -> None:
        """Write the queued lines, and end the thread."""
        self._listener.stop()


class PublishedLog:
    """Writes lines to a logger, and publishes them to the exchange `amq.rabbitmq.log`.

    Args:
        logger: writes all lines.
        loop: the event loop that publishes.
        level: the lowest level that is published.

    Attributes:
        exchange: the log exchange; None before it is declared, or if it is disabled.
        flush: called when connections may have output.
    """

    def __init__(self, logger: Logger, loop: asyncio.AbstractEventLoop, level: str) -> None:
        self._logger = logger
        self._loop = loop
        self._least = LEVELS[level]
        self._lines: deque[tuple[str, str]] = deque()
        self._left_out = 0
        self.exchange: LogExchange | None = None
        self.flush: Callable[[], None] = lambda: None

    def write(self, level: str, text: str) -> None:
        """Write a line, and schedule its publication; may be called in any thread."""
        self._logger.write(level, text)
        exchange = self.exchange
        if exchange is None or exchange.publishing or LEVELS[level] < self._least:
            return
        if len(self._lines) >= LOG_EXCHANGE_LINES:
            self._left_out += 1
            return
        self._lines.append((level, text))
        if len(self._lines) == 1 and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._publish)

    def close(self) -> None:
        """Close the logger."""
        self._logger.close()

    def _publish(self) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        for _ in range(len(self._lines)):
            exchange.publish(*self._lines.popleft())
        if self._left_out:
            exchange.publish("warning", f"{self._left_out} lines of the log were left out")
            self._left_out = 0
        self.flush()
