"""Ranges become partitions: everything once, in order, about equal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.client.url import URL
from harebell.spark.reading.planning import OffsetRange, RangePartition, cut


def one(first: int, end: int, messages: int | None = None, queue: str = "q") -> OffsetRange:
    return OffsetRange(queue, "g", first, end, end - first if messages is None else messages)


def spans(parts: list[list[OffsetRange]]) -> list[list[tuple[int, int]]]:
    return [[(each.first, each.end) for each in part] for part in parts]


def test_a_range_is_cut_into_as_many_partitions_as_asked() -> None:
    assert spans(cut([one(0, 9000)], 3, None)) == [[(0, 3000)], [(3000, 6000)], [(6000, 9000)]]


def test_a_small_range_is_not_cut() -> None:
    assert spans(cut([one(0, 1000)], 8, None)) == [[(0, 1000)]]


def test_a_small_range_is_cut_when_somebody_asks_for_it() -> None:
    assert spans(cut([one(0, 6)], 3, None, minimum=1)) == [[(0, 2)], [(2, 4)], [(4, 6)]]
    assert spans(cut([one(0, 2)], 8, None, minimum=1)) == [[(0, 1)], [(1, 2)]]


def test_a_partition_has_no_more_messages_than_asked() -> None:
    assert spans(cut([one(0, 100)], 1, 40)) == [[(0, 33)], [(33, 66)], [(66, 100)]]


def test_several_ranges_share_the_partitions() -> None:
    parts = cut([one(0, 2048), one(10, 2058), one(0, 4096)], 2, None)
    assert spans(parts) == [[(0, 2048), (10, 2058)], [(0, 4096)]]


def test_a_queue_can_be_kept_in_one_partition() -> None:
    ranges = [one(0, 9000, queue="a"), one(0, 10, queue="b"), one(9000, 9100, queue="a")]
    parts = cut(ranges, 4, None, by_queue=True)
    assert [[each.queue for each in part] for part in parts] == [["a", "a"], ["b"]]


def test_there_is_no_partition_without_positions() -> None:
    assert cut([], 4, None) == []
    assert cut([one(5, 5)], 4, None) == []


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=6),
    st.integers(1, 9),
    st.none() | st.integers(1_000, 10**6),
)
def test_every_position_is_in_exactly_one_partition(
    sizes: list[tuple[int, int]], partitions: int, max_messages: int | None
) -> None:
    ranges, first = [], 0
    for length, messages in sizes:
        ranges.append(one(first, first + length, max(1, min(length, messages))))
        first += length
    found = [each for part in cut(ranges, partitions, max_messages) for each in part]
    assert sum(each.end - each.first for each in found) == first
    end = 0
    for each in found:
        assert each.first == end < each.end
        end = each.end
    assert sum(each.messages for each in found) == sum(
        each.messages for each in ranges if each.first < each.end
    )


def test_a_partition_does_not_show_the_password() -> None:
    partition = RangePartition([one(0, 1)], URL(password="hunter2"))
    assert "hunter2" not in repr(partition)
    assert "hunter2" not in str(partition)
