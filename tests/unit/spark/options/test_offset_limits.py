"""Where reading begins and ends: every way to say it, and what is wrong with the others."""

from __future__ import annotations

import pytest

from harebell.spark.options.offset_limits import (
    EARLIEST,
    LATEST,
    POSITION,
    TIME,
    OffsetLimit,
    read_offset_limits,
    read_time,
    read_times,
)
from harebell.spark.options.values import OptionError

NOON = 1_769_860_800_000_000
"""2026-01-31T12:00:00Z in microseconds."""


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", OffsetLimit(EARLIEST)),
        ("Latest", OffsetLimit(LATEST)),
        ("0", OffsetLimit(POSITION, 0)),
        ("007", OffsetLimit(POSITION, 7)),
        ("1970-01-01", OffsetLimit(TIME, 0)),
        ("1960-01-01T00:00:00", OffsetLimit(TIME, 0)),
        ("0001-01-01T00:00:00+14:00", OffsetLimit(TIME, 0)),
        ("250000", OffsetLimit(POSITION, 250_000)),
        ("2026-01-31T12:00:00Z", OffsetLimit(TIME, NOON)),
        ("2026-01-31 12:00:00", OffsetLimit(TIME, NOON)),
        ("2026-01-31T13:00:00.5+01:00", OffsetLimit(TIME, NOON + 500_000)),
    ],
)
def test_a_place_is_an_end_a_position_or_a_time(text: str, place: OffsetLimit) -> None:
    assert read_offset_limits("startingOffsets", text).of("any") == place


def test_every_queue_can_have_its_own_place() -> None:
    found = read_offset_limits(
        "startingOffsets", '{"a": 7, "b": "latest", "c": -2, "d": -1, "e": "2026-01-31T12:00:00Z"}'
    )
    assert [found.of(queue) for queue in "abcde"] == [
        OffsetLimit(POSITION, 7),
        OffsetLimit(LATEST),
        OffsetLimit(EARLIEST),
        OffsetLimit(LATEST),
        OffsetLimit(TIME, NOON),
    ]
    assert found.of("another") is None


@pytest.mark.parametrize("text", ["1769860800000", "2026-01-31T12:00:00Z"])
def test_timestamps_are_milliseconds_or_words(text: str) -> None:
    assert read_time("startingTimestamp", text).of("any") == OffsetLimit(TIME, NOON)


def test_timestamps_can_be_given_per_queue() -> None:
    found = read_times("startingOffsetsByTimestamp", '{"a": 1769860800000, "b": "1769860800000"}')
    assert found.of("a") == found.of("b") == OffsetLimit(TIME, NOON)
    assert found.of("c") is None


@pytest.mark.parametrize(
    "text", ["", "-1", "soon", "1.5", "2026-13-01", str(2**63), "٣", '{"a": -3}', '{"a": true}']
)
def test_a_place_that_is_none_is_named(text: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets must be earliest, latest, a position"):
        read_offset_limits("startingOffsets", text)


@pytest.mark.parametrize("text", ["", "yesterday", "-5", "1.5"])
def test_a_timestamp_that_is_none_is_named(text: str) -> None:
    with pytest.raises(OptionError, match="startingTimestamp must be milliseconds since 1970"):
        read_time("startingTimestamp", text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "is no JSON: "),
        ("{}", "must be a JSON object by queue"),
        ('{"a": 1, "a": 2}', "names a queue twice"),
    ],
)
def test_json_that_is_wrong_is_explained(text: str, why: str) -> None:
    with pytest.raises(OptionError, match=why):
        read_offset_limits("startingOffsets", text)


def test_json_by_timestamp_must_be_an_object() -> None:
    with pytest.raises(OptionError, match="startingOffsetsByTimestamp must be a JSON object"):
        read_times("startingOffsetsByTimestamp", "[1]")


def test_a_place_is_shown_as_it_was_said() -> None:
    assert str(OffsetLimit(LATEST)) == "latest"
    assert str(OffsetLimit(POSITION, 7)) == "7"
    assert str(OffsetLimit(TIME, NOON)) == "2026-01-31T12:00:00+00:00"


def test_a_time_that_no_datetime_can_hold_is_written_as_it_was_given() -> None:
    limit = (2**63 - 1) // 1000
    place = read_time("startingTimestamp", str(limit)).of("any")
    assert place == OffsetLimit(TIME, limit * 1000)
    assert str(place) == f"{limit} ms after 1970"


@pytest.mark.parametrize("digits", ["9" * 20, "9" * 5_000])
def test_a_number_with_too_many_digits_is_named_like_any_other_mistake(digits: str) -> None:
    with pytest.raises(OptionError, match="startingOffsets must be earliest"):
        read_offset_limits("startingOffsets", digits)
    with pytest.raises(OptionError, match="startingTimestamp must be milliseconds"):
        read_time("startingTimestamp", digits)


def test_an_offset_of_the_progress_of_a_query_is_taken_with_its_eras() -> None:
    eras = f"{'a' * 16}:0"
    text = f'{{"q": {{"generation": "g", "position": 7, "eras": "{eras}"}}}}'
    assert read_offset_limits("startingOffsets", text).of("q") == OffsetLimit(
        POSITION, 7, "g", eras
    )
    for wrong in (
        text.replace(eras, "yes"),
        text.replace("7", '"x"'),
        text.replace('"g"', "7"),
        text.replace('"eras"', '"ears"'),
    ):
        with pytest.raises(OptionError):
            read_offset_limits("startingOffsets", wrong)
