"""The last lines of the log, in memory, for administrators who look at it over the HTTP API.

A ring of LOG_RECENT_LINES lines, each with a number that only grows. A reader asks for those after
the last number that it has seen.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING

from harebell.admin.limits import LOG_RECENT_LINES
from harebell.admin.log_line import LogLine
from harebell.server.limits import LOG_RECENT_TEXT_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.server.logs.formats import Line

_MS = 1_000_000


class RecentLines:
    """The last lines; may be used in any thread.

    Args:
        time_text: returns a time in milliseconds since 1970 as text.
    """

    def __init__(self, time_text: Callable[[int], str]) -> None:
        self._lines: deque[tuple[int, Line]] = deque(maxlen=LOG_RECENT_LINES)
        self._last = 0
        self._lock = Lock()
        self._time_text = time_text

    def add(self, line: Line) -> None:
        """Add a line; the oldest one is dropped if there are too many."""
        with self._lock:
            self._last += 1
            self._lines.append((self._last, line))

    def after(self, number: int, limit: int, admits: Callable[[str], bool]) -> list[LogLine]:
        """Return the last lines after one, the oldest first.

        Args:
            number: of a line; 0 for all that are kept.
            limit: the most lines.
            admits: whether lines of a level are wanted.
        """
        with self._lock:
            lines = list(self._lines)
        later = (each for each in reversed(lines) if each[0] > number and admits(each[1].level))
        return [self._row(*each) for each in reversed(list(islice(later, limit)))]

    def _row(self, number: int, line: Line) -> LogLine:
        text = line.text
        if len(text) > LOG_RECENT_TEXT_CHARACTERS:
            text = text[:LOG_RECENT_TEXT_CHARACTERS] + "…"
        return {
            "number": number,
            "time": self._time_text(line.at // _MS),
            "level": line.level,
            "category": line.category,
            "pid": line.pid,
            "text": text,
        }
