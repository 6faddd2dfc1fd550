"""Reports of queries are few, small, new, and each user's own."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import Refusal
from harebell.base.limits import QUERY_ERROR_CHARACTERS, QUERY_SOURCES
from harebell.base.share import FREE_PARTS, PARTS
from harebell.model.limits import QUERY_REPORT_MS, QUERY_REPORTS
from harebell.model.query_reports import QueryReports

SHARE = QUERY_REPORTS // PARTS


def names(reports: QueryReports) -> list[tuple[str, str]]:
    return [(each.user, each.name) for each in reports.all()]


def test_a_report_replaces_the_last_one_of_the_same_user_only() -> None:
    reports = QueryReports(Clock(5))
    reports.add("ann", "sales", {"batch": 1, "rows_per_second": 2.5})
    reports.add("bob", "sales", {"batch": 7})
    reports.add("ann", "sales", {"batch": 2})
    assert [(each.user, each.facts) for each in reports.all()] == [
        ("ann", {"batch": 2}),
        ("bob", {"batch": 7}),
    ]
    assert reports.delete("ann", "sales")
    assert not reports.delete("ann", "sales")
    assert names(reports) == [("bob", "sales")]


def test_a_running_query_is_stale_after_three_missed_intervals() -> None:
    clock = Clock()
    reports = QueryReports(clock)
    running = reports.add("ann", "a", {"interval": 10})
    stopped = reports.add("ann", "b", {"interval": 10, "state": "stopped"})
    clock.advance(30_000)
    assert not reports.is_stale(running)
    clock.advance(1)
    assert reports.is_stale(running)
    assert not reports.is_stale(stopped)


def test_a_report_is_dropped_after_a_day_though_the_wall_clock_is_set_back() -> None:
    clock = Clock(QUERY_REPORT_MS * 10)
    reports = QueryReports(clock)
    reports.add("ann", "a", {})
    reports.add("ann", "b", {})
    clock.advance(QUERY_REPORT_MS)
    reports.add("ann", "a", {})
    clock.ms = 0
    assert names(reports) == [("ann", "a"), ("ann", "b")]
    clock.advance(1)
    assert names(reports) == [("ann", "a")]


def test_a_full_vhost_has_room_for_a_few_reports_of_everybody() -> None:
    clock = Clock()
    reports = QueryReports(clock)
    for number in range(QUERY_REPORTS):
        reports.add(f"user {number // SHARE}", f"{number:04}", {})
    for number in range(QUERY_REPORTS // FREE_PARTS):
        reports.add("ann", str(number), {})
    with pytest.raises(Refusal, match="1015 queries that report in this vhost, of which user 'ann"):
        reports.add("ann", "z", {})
    reports.add("ann", "0", {"batch": 1})
    clock.advance(90_001)
    reports.add("ann", "z", {})
    assert ("ann", "1") not in names(reports)
    assert len(names(reports)) == QUERY_REPORTS + QUERY_REPORTS // FREE_PARTS


def test_one_user_cannot_keep_others_from_reporting() -> None:
    clock = Clock()
    reports = QueryReports(clock)
    reports.add("bob", "ended", {"state": "stopped"})
    for number in range(SHARE):
        reports.add("ann", f"{number:04}", {"state": "failed" if number == 7 else "running"})
    # The user makes room among the own reports, and not among those of others.
    reports.add("ann", "x", {})
    assert ("ann", "0007") not in names(reports)
    with pytest.raises(
        Refusal, match="user 'ann' has 250 queries that report in this vhost, and one"
    ):
        reports.add("ann", "y", {})
    reports.add("ann", "x", {"batch": 1})
    reports.add("bob", "running", {})
    assert len(names(reports)) == SHARE + 2
    # A day later those that nobody has repeated are gone.
    clock.advance(QUERY_REPORT_MS + 1)
    reports.add("ann", "y", {})
    assert names(reports) == [("ann", "y")]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        ({"bach": 1}, "has an unknown fact 'bach': did you mean 'batch'"),
        ({"batch": -1}, "the fact 'batch' in the report of query 'q' has to be a number from 0 on"),
        ({"batch": 2**63}, "'batch'"),
        ({"batch": True}, "'batch'"),
        ({"lag_messages": "5"}, "'lag_messages'"),
        ({"rows_per_second": float("nan")}, "'rows_per_second'.* a finite number"),
        ({"lag_seconds": float("inf")}, "'lag_seconds'"),
        ({"state": "asleep"}, "'state'.* one of running, stopped, failed"),
        ({"interval": 0}, "'interval'.* seconds, from 1 to 3600"),
        ({"sink": "s" * 256}, "'sink'.* at most 255 bytes"),
        ({"application": "\udcff"}, "'application'"),
        ({"id": b"x"}, "'id'"),
        ({"sources": ["q"] * (QUERY_SOURCES + 1)}, "'sources'.* at most 64 names of queues"),
        ({"sources": [1]}, "'sources'"),
        ({"error": 1}, "'error'.* a text"),
    ],
)
def test_a_wrong_fact_is_refused_by_its_name(facts: dict[str, Any], text: str) -> None:
    reports = QueryReports(Clock())
    with pytest.raises(Refusal, match=text):
        reports.add("ann", "q", facts)
    assert names(reports) == []


@pytest.mark.parametrize("name", ["", "n" * 256, "\udcff"])
def test_a_query_has_a_name_that_can_be_shown(name: str) -> None:
    with pytest.raises(Refusal, match="the name of a query"):
        QueryReports(Clock()).add("ann", name, {})


def test_a_long_error_is_cut_and_can_be_shown() -> None:
    reports = QueryReports(Clock())
    report = reports.add("ann", "q", {"error": "\udcff" + "e" * QUERY_ERROR_CHARACTERS})
    assert report.facts["error"] == "?" + "e" * (QUERY_ERROR_CHARACTERS - 1)
