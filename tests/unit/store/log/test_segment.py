"""Segments: their names, their headers, and where their octets are."""

from __future__ import annotations

import pytest

from harebell.store.log.segment import (
    HEADER_BYTES,
    Segment,
    decode_header,
    encode_header,
    file_name,
    first_of,
    mark_of,
    seed_of,
)
from tests.unit.store.stores import IDENTITY, message


def test_names_sort_as_positions_do() -> None:
    firsts = [0, 9, 10, 41_230, 10**12]
    names = [file_name(first) for first in firsts]
    assert names == sorted(names)
    assert [first_of(name) for name in names] == firsts


@pytest.mark.parametrize("name", ["LOCK", "12.tmp", "x.seg", ".seg", "-1.seg"])
def test_other_names_are_no_segments(name: str) -> None:
    assert first_of(name) == -1


@pytest.mark.parametrize("identity", [IDENTITY, f"{IDENTITY}-0", f"{IDENTITY}-255"])
def test_a_header_says_whose_segment_it_is(identity: str) -> None:
    header = encode_header(identity, 77, 1_700_000_000_000, 99, 1_000)
    assert len(header) == HEADER_BYTES
    assert decode_header(header) == (mark_of(identity), 77, 99, 1_000)
    assert mark_of(identity) != mark_of(f"{IDENTITY}-7")
    assert seed_of(identity) != seed_of(f"{IDENTITY}-7")


def test_no_flipped_bit_of_a_header_goes_unnoticed() -> None:
    header = encode_header(IDENTITY, 77, 1, 99)
    for bit in range(HEADER_BYTES * 8):
        damaged = bytearray(header)
        damaged[bit >> 3] ^= 1 << (bit & 7)
        assert decode_header(bytes(damaged)) is None
    assert decode_header(header[:-1]) is None


def test_a_segment_ends_where_its_buffer_ends() -> None:
    segment = Segment("queues/a", 5, 1)
    assert (segment.path, segment.end(), segment.made) == (
        "queues/a/00000000000000000005.seg",
        0,
        False,
    )
    segment.continue_at(640, 1)
    segment.positions.add(segment.buffer.message(5, 0, message(), True))
    assert segment.positions.offset(5) == 640
    assert segment.end() == 640 + segment.buffer.size
    assert segment.made


def test_a_segment_refers_to_others_only() -> None:
    segment = Segment("queues/a", 5, 1)
    segment.refer(5)
    assert segment.targets is None
    segment.refer(0)
    segment.refer(0)
    assert segment.targets == {0}
