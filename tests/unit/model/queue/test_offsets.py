"""Where a stream's consumer begins, and what it wants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import Refusal
from harebell.model.queue.offsets import check_offset, filter_values, span_ms, start_position
from tests.unit.model.queue.logs import PreparedLog
from tests.unit.model.things import message

NOW = 1_000_000_000


def log_of(count: int = 10, gone: int = 2) -> PreparedLog:
    """One message a second, the last one now."""
    clock = Clock()
    log = PreparedLog(clock)
    for number in range(count):
        clock.ms = NOW - 1000 * (count - 1 - number)
        log.append(message(b"%d" % number))
    log.settle_range(0, gone)
    return log


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("first", 2),
        ("last", 9),
        ("next", 10),
        (0, 2),
        (-5, 2),
        (5, 5),
        (10, 10),
        (2**62, 10),
        ("3s", 6),
        ("1Y", 2),
        (datetime.fromtimestamp(NOW // 1000 - 4, UTC), 5),
        (datetime.fromtimestamp(0, UTC), 2),
        (datetime(9999, 1, 1, tzinfo=UTC), 10),
    ],
)
def test_a_consumer_begins_where_it_says_as_far_as_that_is_there(value: Any, expected: int) -> None:
    assert start_position(value, log_of(), 10, NOW) == expected


def test_a_time_that_no_clock_reaches_means_what_comes_next() -> None:
    class Far(int):
        """A time as the wire gives it where no datetime can hold it."""

    assert start_position(Far(10**15), log_of(), 10, NOW) == 10


@pytest.mark.parametrize("value", ["first", "last", "next", 0, 5, "1h", 0.0])
def test_nothing_begins_before_an_empty_log(value: Any) -> None:
    assert start_position(value, PreparedLog(), 0, NOW) == 0


def test_positions_that_are_not_visible_yet_are_not_reached() -> None:
    assert start_position("last", log_of(), 7, NOW) == 6
    assert start_position("0s", log_of(), 7, NOW) == 7
    assert start_position(9, log_of(), 7, NOW) == 7


@pytest.mark.parametrize(
    ("value", "term"),
    [
        ("foo", '{longstr,<<"foo">>}'),
        ("1w", '{longstr,<<"1w">>}'),
        ("1h ", '{longstr,<<"1h ">>}'),
        (True, "{bool,true}"),
        (1.5, "{double,1.5}"),
    ],
)
def test_an_offset_that_nobody_understands_is_refused(value: Any, term: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_offset("queue 's' in vhost '/'", {"x-stream-offset": value})
    assert refused.value.text == (
        "invalid arg 'x-stream-offset' for queue 's' in vhost '/': "
        f"{{invalid_stream_offset_arg,{term}}}"
    )


@pytest.mark.parametrize("value", ["first", "90m", 7, datetime(2020, 1, 1, tzinfo=UTC)])
def test_offsets_that_are_understood_pass(value: Any) -> None:
    check_offset("s", {"x-stream-offset": value})
    check_offset("s", {})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2Y", 63_072_000), ("1M", 2_592_000), ("7D", 604_800), ("2h", 7_200), ("3m", 180), ("4s", 4)],
)
def test_spans_have_six_units(text: str, seconds: int) -> None:
    assert span_ms(text) == seconds * 1000


@pytest.mark.parametrize("text", ["", "h", "1", "1H", "-1h", "1h2m", "1h\n", "\u0661h"])
def test_other_texts_are_no_spans(text: str) -> None:
    assert span_ms(text) is None


def test_a_filter_is_a_text_or_several() -> None:
    assert filter_values({}) is None
    assert filter_values({"x-stream-filter": 5}) is None
    assert filter_values({"x-stream-filter": "a"}) == {"a"}
    assert filter_values({"x-stream-filter": ["a", 1, "b"]}) == {"a", "b"}
