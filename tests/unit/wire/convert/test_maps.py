"""Tables become maps and come back as they were, each value in its own type."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.limits import TABLE_DEPTH
from harebell.wire.convert.maps import to_map, to_table
from harebell.wire.v010 import types
from harebell.wire.v09.fields import decode_table, encode_table

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SCALARS = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40)
    | st.none()
    | st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC)).map(
        lambda moment: moment.replace(microsecond=0)
    )
    | st.decimals(-2000, 2000, places=3)
)
NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
TABLES = st.dictionaries(
    NAMES,
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=12,
    ),
    max_size=6,
)


def body(table: bytes) -> bytes:
    """A table or map without its size."""
    return table[4:]


@given(TABLES)
def test_a_table_is_the_same_after_a_walk_through_a_map(table: dict[str, object]) -> None:
    octets = body(encode_table(table))
    found = to_map(octets)
    assert types.read_map(found, 0, len(found)) == decode_table(encode_table(table))[0]
    assert to_table(found) == octets


@pytest.mark.parametrize(
    ("tag", "code", "octets"),
    [
        (b"t", 0x08, b"\1"),
        (b"b", 0x01, b"\xff"),
        (b"B", 0x02, b"\xff"),
        (b"s", 0x11, b"\xff\xfe"),
        (b"u", 0x12, b"\xff\xfe"),
        (b"I", 0x21, b"\xff\0\0\1"),
        (b"i", 0x22, b"\xff\0\0\1"),
        (b"l", 0x31, b"\xff" * 8),
        (b"f", 0x23, b"\x3f\x80\0\0"),
        (b"d", 0x33, b"\x3f\xf0\0\0\0\0\0\0"),
        (b"D", 0xC8, b"\2\0\0\1\x41"),
        (b"T", 0x38, bytes(7) + b"\1"),
        (b"V", 0xF0, b""),
    ],
)
def test_a_number_keeps_its_width_and_sign_both_ways(tag: bytes, code: int, octets: bytes) -> None:
    table = b"\1k" + tag + octets
    found = to_map(table)
    assert found == b"\0\0\0\1\1k" + bytes((code,)) + octets
    assert to_table(found) == table


@pytest.mark.parametrize(
    ("value", "there"),
    [
        (types.Typed(0x32, (2**64 - 1).to_bytes(8)), str(2**64 - 1)),
        (2**63, str(2**63)),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (Decimal("12345678901.5"), "12345678901.5"),
        (Decimal("1.5"), Decimal("1.5")),
        (types.Array(0x21, [1, 2]), [1, 2]),
        (types.Typed(0x84, b"caf\xe9"), "café"),
        (types.Typed(0x96, "é".encode("utf-16-be")), "é"),
        (types.Typed(0x27, "é".encode("utf-32-be")), "é"),
        (types.Typed(0x50, bytes(32)), bytes(32)),
        (types.Typed(0xF1, b""), True),
        (MOMENT, MOMENT),
    ],
)
def test_a_value_without_a_type_in_the_table_becomes_an_equal_one(
    value: object, there: object
) -> None:
    octets = body(types.write_map({"k": value}))
    table = to_table(octets)
    assert decode_table(len(table).to_bytes(4) + table)[0] == {"k": there}


def test_a_text_too_long_for_0_10_travels_as_octets() -> None:
    long = "x" * 70_000
    found = to_map(body(encode_table({"k": long})))
    assert types.read_map(found, 0, len(found)) == {"k": long.encode()}


def test_nesting_is_limited_both_ways() -> None:
    table: dict[str, object] = {}
    octets = b""
    for _ in range(TABLE_DEPTH + 1):
        octets = b"\1kF" + len(octets).to_bytes(4) + octets
        table = {"k": table}
    with pytest.raises(ValueError, match="deeper"):
        to_map(octets)
    nested = b"\0\0\0\0"
    for _ in range(TABLE_DEPTH + 1):
        nested = b"\0\0\0\1\1k\xa8" + len(nested).to_bytes(4) + nested
    with pytest.raises(ValueError, match="deeper"):
        to_table(nested)


@given(st.binary(max_size=60))
def test_whatever_the_octets_are_there_is_a_table_or_a_value_error(octets: bytes) -> None:
    for convert in (to_map, to_table):
        try:
            convert(octets)
        except (ValueError, IndexError):
            continue
