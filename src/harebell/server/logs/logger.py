"""Write the log in a separate thread, so that a slow terminal does not block the event loop."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from harebell.base.limits import LOG_DRAIN_SECONDS, LOG_LINES
from harebell.server.config import Config
from harebell.server.logs.formats import DEFAULT_CATEGORY, Line, formatter_of
from harebell.server.logs.outputs import Opened, outputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = {"debug": 0, "info": 1, "warning": 2, "error": 3, "none": 4}
"""The levels of the log; no line has the level none."""
_BATCH_LINES = 256
_MS = 1_000
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

    def admit(self, line: Line) -> bool:
        """True if the output has the line."""
        return LEVELS[line.level] >= self.by_category.get(line.category, self.other)


class _Sink:
    """An output with its format and its levels."""

    def __init__(self, config: Config, opened: Opened, node: str) -> None:
        self.output = opened.output
        self._only = opened.only
        self._without = opened.without
        self._format = _format_of(config, opened.name, node)
        self.thresholds = Thresholds(config, opened.name)

    def _admits(self, line: Line) -> bool:
        if self._only:
            return line.category == self._only and self.thresholds.admit(line)
        return line.category not in self._without and self.thresholds.admit(line)

    def write(self, lines: list[Line]) -> None:
        """Write the lines that are for this output; an output that fails loses them."""
        texts = [self._format(line) for line in lines if self._admits(line)]
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
        self._queue: queue.Queue[Line | _End] = queue.Queue(LOG_LINES)
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
        if LEVELS[level] >= self._minimum.get(category, self._least_other):
            self._put(self.line(level, text, category, origin))

    @staticmethod
    def line(level: str, text: str, category: str, origin: int) -> Line:
        """Return a line that is written now."""
        shown = text
        if not text.isprintable():
            shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
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
        """Wait until all queued lines are written; False after `seconds`."""
        lines = self._queue
        with lines.all_tasks_done:
            return lines.all_tasks_done.wait_for(lambda: not lines.unfinished_tasks, seconds)

    def close(self) -> None:
        """Write the queued lines, and end the thread; give up on outputs that take nothing."""
        with suppress(queue.Full):
            self._queue.put(lambda: True, timeout=LOG_DRAIN_SECONDS)
            self._thread.join(LOG_DRAIN_SECONDS)
        for sink in self._sinks:
            sink.output.close()

    def _put(self, line: Line) -> None:
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def _in_thread(self, work: Callable[[], None]) -> None:
        """Run something in the thread, after the lines that are queued now.

        When the queue is full, it runs in a thread of its own that waits: the event loop does not.
        """

        def run() -> bool:
            work()
            return False

        try:
            self._queue.put_nowait(run)
        except queue.Full:
            threading.Thread(target=self._queue.put, args=(run,), daemon=True).start()

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
        ended = False
        while not ended:
            taken = [self._queue.get()]
            with suppress(queue.Empty):
                while len(taken) < _BATCH_LINES:
                    taken.append(self._queue.get_nowait())
            try:
                ended = self._work(taken)
            finally:
                for _ in taken:
                    self._queue.task_done()

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
