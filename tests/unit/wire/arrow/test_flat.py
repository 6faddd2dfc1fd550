"""Flatbuffers: every number aligned to its size, and every offset to what it means."""

from __future__ import annotations

import struct

from harebell.wire.arrow.flat import FlatTable, FlatText, Scalar, Structs, Vector, flatbuffer


def root(data: bytes) -> int:
    return int(struct.unpack_from("<I", data)[0])


def field(data: bytes, table: int, slot: int) -> int:
    """Where a field of a table stands; 0 when it has its default."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    size = struct.unpack_from("<H", data, vtable)[0]
    if 4 + 2 * slot >= size:
        return 0
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * slot)[0]
    return table + offset if offset else 0


def follow(data: bytes, at: int) -> int:
    return at + int(struct.unpack_from("<I", data, at)[0])


def test_numbers_stand_at_multiples_of_their_size() -> None:
    data = flatbuffer(
        FlatTable({0: Scalar("B", 7), 1: Scalar("q", -5), 2: Scalar("h", 300), 4: Scalar("i", -1)})
    )
    table = root(data)
    for slot, form, value in ((0, "<B", 7), (1, "<q", -5), (2, "<h", 300), (4, "<i", -1)):
        at = field(data, table, slot)
        assert at % struct.calcsize(form) == 0
        assert struct.unpack_from(form, data, at)[0] == value
    assert field(data, table, 3) == 0
    assert field(data, table, 5) == 0
    assert len(data) % 8 == 0


def test_objects_that_a_table_refers_to_are_found_from_it() -> None:
    inner = [FlatTable({0: FlatText("one")}), FlatTable({0: FlatText("zwölf")})]
    pairs = struct.pack("<qqqq", 1, 2, 3, 4)
    data = flatbuffer(FlatTable({0: Vector(inner), 1: Structs(pairs, 2), 2: FlatText("")}))
    table = root(data)
    vector = follow(data, field(data, table, 0))
    assert struct.unpack_from("<I", data, vector)[0] == 2
    for number, text in enumerate((b"one", "zwölf".encode())):
        there = follow(data, field(data, follow(data, vector + 4 + 4 * number), 0))
        (size,) = struct.unpack_from("<I", data, there)
        assert data[there + 4 : there + 4 + size + 1] == text + b"\0"
    structs = follow(data, field(data, table, 1))
    assert (structs + 4) % 8 == 0
    assert struct.unpack_from("<Iqqqq", data, structs) == (2, 1, 2, 3, 4)
    assert struct.unpack_from("<I", data, follow(data, field(data, table, 2)))[0] == 0


def test_an_empty_table_has_all_defaults() -> None:
    data = flatbuffer(FlatTable({}))
    assert field(data, root(data), 0) == 0
