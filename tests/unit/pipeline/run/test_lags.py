"""Lags are told by queue: from positions, or from what is ready of a leased queue."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harebell.pipeline.run.lags import lags


def told(end: Any, latest: Any) -> dict[str, Any]:
    return {"endOffset": json.dumps(end), "latestOffset": json.dumps(latest)}


@pytest.mark.parametrize(
    ("end", "latest", "found"),
    [
        ({"position": 3, "spool": "a"}, {"position": 10, "spool": "a"}, {"q": 7}),
        (
            {"events": {"generation": "g", "position": 5}},
            {"events": {"generation": "g", "position": 6}},
            {"events": 1},
        ),
        (
            {"orders": {"generation": "g", "group": "x", "claim": 4}},
            {"orders": {"generation": "g", "group": "x", "claim": 4, "ready": 12}},
            {"orders": 12},
        ),
        (
            {"a": {"position": 5}, "b": {"position": 9}},
            {"a": {"position": 7}, "b": {"position": 9}},
            {"a": 2, "b": 0},
        ),
        ({"a": {"position": 5}}, {"a": {"position": 5}, "new": {"position": 9}}, {"a": 0}),
        ({"position": {"position": 1}}, {"position": {"position": 4}}, {"position": 3}),
        (None, {"q": {"position": 4}}, {}),
        (3, "x", {}),
    ],
)
def test_the_lag_of_each_queue_is_found(end: Any, latest: Any, found: dict[str, int]) -> None:
    assert lags(told(end, latest), "q") == found
    assert lags({"endOffset": end, "latestOffset": latest}, "q") == found


def test_offsets_that_say_nothing_have_no_lag() -> None:
    assert lags({"endOffset": None, "latestOffset": "no JSON"}, "q") == {}
    assert lags({}, "q") == {}
