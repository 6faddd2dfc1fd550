"""Positions of a segment: both kernels answer alike, and as a plain set would."""

from __future__ import annotations

from struct import iter_unpack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.kernels.twins import twin, used

KERNELS = [used("settled_bitmap"), twin("settled_bitmap")]
FIRST = 1000

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 2**32 - 2)),
        st.tuples(st.just("settle"), st.integers(FIRST - 3, FIRST + 60)),
        st.tuples(
            st.just("settle_range"),
            st.integers(FIRST - 3, FIRST + 60),
            st.integers(FIRST - 3, FIRST + 70),
        ),
        st.tuples(st.just("miss"), st.integers(FIRST, FIRST + 30)),
    ),
    max_size=80,
)


class Plain:
    """What positions are, said with a list and a set."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.live: set[int] = set()

    def end(self) -> int:
        return FIRST + len(self.offsets)

    def add(self, offset: int) -> int:
        self.live.add(self.end())
        self.offsets.append(offset)
        return self.end() - 1

    def settle(self, position: int) -> bool:
        there = position in self.live
        self.live.discard(position)
        return there

    def settle_range(self, first: int, end: int) -> int:
        return sum(self.settle(position) for position in range(first, end))

    def miss(self, position: int) -> int:
        while self.end() < position:
            self.live.discard(self.add(-1))
        return 0


def look(positions: Any) -> tuple[object, ...]:
    """Everything that can be asked."""
    around = range(FIRST - 2, positions.end() + 3)
    settled = [
        position
        for first, count in iter_unpack("<QI", positions.ranges())
        for position in range(first, first + count)
    ]
    return (
        positions.end(),
        positions.count,
        positions.live,
        [positions.settled(position) for position in around],
        [positions.offset(position) for position in around],
        [positions.next(position) for position in around],
        settled,
    )


@given(steps)
def test_positions_are_a_list_and_a_set(wanted: list[tuple[Any, ...]]) -> None:
    plain = Plain()
    both = [kernel.SettledBitmap(FIRST) for kernel in KERNELS]
    for name, *arguments in wanted:
        answers = [getattr(each, name)(*arguments) for each in (plain, *both)]
        assert answers[0] == answers[1] == answers[2], name
    assert look(both[0]) == look(both[1])
    end = plain.end()
    positions = both[0]
    assert positions.live == len(plain.live)
    for position in range(FIRST - 2, end + 3):
        inside = FIRST <= position < end
        assert positions.settled(position) == (position not in plain.live)
        assert positions.offset(position) == (plain.offsets[position - FIRST] if inside else -1)
        later = [each for each in plain.live if each >= position]
        assert positions.next(position) == min([*later, end])


@pytest.mark.parametrize("kernel", KERNELS)
def test_settled_positions_in_order_take_no_memory_of_their_own(kernel: Any) -> None:
    positions = kernel.SettledBitmap(0)
    for number in range(1000):
        positions.add(number)
    for number in range(1000):
        assert positions.settle(number)
    assert positions.live == 0
    assert len(positions.ranges()) == 12


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=30),
    st.sets(st.integers(0, 29)),
    st.integers(FIRST - 2, FIRST + 32),
    st.integers(FIRST - 2, FIRST + 40),
    st.integers(1, 20),
    st.integers(-1, 300),
)
def test_so_many_messages_reach_as_far_as_they_would_one_by_one(
    sizes: list[int], settled: set[int], begin: int, end: int, messages: int, octets: int
) -> None:
    for kernel in KERNELS:
        positions = kernel.SettledBitmap(FIRST)
        at = 100
        for size in sizes:
            positions.add(at)
            at += size
        for index in settled:
            positions.settle(FIRST + index)
        reached, count, total = begin, 0, 0
        for index, size in enumerate(sizes):
            position = FIRST + index
            if position < begin or position >= end or index in settled:
                continue
            if count == messages or (octets >= 0 and total + size > octets):
                break
            reached, count, total = position + 1, count + 1, total + size
        assert positions.reach(begin, end, at, messages, octets) == (reached, count, total)


@given(steps, st.integers(FIRST - 2, FIRST + 80), st.integers(FIRST - 2, FIRST + 80))
def test_so_many_are_live_between_two_positions(
    wanted: list[tuple[Any, ...]], begin: int, end: int
) -> None:
    for kernel in KERNELS:
        positions = kernel.SettledBitmap(FIRST)
        for name, *arguments in wanted:
            getattr(positions, name)(*arguments)
        live = [each for each in range(FIRST, positions.end()) if not positions.settled(each)]
        assert positions.live_in(begin, end) == len([each for each in live if begin <= each < end])


@given(steps, steps)
def test_the_stored_parts_of_a_bitmap_make_another_one_like_it(
    wanted: list[tuple[Any, ...]], later: list[tuple[Any, ...]]
) -> None:
    for kernel, other in (KERNELS, KERNELS[::-1]):
        positions = kernel.SettledBitmap(FIRST)
        for name, *arguments in wanted:
            getattr(positions, name)(*arguments)
        again = other.SettledBitmap(FIRST)
        again.restore(positions.count)
        again.settle_state(positions.front(), positions.bits())
        assert again.is_loaded() == (positions.count == 0)
        assert again.load(positions.offsets()) == (positions.count > 0)
        assert look(again) == look(positions)
        # What was settled here before is settled still.
        merged = kernel.SettledBitmap(FIRST)
        for index in range(positions.count):
            merged.add(index)
            if index % 3 == 0:
                merged.settle(FIRST + index)
        merged.settle_state(positions.front(), positions.bits())
        assert [merged.settled(FIRST + index) for index in range(positions.count)] == [
            positions.settled(FIRST + index) or index % 3 == 0 for index in range(positions.count)
        ]
        for name, *arguments in later:
            assert getattr(again, name)(*arguments) == getattr(positions, name)(*arguments)
        assert look(again) == look(positions)


@pytest.mark.parametrize("kernel", KERNELS)
def test_offsets_can_be_left_out_of_memory(kernel: Any) -> None:
    positions = kernel.SettledBitmap(FIRST)
    assert positions.is_loaded()
    for number in range(20):
        positions.add(number * 8)
    offsets = positions.offsets()
    assert positions.offset_bytes() >= len(offsets) == 80
    positions.drop()
    assert positions.offset_bytes() == 0
    assert positions.offsets() == b""
    for wrong in (
        lambda: positions.offset(FIRST),
        lambda: positions.add(200),
        lambda: positions.reach(FIRST, FIRST + 5, 300, 1, -1),
    ):
        with pytest.raises(RuntimeError, match="not loaded"):
            wrong()
    assert positions.offset(FIRST - 1) == positions.offset(FIRST + 20) == -1
    assert positions.settle(FIRST + 4)
    assert not positions.load(offsets[:-4])
    assert positions.load(offsets)
    assert not positions.load(offsets)
    assert positions.offset(FIRST + 19) == 19 * 8
    assert positions.add(200) == FIRST + 20


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_live_message_whose_record_is_lost_counts_as_empty(kernel: Any) -> None:
    positions = kernel.SettledBitmap(FIRST)
    positions.restore(3)
    offsets = [64, 2**32 - 1, 164]
    assert positions.load(b"".join(offset.to_bytes(4, "little") for offset in offsets))
    assert positions.reach(FIRST, FIRST + 3, 264, 3, -1) == (FIRST + 3, 3, 200)
    assert positions.reach(FIRST, FIRST + 3, 264, 3, 150) == (FIRST + 2, 2, 100)
