"""What the store has found to be damaged since the start, for `harebell status`.

The log has every sentence once; here they are counted, and the last one stays, so that whoever
watches figures learns of damage too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.ports import Files
from harebell.store.quarantine import FOLDER


class Damage:
    """Counts what is reported of damage.

    Args:
        report: takes a level and a line; gets everything that is reported here.

    Attributes:
        count: how many times damage was reported. What an abrupt end leaves is none.
        last: the last sentence; "" before there is one.
    """

    def __init__(self, report: Callable[[str, str], None]) -> None:
        self._report = report
        self.count = 0
        self.last = ""

    def report(self, level: str, text: str) -> None:
        """The store says something."""
        if level == "error":
            self.count += 1
            self.last = text
        self._report(level, text)

    def overview(self, files: Files) -> dict[str, Any]:
        """Figures, with what is in quarantine."""
        return {
            "damage_reports": self.count,
            "damage_last": self.last,
            "quarantined_files": len(files.names(FOLDER)),
        }
