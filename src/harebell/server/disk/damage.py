"""Count the reports of damage since the start, for `harebell status`.

Each report is one line of the log. The count and the last line make damage visible in monitoring.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.ports import Files
from harebell.store.quarantine import DIRECTORY


class Damage:
    """Counts reports of damage.

    Args:
        report: called with the level and the line of each report.

    Attributes:
        count: number of reports. Torn records after a crash are not damage.
        last: the last line; "" if there was none.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self.count = 0
        self.last = ""

    def report(self, level: str, text: str) -> None:
        """Pass on a line of the store, and count it if it reports damage."""
        if level == "error":
            self.count += 1
            self.last = text
        self._report(level, text)

    def overview(self, files: Files) -> dict[str, Any]:
        """Return the figures of `harebell status`, with the files in quarantine."""
        return {
            "damage_reports": self.count,
            "damage_last": self.last,
            "quarantined_files": len(files.names(DIRECTORY)),
        }
