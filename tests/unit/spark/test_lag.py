"""Metrics of a source are made of the progress of its query."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harebell.spark.lag import lag_of, waiting_of


def stream(position: int, **more: Any) -> dict[str, Any]:
    return {"generation": "g", "position": position} | more


def test_streams_are_behind_by_positions_and_bytes() -> None:
    latest = {
        "a": stream(100, first=0, messageBytes=10),
        "b": stream(50, first=20, messageBytes=4),
        "c": stream(7, first=0, messageBytes=1),
    }
    end = {"a": stream(40), "c": stream(7)}
    assert lag_of(json.dumps(latest), json.dumps(end)) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "60",
        "avgOffsetsBehindLatest": "30.0",
        "estimatedTotalBytesBehindLatest": "720",
    }


def test_a_stream_that_was_declared_again_is_behind_from_its_first_message() -> None:
    latest = {"a": {"generation": "new", "position": 9, "first": 2}}
    assert lag_of(latest, {"a": stream(8)})["maxOffsetsBehindLatest"] == "7"


def test_a_source_that_is_further_than_the_last_report_is_not_behind() -> None:
    latest = {"a": stream(9, first=0, messageBytes=10)}
    assert lag_of(latest, {"a": stream(12)}) == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "0",
        "avgOffsetsBehindLatest": "0.0",
        "estimatedTotalBytesBehindLatest": "0",
    }


def test_leased_queues_are_behind_by_what_is_ready() -> None:
    latest = {"q": {"generation": "g", "group": "spark-1", "claim": 3, "ready": 12}}
    assert lag_of(latest, {}) == {
        "minOffsetsBehindLatest": "12",
        "maxOffsetsBehindLatest": "12",
        "avgOffsetsBehindLatest": "12.0",
    }


@pytest.mark.parametrize(
    "latest", [None, "null", "None", "", {}, {"position": 5, "spool": "ab"}, {"q": {"x": 1}}, [1]]
)
def test_an_offset_that_belongs_to_no_queue_has_no_metrics(latest: Any) -> None:
    assert lag_of(latest, latest) == {}


def test_waiting_messages_are_counted_by_queue() -> None:
    latest = {"a": {"position": 9, "generation": "g"}, "b": {"ready": 4}}
    end = {"a": {"position": 2, "generation": "g"}}
    assert waiting_of(latest, end) == {"a": 7, "b": 4}
    assert waiting_of('{"position": 9}', None) == {}
    assert waiting_of(None, None) == {}


@pytest.mark.parametrize(
    ("end", "latest", "found"),
    [
        ({"position": 3, "spool": "a"}, {"position": 10, "spool": "a"}, {"q": 7}),
        ({"events": stream(5)}, {"events": stream(6)}, {"events": 1}),
        (
            {"orders": {"generation": "g", "group": "x", "claim": 4}},
            {"orders": {"generation": "g", "group": "x", "claim": 4, "ready": 12}},
            {"orders": 12},
        ),
        ({"a": stream(5)}, {"a": stream(5), "new": stream(9, first=2)}, {"a": 0, "new": 7}),
        ({"position": stream(1)}, {"position": stream(4)}, {"position": 3}),
        (None, {"q": stream(4)}, {"q": 4}),
        ({"q": {}}, {"q": {"position": 4}, "other": {"x": 1}}, {"q": 4}),
        (3, "x", {}),
    ],
)
def test_waiting_messages_are_known_by_position_spool_or_lease(
    end: Any, latest: Any, found: dict[str, int]
) -> None:
    assert waiting_of(json.dumps(latest), json.dumps(end), "q") == found
    assert waiting_of(latest, end, "q") == found
