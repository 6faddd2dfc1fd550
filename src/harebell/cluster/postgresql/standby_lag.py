"""How far the brokers that stand by are behind the log of a store.

A broker that stands by writes the number of the last row that it has read to its row of the table
`node`. The owner notes how far it was itself at each renewal of its lease, and compares.
"""

from __future__ import annotations

from typing import NamedTuple

from harebell.cluster.limits import LAG_SAMPLES

_GAP_SHARE = 0.05
"""How far two notes may be from each other, as a share of their age."""


class Lag(NamedTuple):
    """How far a broker is behind the owner.

    Args:
        size: bytes of the log that it has not read, as they are stored.
        seconds: since when it has not read everything.
    """

    size: int
    seconds: float


class LogHistory:
    """Where the log ended at some times.

    What was written before the first note is not in the lags of brokers that have not read it.
    """

    def __init__(self) -> None:
        # The time, the number of the last row, and the bytes that were written until then.
        self._notes: list[tuple[float, int, int]] = []

    def note(self, at: float, number: int, written: int) -> None:
        """Note the end of the log.

        Args:
            at: the time, in seconds.
            number: of its last row.
            written: how many bytes this owner has written.
        """
        notes = self._notes
        if len(notes) > 1 and notes[-1][1] == notes[-2][1] == number:
            # Nothing was written: the first note of a row and the last one say when.
            notes[-1] = at, number, written
            return
        notes.append((at, number, written))
        if len(notes) > LAG_SAMPLES:
            self._thin_out()

    def _thin_out(self) -> None:
        """Keep few of the notes that are old: a long lag need not be exact."""
        first, *others, last = self._notes
        kept = [first]
        for each in others:
            if each[0] - kept[-1][0] >= (last[0] - each[0]) * _GAP_SHARE:
                kept.append(each)
        self._notes = [*kept, last]

    def lag_of(self, number: int) -> Lag | None:
        """Return how far a broker is behind that has read up to a row; None if that is unknown.

        Args:
            number: of the row; 0 for a broker that does not say.
        """
        if not number or not self._notes:
            return None
        now, last, written = self._notes[-1]
        if number >= last:
            return Lag(0, 0.0)
        known, since = self._notes[0][2], self._notes[0][0]
        for at, reached, size in self._notes:
            if reached > number:
                break
            known, since = size, at
        return Lag(written - known, now - since)
