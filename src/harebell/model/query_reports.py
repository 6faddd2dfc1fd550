"""Reports of the queries of data programs: their progress, and the error that ended them.

Reports are kept in memory, per vhost. They are for people to look at: the broker does not act on
them, and does not compare the queues that they name with its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from harebell.base.clock import Clock
from harebell.base.limits import QUERY_ERROR_CHARACTERS, QUERY_SOURCES, QUERY_TEXT_BYTES
from harebell.base.names import did_you_mean
from harebell.base.share import Shares
from harebell.model.limits import QUERY_REPORT_MS, QUERY_REPORTS
from harebell.model.resource import precondition

STATES = ("running", "stopped", "failed")
"""The states that a query may report."""
MISSED_INTERVALS = 3
"""A report is stale when the query has missed so many."""

_MS = 1000
_NUMBER_LIMIT = 2**63
_LONGEST_INTERVAL = 3_600
_TEXTS = ("id", "run_id", "sink", "application")
_COUNTS = ("batch", "input_rows", "lag_messages")
_NUMBERS = ("rows_per_second", "lag_seconds")
_ERROR, _INTERVAL, _SOURCES, _STATE = "error", "interval", "sources", "state"
FACTS = (*_TEXTS, *_COUNTS, *_NUMBERS, _ERROR, _INTERVAL, _SOURCES, _STATE)
"""The names that a report may have."""


class Report(Struct):
    """The last report of a query.

    Args:
        user: who has reported it.
        name: the name of the query.
        time: when, in milliseconds since 1970.
        steady: the same on the monotonic clock.
        state: one of `STATES`.
        interval: seconds until the next report.
        facts: everything else, by the names of `FACTS`.
    """

    user: str
    name: str
    time: int
    steady: int
    state: str
    interval: int
    facts: dict[str, Any] = field(default_factory=dict)

    def is_stale(self, now: int) -> bool:
        """True if a running query has missed several reports.

        Args:
            now: the time of the monotonic clock.
        """
        return self.state == STATES[0] and now - self.steady > (
            MISSED_INTERVALS * self.interval * _MS
        )


class QueryReports:
    """The reports of a vhost: each user has query names of their own.

    Args:
        clock: wall clock and monotonic clock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reports: dict[tuple[str, str], Report] = {}
        self._shares = Shares(
            "queries that report in this vhost",
            QUERY_REPORTS,
            "stop some of them, or let them use other users or vhosts",
        )

    def add(self, user: str, name: str, facts: Mapping[str, Any]) -> Report:
        """Keep a report; it replaces the last one of the query.

        Raises:
            Refusal: a fact is invalid, or there are too many reports.
        """
        if not _is_text(name) or not name:
            raise precondition("the name of a query is a text of 1 to 255 bytes in UTF-8")
        checked = {key: _checked(name, key, value) for key, value in facts.items()}
        state = checked.pop(_STATE, STATES[0])
        interval = checked.pop(_INTERVAL, 30)
        key = (user, name)
        if key not in self._reports:
            self._make_room(user)
        clock = self._clock
        report = Report(user, name, clock.ms, clock.steady, state, interval, checked)
        # At the end, so that the oldest is always the first.
        self.delete(user, name)
        self._reports[key] = report
        self._shares.add(user)
        return report

    def all(self) -> list[Report]:
        """Return the reports by the names of their queries and users."""
        self._drop_old()
        return sorted(self._reports.values(), key=lambda each: (each.name, each.user))

    def delete(self, user: str, name: str) -> bool:
        """Delete a report; returns whether there was one."""
        if self._reports.pop((user, name), None) is None:
            return False
        self._shares.remove(user)
        return True

    def is_stale(self, report: Report) -> bool:
        """True if the query has missed several reports."""
        return report.is_stale(self._clock.steady)

    def _drop_old(self) -> None:
        """Drop what was not reported again for a day."""
        oldest = self._clock.steady - QUERY_REPORT_MS
        while self._reports:
            key, report = next(iter(self._reports.items()))
            if report.steady >= oldest:
                return
            self.delete(*key)

    def _make_room(self, user: str) -> None:
        """Drop what is too old, or else the oldest report of an ended query of the same user.

        Raises:
            Refusal: all of them run.
        """
        if self._shares.objection(user):
            self._drop_old()
            if self._shares.objection(user):
                self._drop_ended(user)
            self._shares.check(user)

    def _drop_ended(self, user: str) -> None:
        """Drop the oldest report of a query of a user that does not run any more."""
        now = self._clock.steady
        for key, report in self._reports.items():
            if user == key[0] and (report.state != STATES[0] or report.is_stale(now)):
                self.delete(*key)
                return


def _is_text(value: Any) -> bool:
    """True for a text that fits and can be shown."""
    try:
        return type(value) is str and len(value.encode()) <= QUERY_TEXT_BYTES
    except UnicodeEncodeError:
        return False


def _checked(query: str, name: str, value: Any) -> Any:
    """Return a fact as it is kept.

    Raises:
        Refusal: there is no such fact, or its value is invalid.
    """
    if name not in FACTS:
        hint = did_you_mean(name, FACTS, quote="'")
        raise precondition(f"the report of query '{query}' has an unknown fact '{name}': {hint}")
    if name in _TEXTS:
        takes, fits = f"a text of at most {QUERY_TEXT_BYTES} bytes in UTF-8", _is_text(value)
    elif name in _COUNTS:
        takes, fits = "a number from 0 on", type(value) is int and 0 <= value < _NUMBER_LIMIT
    elif name in _NUMBERS:
        takes, fits = (
            "a finite number from 0 on",
            type(value) in (int, float) and (math.isfinite(value) and 0 <= value < _NUMBER_LIMIT),
        )
    elif name == _ERROR:
        takes, fits = "a text", type(value) is str
        if fits:
            # Cut and mended, not refused: the text is of an error that the query did not choose.
            return value[:QUERY_ERROR_CHARACTERS].encode(errors="replace").decode()
    elif name == _INTERVAL:
        takes = f"seconds, from 1 to {_LONGEST_INTERVAL}"
        fits = type(value) is int and 1 <= value <= _LONGEST_INTERVAL
    elif name == _STATE:
        takes, fits = f"one of {', '.join(STATES)}", type(value) is str and value in STATES
    else:
        takes = f"a list of at most {QUERY_SOURCES} names of queues"
        fits = type(value) is list and len(value) <= QUERY_SOURCES and all(map(_is_text, value))
    if not fits:
        raise precondition(f"the fact '{name}' in the report of query '{query}' has to be {takes}")
    return value
