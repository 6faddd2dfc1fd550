"""Flatbuffers of a peer are read within their bounds only."""

from __future__ import annotations

from struct import Struct, pack

import pytest

from harebell.base.errors import BatchError
from harebell.wire.arrow.flat_reading import ReadTable, root

I64 = Struct("<q")
VTABLE = pack("<HHHHH", 10, 16, 8, 0, 4)
"""A number at 8, nothing, and a reference at 4."""
TABLE = pack("<iIq", 14, 12, -5)
VECTOR = pack("<I", 2) + b"0123"
BUFFER = pack("<I", 18) + VTABLE + bytes(4) + TABLE + VECTOR


def test_numbers_vectors_and_defaults_are_read() -> None:
    table = root(BUFFER)
    assert table.number(0, I64) == -5
    assert table.number(1, I64, 7) == 7
    assert table.number(9, I64) == 0
    assert bytes(table.structs(2, 2)) == b"0123"
    assert bytes(table.structs(1, 2)) == b""
    assert table.table(1) is None


@pytest.mark.parametrize("size", range(len(BUFFER)))
def test_a_buffer_that_is_cut_off_is_an_error(size: int) -> None:
    def read() -> None:
        table = root(BUFFER[:size])
        table.number(0, I64)
        table.structs(2, 2)

    with pytest.raises(BatchError, match="malformed Arrow metadata"):
        read()


def test_an_offset_out_of_the_buffer_is_an_error() -> None:
    for broken in (
        pack("<I", 0xFFFF_FFFF) + BUFFER[4:],
        BUFFER[:18] + pack("<i", -0x7FFF_0000) + BUFFER[22:],
        BUFFER[:4] + pack("<H", 3) + BUFFER[6:],
        BUFFER[:8] + pack("<H", 12) + BUFFER[10:],
    ):
        with pytest.raises(BatchError, match="malformed Arrow metadata"):
            root(broken).number(0, I64)
    with pytest.raises(BatchError, match="a vector runs over the end"):
        root(BUFFER).structs(2, 3)


def test_a_table_before_the_buffer_is_an_error() -> None:
    with pytest.raises(BatchError, match="an offset leads out of it"):
        ReadTable(BUFFER, -4)
