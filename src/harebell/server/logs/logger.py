"""Write the log in a separate thread, so that a slow terminal does not block the event loop."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from harebell.base.errors import shortened
from harebell.config import Config
from harebell.server.limits import (
    LOG_DRAIN_SECONDS,
    LOG_GATHER_SECONDS,
    LOG_LINES,
    LOG_TEXT_CHARACTERS,
)
from harebell.server.logs.formats import DEFAULT_CATEGORY, Line, formatter_of
from harebell.server.logs.outputs import Opened, outputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = {"debug": 0, "info": 1, "warning": 2, "error": 3, "none": 4}
"""The levels of the log; no line has the level none."""
_BATCH_LINES = 256
_End = Callable[[], bool]


class Thresholds:
    """The least important levels of one output, by category.

    A category has the level of `log_levels`. Others have that of the output, or else `log_level`.

    Args:
        config: the configuration.
        output: "console", "file", "syslog", "journald" or "exchange".
    """

    def __init__(self, config: Config, output: str) -> None:
        own = getattr(config, f"log_{output}_level")
        self.other = LEVELS[own or config.log_level]
        minimum = LEVELS[own] if own else 0
        self.by_category: Mapping[str, int] = {
            category: max(LEVELS[level], minimum) for category, level in config.log_levels.items()
        }

    def admit(self, level: str, category: str) -> bool:
        """True if the output has the lines of a level and a category."""
        return LEVELS[level] >= self.by_category.get(category, self.other)


class _Sink:
    """An output with its format and its levels."""

    def __init__(self, config: Config, opened: Opened, node: str) -> None:
        self.output = opened.output
        self._only = opened.only
        self._without = opened.without
        self._format = _format_of(config, opened.name, node)
        self.thresholds = Thresholds(config, opened.name)
        self._admits = cache(self._admits_kind)

    def _admits_kind(self, level: str, category: str) -> bool:
        if self._only:
            return category == self._only and self.thresholds.admit(level, category)
        return category not in self._without and self.thresholds.admit(level, category)

    def write(self, lines: list[Line]) -> None:
        """Write the lines that are for this output; an output that fails loses them."""
        admits, form = self._admits, self._format
        texts = [form(line) for line in lines if admits(line.level, line.category)]
        if texts:
            with suppress(OSError):
                self.output.write(texts)


def _format_of(config: Config, name: str, node: str) -> Callable[[Line], str]:
    """Return what makes texts of lines for an output; those of the system have a frame."""
    if name == "journald":
        from harebell.server.logs.system import journal_entry

        return journal_entry
    formatter = formatter_of(config, name, node)
    if name == "syslog":
        from harebell.server.logs.system import SyslogFrame

        return SyslogFrame(config, formatter).text
    return formatter.format


class Logger:
    """Writes the broker's log.

    A line that comes while the thread sleeps wakes it. The thread then sleeps for at most
    LOG_GATHER_SECONDS at a time until a look finds no line, so that a burst of lines wakes it once.
    A process that is killed loses the lines of that time.

    Args:
        config: levels, formats and outputs.
        node: the name of the broker.

    Attributes:
        dropped: lines that were dropped because the outputs were too slow.

    Raises:
        ConfigError: the log file cannot be written.
    """

    def __init__(self, config: Config, node: str = "") -> None:
        self._node = node
        self.dropped = 0
        self._reported = 0
        self._waiting: deque[Line | _End] = deque()
        self._idle = False
        # Held until a ring, which releases it.
        self._bell = threading.Lock()
        self._bell.acquire()
        self._sinks: list[_Sink] = []
        self._take(self._opened(config))
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(
        self, level: str, text: str, category: str = DEFAULT_CATEGORY, origin: int = 0
    ) -> None:
        """Write a line; control characters are escaped. May be called in any thread.

        Args:
            level: "debug", "info", "warning" or "error".
            text: what happened.
            category: what it is about: see `Line`.
            origin: the number of the connection that it is about; 0 for none.
        """
        if self.admits(level, category):
            self.put(self.line(level, text, category, origin))

    def admits(self, level: str, category: str) -> bool:
        """True if an output has the lines of a level and a category."""
        return LEVELS[level] >= self._minimum.get(category, self._least_other)

    def put(self, line: Line) -> None:
        """Write a line that an output has; it is dropped if the outputs are too slow."""
        waiting = self._waiting
        if len(waiting) >= LOG_LINES:
            self.dropped += 1
            return
        waiting.append(line)
        if self._idle:
            self._ring()

    @staticmethod
    def line(level: str, text: str, category: str, origin: int) -> Line:
        """Return a line that is written now."""
        shown = text if len(text) <= LOG_TEXT_CHARACTERS else shortened(text, LOG_TEXT_CHARACTERS)
        if not shown.isprintable():
            shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in shown)
        return Line(time.time_ns(), level, category, origin, shown)

    def configure(self, config: Config) -> None:
        """Use new outputs, formats and levels for lines that are written from now on.

        Raises:
            ConfigError: the log file cannot be written; nothing has changed.
        """
        sinks = self._opened(config)
        self._in_thread(lambda: self._swap(sinks))

    def reopen(self) -> None:
        """Open the log file anew by its name, after logrotate has renamed it."""
        self._in_thread(self._reopen)

    def drain(self, seconds: float) -> bool:
        """Wait until all lines that wait are written; False after `seconds`."""
        written = threading.Event()
        self._in_thread(written.set)
        return written.wait(seconds)

    def close(self) -> None:
        """Write the lines that wait, and end the thread; give up on outputs that take nothing."""
        # True ends the thread, behind the lines that came before.
        self._waiting.append(lambda: True)
        self._ring()
        self._thread.join(LOG_DRAIN_SECONDS)
        for sink in self._sinks:
            sink.output.close()

    def _in_thread(self, work: Callable[[], None]) -> None:
        """Run something in the thread soon, after the lines that wait now."""

        def run() -> bool:
            work()
            return False

        self._waiting.append(run)
        self._ring()

    def _ring(self) -> None:
        """Wake the thread, which sleeps or gathers lines."""
        self._idle = False
        # Two threads may ring for one sleep: the second one finds the lock released.
        with suppress(RuntimeError):
            self._bell.release()

    def _opened(self, config: Config) -> list[_Sink]:
        return [_Sink(config, opened, self._node) for opened in outputs_of(config)]

    def _take(self, sinks: list[_Sink]) -> None:
        """Use these outputs, and find the levels below which a line is for none of them."""
        self._sinks = sinks
        none = LEVELS["none"]
        self._least_other = min((sink.thresholds.other for sink in sinks), default=none)
        categories = {name for sink in sinks for name in sink.thresholds.by_category}
        self._minimum = {
            name: min(
                sink.thresholds.by_category.get(name, sink.thresholds.other) for sink in sinks
            )
            for name in categories
        }

    # --- in the thread ----------------------------------------------------------------------------

    def _swap(self, sinks: list[_Sink]) -> None:
        before = self._sinks
        self._take(sinks)
        for sink in before:
            sink.output.close()

    def _reopen(self) -> None:
        for sink in self._sinks:
            with suppress(OSError):
                sink.output.reopen()

    def _run(self) -> None:
        waiting = self._waiting
        ended = False
        while not ended:
            if not waiting:
                self._idle = True
                # Again, after `_idle` is set: a line that came before that has not rung.
                if not waiting:
                    self._bell.acquire()
                self._idle = False
            taken = [waiting.popleft() for _ in range(min(len(waiting), _BATCH_LINES))]
            try:
                ended = self._work(taken)
            except Exception as error:  # the thread ends with the process, and not before
                sys.stderr.write(f"harebell: {len(taken)} lines of the log are lost: {error}\n")
            if len(taken) < _BATCH_LINES and not ended:
                self._bell.acquire(timeout=LOG_GATHER_SECONDS)

    def _work(self, taken: list[Line | _End]) -> bool:
        """Write lines and run what is queued between them; True at the end."""
        lines: list[Line] = []
        ended = False
        for each in taken:
            if isinstance(each, Line):
                lines.append(each)
                continue
            self._write(lines)
            lines = []
            ended = each() or ended
        dropped = self.dropped - self._reported
        if dropped:
            self._reported += dropped
            text = f"{dropped} lines of the log were dropped: the outputs are too slow"
            lines.append(self.line("warning", text, DEFAULT_CATEGORY, 0))
        self._write(lines)
        return ended

    def _write(self, lines: list[Line]) -> None:
        if lines:
            for sink in self._sinks:
                sink.write(lines)
