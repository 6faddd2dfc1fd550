"""The segments of a data directory as one commit left them, while later commits go on.

Segments only grow, so a segment as of a commit is its file up to the length that it had then. A cut
begins between two batches and notes the lengths of all logs in slices. The gathering of a batch has
those logs noted first that the batch changes, so every log is noted as it was when the cut began.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from harebell.store.limits import CUT_LOGS


class CutLog(Protocol):
    """A log as a cut uses it."""

    def written(self) -> list[tuple[str, int]]:
        """Return the paths of its segments on disk, with how many bytes are written."""


class Cut:
    """The lengths of all segments at one commit.

    Args:
        ticket: the number of that commit.
        logs: all logs, and those whose removal is not committed.
        keep: called with the path of each segment, which is not to be removed from now on.

    Attributes:
        ticket: as given.
        segments: paths and lengths in bytes, complete when `note_some` has returned True.
    """

    def __init__(self, ticket: int, logs: Iterable[CutLog], keep: Callable[[str], None]) -> None:
        self.ticket = ticket
        self.segments: list[tuple[str, int]] = []
        self._keep = keep
        self._pending = list(logs)
        self._unnoted = set(self._pending)

    def note(self, logs: Iterable[CutLog]) -> None:
        """Note logs that are about to change, unless they are noted or new."""
        for log in logs:
            if log in self._unnoted:
                self._unnoted.discard(log)
                for path, size in log.written():
                    # From here on a removed segment is moved aside and not deleted, until it is
                    # copied.
                    self._keep(path)
                    self.segments.append((path, size))

    def note_some(self) -> bool:
        """Note some more logs; True when there are no more."""
        self.note([self._pending.pop() for _ in range(min(CUT_LOGS, len(self._pending)))])
        return not self._pending
