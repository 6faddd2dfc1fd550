"""The last samples of some counters.

A sample is stored when it differs from the one before, and only the columns that ever changed have
an array. What does not change costs nothing:

    times      1000   1005   1010          1065
    publish       0    120    130           190        ack: 0 all the time, so no array

    rate("publish") after the pass at 1065: 60 changes in the last interval of 5 s
                    after the pass at 1070, without a sample: 0

A range has steps at multiples of its increment. The sample of a step is what the first pass from
there on has seen, with the time of that pass: a pass that came late makes no rate wrong, a step
without a pass has no sample, and nothing is known from before the first pass.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

from harebell.admin.sampling_plan import Retention
from harebell.admin.statistics import Range
from harebell.management.limits import STATISTICS_PASSES

_MS = 1000
_SLACK = 32
"""Samples beyond the retention before the oldest are removed, many at once."""


class Ring:
    """The samples of one retention.

    Args:
        retention: how long they are kept.
        first: the values before the first sample.
    """

    __slots__ = ("_columns", "_first", "_limit", "_times", "interval", "span")

    def __init__(self, retention: Retention, first: Sequence[int]) -> None:
        self.span = retention.seconds * _MS
        self.interval = retention.interval * _MS
        self._limit = retention.seconds // retention.interval + 1
        self._first = tuple(first)
        self._times = array("q")
        self._columns: dict[int, array[int]] = {}

    def add(self, moment: int, values: Sequence[int]) -> None:
        """Add a sample, if it is the first since the last multiple of the interval."""
        times = self._times
        if times and moment // self.interval <= times[-1] // self.interval:
            return
        for number, value in enumerate(values):
            column = self._columns.get(number)
            if column is None:
                first = self._first[number]
                if value == first:
                    continue
                column = self._columns[number] = array("q", [first]) * len(times)
            column.append(value)
        times.append(moment)
        if len(times) > self._limit + _SLACK:
            gone = len(times) - self._limit
            del times[:gone]
            for column in self._columns.values():
                del column[:gone]

    def stored(self) -> int:
        """Return how many samples are stored."""
        return len(self._times)

    def value(self, number: int, moment: int) -> int:
        """Return the value of a column at a time."""
        column = self._columns.get(number)
        if column is None:
            return self._first[number]
        place = bisect_right(self._times, moment) - 1
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

    def trend(self, name: str, seconds: int) -> float:
        """Return the change per second over the last seconds, as far as samples are kept."""
        if not self._rings:
            return self.rate(name)
        latest, ring = self.latest, self._rings[-1]
        since = latest.since(min(seconds * _MS, ring.span))
        if since >= latest.at:
            return 0.0
        number = self._number(name)
        return (self._last[number] - ring.value(number, since)) * _MS / (latest.at - since)

    def samples(self, name: str, wanted: Range, value: int) -> list[tuple[int, int]]:
        """Return samples as (milliseconds since 1970, value), the newest first."""
        number = self._number(name)
        samples = []
        for step, at in self.latest.steps(wanted):
            ago = self.latest.at - step
            ring = next((each for each in self._rings if ago <= each.span), None)
            if ring is None:
                break
            if step % ring.interval == 0:
                # Between the samples of a ring its values are not known.
                samples.append((at, ring.value(number, at)))
        return samples

    def _number(self, name: str) -> int:
        return self._names.index(name)


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

    def trend(self, name: str, seconds: int) -> float:
        """Return 0."""
        return 0.0

    def samples(self, name: str, wanted: Range, value: int) -> list[tuple[int, int]]:
        """Return the value of now at every time, as far back as samples are kept."""
        now, span = self._latest.at, self._kept_ms
        return [(at, value) for step, at in self._latest.steps(wanted) if now - step <= span]


class Latest:
    """The times of the complete passes, shared by all histories.

    Attributes:
        at: that of the last one, in milliseconds since 1970; 0 before the first.
    """

    __slots__ = ("_passes", "_since", "_steps", "at")

    def __init__(self) -> None:
        self.at = 0
        # Lists ask the same of thousands of queues, so that the answers are kept for one pass.
        self._since: dict[int, int] = {}
        self._steps: tuple[Range | None, list[tuple[int, int]]] = (None, [])
        self._passes = array("q")

    def add(self, at: int) -> None:
        """Note a complete pass; after a step back of the clock, those that are later now go."""
        self._since.clear()
        self._steps = (None, [])
        passes = self._passes
        del passes[bisect_left(passes, at) :]
        passes.append(at)
        if len(passes) > STATISTICS_PASSES + _SLACK:
            del passes[:_SLACK]
        self.at = at

    def since(self, span: int) -> int:
        """Return the time of the first pass of the last milliseconds."""
        since = self._since.get(span)
        if since is None:
            place = bisect_left(self._passes, self.at - span)
            since = self._passes[place] if place < len(self._passes) else self.at
            self._since[span] = since
        return since

    def steps(self, wanted: Range) -> Iterable[tuple[int, int]]:
        """Return the steps of a range that have a pass, with its time, the newest first."""
        if self._steps[0] != wanted:
            self._steps = (wanted, list(self._find_steps(wanted)))
        return self._steps[1]

    def _find_steps(self, wanted: Range) -> Iterator[tuple[int, int]]:
        passes, increment = self._passes, wanted.increment * _MS
        oldest = max(self.at - wanted.age * _MS, passes[0] - increment + 1 if passes else self.at)
        step = self.at // increment * increment
        end = len(passes)
        while step >= oldest:
            place = bisect_left(passes, step, 0, end)
            if place < end:
                yield step, passes[place]
                end = place
            step -= increment
