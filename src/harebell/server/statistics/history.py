"""The last samples of some counters.

A sample is stored when it differs from the one before, and only the columns that ever changed have
an array. What does not change costs nothing:

    times      1000   1005   1010          1065
    publish       0    120    130           190        ack: 0 all the time, so no array

    rate("publish") after the pass at 1065: 60 changes in the last interval of 5 s
                    after the pass at 1070, without a sample: 0
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from harebell.admin.sampling_plan import Retention
from harebell.admin.statistics import Range

_MS = 1000
_EARLY_MS = 2_500
"""By how much a sample may come early, at most half its interval: passes are not exact."""
_SLACK = 32
"""Samples beyond the retention before the oldest are removed, many at once."""


class Ring:
    """The samples of one retention.

    Args:
        retention: how long they are kept.
        first: the values before the first sample.
    """

    __slots__ = ("_columns", "_early", "_first", "_limit", "_times", "interval", "span")

    def __init__(self, retention: Retention, first: Sequence[int]) -> None:
        self.span = retention.seconds * _MS
        self.interval = retention.interval * _MS
        self._early = min(_EARLY_MS, self.interval // 2)
        self._limit = retention.seconds // retention.interval + 1
        self._first = tuple(first)
        self._times = array("q")
        self._columns: dict[int, array[int]] = {}

    def add(self, at: int, values: Sequence[int]) -> None:
        """Add a sample, if the last one is old enough."""
        times = self._times
        if times and at - times[-1] < self.interval - self._early:
            return
        for number, value in enumerate(values):
            column = self._columns.get(number)
            if column is None:
                first = self._first[number]
                if value == first:
                    continue
                column = self._columns[number] = array("q", [first]) * len(times)
            column.append(value)
        times.append(at)
        if len(times) > self._limit + _SLACK:
            gone = len(times) - self._limit
            del times[:gone]
            for column in self._columns.values():
                del column[:gone]

    def stored(self) -> int:
        """Return how many samples are stored."""
        return len(self._times)

    def value(self, number: int, at: int) -> int:
        """Return the value of a column at a time."""
        column = self._columns.get(number)
        if column is None:
            return self._first[number]
        place = bisect_right(self._times, at) - 1
        return column[place] if place >= 0 else self._first[number]


class History:
    """The samples of one thing; a `Series`.

    Args:
        names: the names of its values.
        first: the values at the time `since`.
        since: milliseconds since 1970.
        retentions: how long samples are kept; () for the last two only.

    Attributes:
        at: the time of the last sample.
        checked: the number of the last pass that has seen the thing.
    """

    __slots__ = ("_before", "_last", "_names", "_previous", "_rings", "at", "checked", "latest")

    def __init__(
        self,
        names: Sequence[str],
        first: Sequence[int],
        since: int,
        retentions: Sequence[Retention],
        latest: Latest,
    ) -> None:
        self._names = names
        self._last = self._previous = tuple(first)
        self.at = self._before = since
        self.checked = 0
        self.latest = latest
        self._rings = [Ring(each, first) for each in retentions]

    def add(self, at: int, values: Sequence[int], since: int) -> None:
        """Add a sample.

        Args:
            at: milliseconds since 1970.
            values: the values, in the order of the names.
            since: the time of the pass before, at which the last sample was still true.
        """
        self._previous, self._last = self._last, tuple(values)
        self._before, self.at = max(since, self.at), at
        for ring in self._rings:
            ring.add(at, values)

    @property
    def last(self) -> Sequence[int]:
        """The values of the last sample."""
        return self._last

    def rate(self, name: str) -> float:
        """Return the change per second between the last two passes."""
        number = self._number(name)
        if self.at < self.latest.at or self.at <= self._before:
            return 0.0
        changed = self._last[number] - self._previous[number]
        return changed * _MS / (self.at - self._before)

    def samples(self, name: str, wanted: Range, value: int) -> list[tuple[int, int]]:
        """Return samples as (milliseconds since 1970, value), the newest first."""
        number = self._number(name)
        now = self.latest.at
        found = []
        for ago in _steps(wanted):
            ring = next((each for each in self._rings if ago <= each.span), None)
            if ring is None:
                break
            found.append((now - ago, ring.value(number, now - ago)))
        return found

    def _number(self, name: str) -> int:
        return self._names.index(name)


def _steps(wanted: Range) -> Iterator[int]:
    """Return how many milliseconds ago each sample of a range is, the newest first."""
    return iter(range(0, wanted.age * _MS + 1, wanted.increment * _MS))


class Unchanged:
    """The samples of a thing that has not changed for as long as samples are kept; a `Series`.

    Args:
        latest: the time of the last complete pass.
        kept_seconds: how long samples of things are kept.
    """

    def __init__(self, latest: Latest, kept_seconds: int) -> None:
        self._latest = latest
        self._kept_ms = kept_seconds * _MS

    def rate(self, name: str) -> float:
        """Return 0."""
        return 0.0

    def samples(self, name: str, wanted: Range, value: int) -> list[tuple[int, int]]:
        """Return the value of now at every time, as far back as samples are kept."""
        now, span = self._latest.at, self._kept_ms
        return [(now - ago, value) for ago in _steps(wanted) if ago <= span] if now else []


class Latest:
    """The time of the last complete pass, shared by all histories.

    Attributes:
        at: milliseconds since 1970; 0 before the first.
    """

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = 0
