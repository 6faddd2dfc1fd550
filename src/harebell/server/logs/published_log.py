"""The log of a broker: a logger writes it, the HTTP API shows it, and the log exchange gets it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from harebell.admin.rows.common import time_text
from harebell.config import Config
from harebell.model.log_exchange import LogExchange
from harebell.server.limits import LOG_EXCHANGE_LINES
from harebell.server.logs.formats import DEFAULT_CATEGORY, Line, formatter_of
from harebell.server.logs.logger import LEVELS, Logger, Thresholds
from harebell.server.logs.recent import RecentLines


class PublishedLog:
    """Writes lines to a logger, and publishes them to the exchange `amq.rabbitmq.log`.

    Args:
        logger: writes all lines.
        loop: the event loop that publishes.
        config: levels and format of lines that are published.
        node: the name of the broker.

    Attributes:
        recent: the last lines.
        exchange: the log exchange; None before it is declared, or if it is disabled.
        flush: called when connections may have output.
    """

    def __init__(
        self, logger: Logger, loop: asyncio.AbstractEventLoop, config: Config, node: str = ""
    ) -> None:
        self._logger = logger
        self._loop = loop
        self._node = node
        self._lines: deque[Line] = deque()
        self._left_out = 0
        self.recent = RecentLines(time_text)
        self.exchange: LogExchange | None = None
        self.flush: Callable[[], None] = lambda: None
        self._set(config)

    @property
    def dropped(self) -> int:
        """Return how many lines the outputs were too slow for."""
        return self._logger.dropped

    def write(
        self, level: str, text: str, category: str = DEFAULT_CATEGORY, origin: int = 0
    ) -> None:
        """Write a line, and schedule its publication; may be called in any thread.

        The arguments are those of `Logger.write`.
        """
        logger = self._logger
        shown = logger.admits(level, category)
        kept = LEVELS[level] >= self._recent_levels.get(category, self._recent_other)
        published = self._enabled and self._publishes(level, category)
        if not (shown or kept or published):
            return
        line = logger.line(level, text, category, origin)
        if shown:
            logger.put(line)
        if kept:
            self.recent.add(line)
        if published:
            self._publish_soon(line)

    def configure(self, config: Config) -> None:
        """Use new outputs, formats and levels.

        Raises:
            ConfigError: the log file cannot be written; nothing has changed.
        """
        self._logger.configure(config)
        self._set(config)

    def reopen(self) -> None:
        """Open the log file anew by its name."""
        self._logger.reopen()

    def end_publishing(self) -> None:
        """Publish the lines that wait, and none after them: the logs of the queues are closed."""
        self._publish()
        self.exchange = None

    def close(self) -> None:
        """Close the logger."""
        self._logger.close()

    def _set(self, config: Config) -> None:
        self._enabled = config.log_exchange
        self._thresholds = Thresholds(config, "exchange")
        self._recent_other = LEVELS[config.log_level]
        self._recent_levels = {name: LEVELS[level] for name, level in config.log_levels.items()}
        self._formatter = formatter_of(config, "exchange", self._node)

    def _publishes(self, level: str, category: str) -> bool:
        """True if the log exchange has the lines of a level and a category."""
        exchange = self.exchange
        if exchange is None or exchange.publishing:
            return False
        return self._thresholds.admit(level, category)

    def _publish_soon(self, line: Line) -> None:
        if len(self._lines) >= LOG_EXCHANGE_LINES:
            self._left_out += 1
            return
        self._lines.append(line)
        if len(self._lines) == 1 and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._publish)

    def _publish(self) -> None:
        exchange = self.exchange
        if exchange is None:
            return
        lines = list(self._lines)
        # First: a line schedules this only if none waits.
        self._lines.clear()
        for line in lines:
            exchange.publish(line.level, self._formatter.format(line))
        if self._left_out:
            text = f"{self._left_out} lines of the log were left out"
            line = self._logger.line("warning", text, DEFAULT_CATEGORY, 0)
            exchange.publish(line.level, self._formatter.format(line))
            self._left_out = 0
        self.flush()
