"""Ranges: several logs in the order of their positions, and the place of a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.kernels.batches import BatchBuilder
from harebell.model.queue.position_range import (
    LogRange,
    append_runs_to,
    check_kept,
    position_at,
    span_of,
)
from harebell.store.log.memory import MemoryLog
from tests.unit.model.queue.logs import PreparedLog

PLENTY = 10**9
NOTHING = Properties(b"\0\0")


def builder(rows: int = PLENTY, skip: bool = False) -> Any:
    made = BatchBuilder(("offset",), (), "q", None, None, None, None)
    made.limit(rows, PLENTY, PLENTY)
    made.skip = skip
    return made


def offsets(of: Any) -> list[int]:
    _, _, (_, values) = of.finish()
    return [
        int.from_bytes(values[at : at + 8], "little", signed=True)
        for at in range(0, len(values), 8)
    ]


class TimedLog(PreparedLog):
    """A log that says when its records came, while it has them."""

    def time_of(self, position: int) -> int:
        message = self.read(position)
        return 0 if message is None else message.timestamp


def timed(times: list[int], settled: set[int]) -> PreparedLog:
    log = TimedLog()
    for time in times:
        message = Message("", "", NOTHING, b"")
        message.timestamp = time
        log.append(message)
    for position in settled:
        log.settle(position)
    return log


@given(st.lists(st.integers(1, 50), max_size=30), st.sets(st.integers(0, 29)), st.integers(1, 60))
def test_the_place_of_a_time_is_the_first_message_of_then_or_later(
    times: list[int], settled: set[int], moment: int
) -> None:
    times.sort()
    log = timed(times, settled)
    left = [n for n, time in enumerate(times) if n not in settled and time >= moment]
    expected = left[0] if left else len(times)
    assert position_at(log, log.first(), log.end(), moment) == expected
    assert span_of(log, log.end(), moment, 0).position == expected


def test_a_span_without_messages_is_empty() -> None:
    log = MemoryLog(Gauge())
    span = span_of(log, 0, 0, 0)
    assert (span.first, span.end, span.messages, span.position) == (0, 0, 0, 0)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(1, 9),
)
def test_levels_are_read_in_the_order_of_positions(
    messages: list[tuple[int, bool]], low: int, high: int, rows: int
) -> None:
    logs = {level: MemoryLog(Gauge()) for level in (0, 2, 3)}
    expected = []
    first, end = min(low, high), max(low, high)
    for level, settled in messages:
        log = logs.get(level)
        if log is None:
            continue
        position = log.append(Message("", "", NOTHING, b""))
        there = position << 2 | level
        if settled:
            log.settle(position)
        elif first <= there < end:
            expected.append(there)
    into = builder(rows)
    runs = [LogRange(level, 0, log.end(), log) for level, log in logs.items()]
    found: list[int] = []
    position = first
    while position < end:
        reached = append_runs_to(
            runs, 2, position, end, into, lambda level: into.at_level(2, level)
        )
        assert position < reached <= end
        position = reached
        part = offsets(into)
        assert len(part) <= rows
        found += part
    assert found == sorted(expected)


def test_offsets_that_retention_has_taken_are_refused_or_passed_over() -> None:
    assert check_kept("s", "/", 10, 10, 20, builder()) == 10
    with pytest.raises(Refusal) as caught:
        check_kept("s", "/", 4, 10, 20, builder())
    assert caught.value.kind is ErrorKind.RANGE_GONE
    assert caught.value.text == (
        "offsets 4 to 9 of queue 's' in vhost '/' are gone: the first that is kept is 10"
    )
    into = builder(skip=True)
    assert check_kept("s", "/", 4, 10, 20, into) == 10
    assert into.lost == 6
    assert check_kept("s", "/", 4, 10, 7, into) == 7
    assert into.lost == 9


def test_only_what_is_in_a_run_is_read() -> None:
    log = MemoryLog(Gauge())
    for _ in range(20):
        log.append(Message("", "", NOTHING, b""))
    log.settle(4)
    runs = [LogRange(0, 3, 6, log), LogRange(0, 10, 12, log)]
    into = builder()
    assert append_runs_to(runs, 0, 0, 99, into, lambda level: None) == 99
    assert offsets(into) == [3, 5, 10, 11]
    assert append_runs_to(runs, 0, 5, 11, into, lambda level: None) == 11
    assert offsets(into) == [5, 10]
