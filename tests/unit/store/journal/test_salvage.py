"""What is used of a damaged row destroys nothing, and is what was written if the row is sure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.store.journal.changes import (
    DEFINITION,
    END,
    REMOVE,
    SNAPSHOT,
    WRITE,
    Change,
    encode,
)
from harebell.store.journal.row_compression import RowCompressor
from harebell.store.journal.salvage import salvaged

SIZES = {"queues/a/1.seg": 100}
GOOD = [
    Change(WRITE, 100, "queues/a/1.seg", b"x" * 50),
    Change(WRITE, 0, "queues/b/1.seg", b"y" * 20),
    Change(END),
]
BAD = [
    Change(WRITE, 7, "queues/a/1.seg", b"over what is there"),
    Change(WRITE, 0, "../outside", b"z"),
    Change(WRITE, 0, "definitions.sqlite", b"z"),
    Change(REMOVE, 0, "queues/a/1.seg"),
    Change(DEFINITION, 1, "queue", b"\x90"),
    Change(SNAPSHOT, 0, "", b"image"),
]
ROW = encode([*GOOD, *BAD])


def test_a_row_with_a_damaged_head_alone_is_used_as_it_was_written() -> None:
    row = b"\x55" + ROW[1:]
    found = salvaged(row, SIZES, has_image=True)
    assert found.sure
    assert found.changes == [*GOOD, *BAD]
    packed = RowCompressor().compress(encode([Change(WRITE, 0, "queues/a/2.seg", bytes(9_000))]))
    found = salvaged(b"\x01" + packed[1:], SIZES, has_image=True)
    assert found.sure
    assert [each.name for each in found.changes] == ["queues/a/2.seg"]


def test_of_a_row_that_may_have_any_damage_only_what_destroys_nothing_is_used() -> None:
    row = ROW[:4] + b"\0\0\0\0" + ROW[8:]
    found = salvaged(row, SIZES, has_image=True)
    assert not found.sure
    assert found.changes == GOOD
    assert (found.unused, found.declarations) == (len(BAD), ("'queue'",))
    image = salvaged(row, SIZES, has_image=False).changes[-1]
    assert image.kind == SNAPSHOT


@given(at=st.integers(0, len(ROW) - 1), bit=st.integers(0, 7), cut=st.integers(0, len(ROW)))
def test_no_damage_makes_a_salvage_raise_or_write_over_what_is_there(
    at: int, bit: int, cut: int
) -> None:
    row = bytearray(ROW)
    row[at] ^= 1 << bit
    for damaged in (bytes(row), bytes(row[:cut]), ROW[:cut]):
        found = salvaged(damaged, SIZES, has_image=True)
        if found.sure:
            assert found.changes == [*GOOD, *BAD]
            continue
        for change in found.changes:
            assert change.kind in (WRITE, END)
            if change.kind == WRITE:
                assert change.number >= SIZES.get(change.name, 0) or change.number == 0
