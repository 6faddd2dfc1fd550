"""What is kept of a group: it comes back as it was, and nothing else is taken for one."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.model.lease.record import Claim, GroupRecord, LeaseRecordError, decode
from harebell.model.queue.features.lease import LeasedRange

LONG = st.integers(0, 2**64 - 2)
RUNS = st.builds(
    lambda level, first, more: LeasedRange(level, first, min(first + more, 2**64 - 1)),
    st.integers(0, 255),
    LONG,
    st.integers(1, 1000),
)
SEEN = st.lists(st.tuples(st.integers(0, 255), LONG), max_size=3).map(tuple)
CLAIMS = st.lists(
    st.builds(Claim, LONG, LONG, LONG, st.lists(RUNS, max_size=3).map(tuple), SEEN), max_size=3
).map(tuple)
RECORDS = st.builds(GroupRecord, LONG, LONG, LONG, LONG, LONG, CLAIMS, CLAIMS, LONG)
SOME = GroupRecord(3, 1, 4, 2, 5000, (Claim(4, 10, 99, (LeasedRange(0, 5, 15),), ((0, 7),)),))


@given(RECORDS)
def test_a_group_survives_the_way(record: GroupRecord) -> None:
    assert decode(record.encode()) == record


@pytest.mark.parametrize("size", range(len(SOME.encode())))
def test_a_record_that_is_cut_short_is_no_group(size: int) -> None:
    with pytest.raises(LeaseRecordError):
        decode(SOME.encode()[:size])


def test_other_octets_are_refused_and_say_why() -> None:
    with pytest.raises(LeaseRecordError, match="1 bytes too many"):
        decode(SOME.encode() + b"x")
    with pytest.raises(LeaseRecordError, match="it has version 9, known are 1 to 3"):
        decode(b"\x09" + SOME.encode()[1:])
    empty = GroupRecord(1, 0, 1, 0, 1, (Claim(1, 1, 1, (LeasedRange(0, 5, 5),)),))
    with pytest.raises(LeaseRecordError, match="claim 1 has a run without positions"):
        decode(empty.encode())


def test_a_group_of_the_first_version_is_read_without_levels() -> None:
    octets = (
        struct.pack("<BQQQQQ", 1, 3, 1, 4, 2, 5000)
        + struct.pack("<I", 1)
        + struct.pack("<QQQI", 4, 10, 99, 1)
        + struct.pack("<BQQ", 0, 5, 15)
        + struct.pack("<I", 0)
    )
    assert decode(octets) == GroupRecord(
        3, 1, 4, 2, 5000, (Claim(4, 10, 99, (LeasedRange(0, 5, 15),)),)
    )


def test_a_group_of_the_second_version_is_read_without_the_time_since_when_it_is_idle() -> None:
    octets = b"\x02" + SOME.encode()[1:-8]
    assert decode(octets) == SOME


@given(st.binary(max_size=200))
def test_nonsense_is_refused_and_breaks_nothing(octets: bytes) -> None:
    try:
        record = decode(octets)
    except LeaseRecordError:
        return
    assert decode(record.encode()) == record
