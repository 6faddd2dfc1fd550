"""From the journal to the log exchange: lines gather, and are published in the loop's next turn.

Lines come from wherever something happens, other threads included, so none is published on the
spot. When they come faster than they are published the newest are left out, and counted.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from harebell.base.limits import LOG_EXCHANGE_LINES
from harebell.model.log_exchange import LogExchange
from harebell.server.journal import LEVELS, Journal


class ToldLog:
    """A journal that is published as well.

    Args:
        journal: where lines go in any case.
        loop: publishes them.
        level: nothing below it is published.

    Attributes:
        exchange: where they are published; None while the broker is being made.
        flush: called when connections may have something to write.
    """

    def __init__(self, journal: Journal, loop: asyncio.AbstractEventLoop, level: str) -> None:
        self._journal = journal
        self._loop = loop
        self._least = LEVELS[level]
        self._lines: deque[tuple[str, str]] = deque()
        self._left_out = 0
        self.exchange: LogExchange | None = None
        self.flush: Callable[[], None] = lambda: None

    def write(self, level: str, text: str) -> None:
        """Take a line."""
        self._journal.write(level, text)
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
        """Write what is waiting."""
        self._journal.close()

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
