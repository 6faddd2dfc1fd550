"""Offsets: stable as text, and refused when they are somebody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harebell.spark.reading.offsets import (
    START,
    ClaimOffset,
    LogOffset,
    OffsetError,
    SpoolOffset,
    is_spooled,
    offsets_json,
    offsets_of,
)


def test_the_text_of_an_offset_does_not_change() -> None:
    offset = SpoolOffset(250_000, "4f0c2a")
    assert json.dumps(offset.to_json()) == '{"position": 250000, "spool": "4f0c2a"}'


def test_written_values_are_read() -> None:
    offset = SpoolOffset(7, "ab12")
    assert SpoolOffset.of_json(json.loads(json.dumps(offset.to_json()))) == offset


def test_a_new_query_begins_before_the_first_delivery() -> None:
    assert SpoolOffset.of_json(START.to_json()) == SpoolOffset(0, "")


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {},
        {"position": 7},
        {"position": "7", "spool": "ab"},
        {"position": True, "spool": "ab"},
        {"position": -1, "spool": "ab"},
        {"position": 7, "spool": None},
        {"position": 7, "spool": "../../etc"},
        {"position": 7, "spool": "ab\n"},
    ],
)
def test_an_offset_of_another_source_is_refused(value: Any) -> None:
    with pytest.raises(OffsetError, match="does the checkpoint belong to another query"):
        SpoolOffset.of_json(value)


def test_the_text_of_several_queues_does_not_depend_on_their_order() -> None:
    points = {"b": LogOffset("g", 7), "a": ClaimOffset("g", "spark-1", 3)}
    text = json.dumps(offsets_json(points))
    assert text == (
        '{"a": {"generation": "g", "group": "spark-1", "claim": 3}, '
        '"b": {"generation": "g", "position": 7}}'
    )
    assert json.dumps(offsets_json(dict(reversed(points.items())))) == text
    assert offsets_of(json.loads(text)) == points


def test_eras_are_a_part_of_an_offset_behind_its_number() -> None:
    eras = f"{'a' * 16}:1 {'b' * 16}:3"
    points = {"a": ClaimOffset("g", "spark-1", 3, eras), "b": LogOffset("g", 7, eras)}
    text = json.dumps(offsets_json(points))
    assert f'"claim": 3, "eras": "{eras}"' in text
    assert f'"position": 7, "eras": "{eras}"' in text
    assert offsets_of(json.loads(text)) == points


@pytest.mark.parametrize(
    ("eras", "newest", "shared"),
    [
        ("", 9, 5),
        ("", 3, 3),
        (f"{'a' * 16}:1", 9, 4),
        (f"{'a' * 16}:1 {'c' * 16}:4", 9, 3),
        (f"{'c' * 16}:1", 9, 0),
    ],
)
def test_an_offset_knows_which_of_its_claims_a_group_has_made(
    eras: str, newest: int, shared: int
) -> None:
    offset = ClaimOffset("g", "spark-1", 5, f"{'a' * 16}:1 {'b' * 16}:5")
    assert offset.shared(eras, newest) == shared


def test_several_queues_over_plain_amqp_have_their_spools() -> None:
    points = {"a": SpoolOffset(7, "ab12"), "b": START}
    assert offsets_of(json.loads(json.dumps(offsets_json(points)))) == points


def test_a_queue_can_have_the_name_of_a_key() -> None:
    points = {"position": LogOffset("g", 7), "spool": LogOffset("g", 8)}
    assert not is_spooled(offsets_json(points))
    assert offsets_of(offsets_json(points)) == points
    assert is_spooled(START.to_json())


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        {"q": 7},
        {"q": {}},
        {"q": {"generation": "g"}},
        {"q": {"generation": "g", "position": -1}},
        {"q": {"generation": "g", "position": "1"}},
        {"q": {"generation": None, "position": 1}},
        {"q": {"generation": "g", "claim": 1}},
        {"q": {"generation": "g", "group": "", "claim": 1}},
        {"q": {"generation": "g", "group": "a", "claim": True}},
        {"q": {"generation": "g", "position": 1, "more": 1}},
        {"q": {"generation": "g", "position": 1, "eras": 1}},
        {"q": {"generation": "g", "position": 1, "eras": "ab:0"}},
        {"q": {"eras": ""}},
        {"q": {"position": 7, "spool": "../x"}},
    ],
)
def test_an_offset_of_somebody_else_is_refused(value: Any) -> None:
    with pytest.raises(OffsetError, match="does the checkpoint belong to another query"):
        offsets_of(value)
