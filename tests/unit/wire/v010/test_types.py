"""The data types of AMQP 0-10: octets to values and back."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.limits import TABLE_DEPTH
from harebell.base.values import Typed
from harebell.wire.v010 import types
from harebell.wire.v010.types import Array, Malformed
from harebell.wire.v09.fields import Timestamp


def written(value: Any) -> bytes:
    return types.write_typed(value, "key")


def read(octets: bytes) -> Any:
    value, end = types.read_value(octets, octets[0], 1, len(octets))
    assert end == len(octets)
    return value


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (None, "f0"),
        (True, "0801"),
        (False, "0800"),
        (5, "2100000005"),
        (-1, "21ffffffff"),
        (2**31, "310000000080000000"),
        (-(2**63), "318000000000000000"),
        (2**63, "328000000000000000"),
        (0.5, "333fe0000000000000"),
        ("schön", "95000673 6368c3b66e"),
        (b"\0\1", "9000020001"),
        (Decimal("1.25"), "c8020000007d"),
        (Decimal("-3"), "c800fffffffd"),
        (Decimal(2**40), "d8000000010000000000"),
        (Decimal(-(2**63)), "d8008000000000000000"),
        (datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC), "38000000003b9aca00"),
        (UUID(int=1), "4800000000000000000000000000000001"),
        ([], "a90000000400000000"),
        ([None, True], "a90000000700000002f00801"),
        ({}, "a80000000400000000"),
        ({"a": 1}, "a80000000b000000010161 2100000001"),
        (Array(0x02, [1, 2]), "aa00000007 02 00000002 0102"),
        (Array(0x04, ["»"]), "aa00000006 04 00000001 bb"),
        (Array(0x27, ["»"]), "aa00000009 27 00000001 000000bb"),
        (Array(0xD8, [Decimal("0.1")]), "aa0000000e d8 00000001 010000000000000001"),
    ],
)
def test_every_type_stands_as_the_document_draws_it(value: Any, octets: str) -> None:
    raw = bytes.fromhex(octets)
    assert written(value) == raw
    assert read(raw) == value


@pytest.mark.parametrize(
    ("octets", "value"),
    [
        ("01ff", -1),
        ("02ff", 255),
        ("11ffff", -1),
        ("12ffff", 65535),
        ("22ffffffff", 2**32 - 1),
        ("233f000000", 0.5),
        ("0441", "A"),
        ("2700010000", "\U00010000"),
        ("8403616263", "abc"),
        ("8501c3", Typed(0x85, b"\xc3")),
        ("860200e9", "é"),
        ("950002c3b6", "ö"),
        ("1000ff", b"\0\xff"),
        ("c00102030405", b"\1\2\3\4\5"),
        ("8002abcd", b"\xab\xcd"),
        ("f1", True),
        ("0eaa", Typed(0x0E, b"\xaa")),
        ("49" + "ab" * 16, Typed(0x49, b"\xab" * 16)),
        ("9900021234", Typed(0x99, b"\x12\x34")),
        ("a800000000", {}),
        ("aa00000000", []),
        ("38ffffffffffffffff", Timestamp(2**64 - 1)),
    ],
)
def test_values_of_other_writers_are_read_or_kept_as_octets(octets: str, value: Any) -> None:
    assert read(bytes.fromhex(octets)) == value


def test_a_value_of_an_unknown_type_is_written_as_it_came() -> None:
    raw = bytes.fromhex("9900021234")
    assert written(read(raw)) == raw


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("e0", "unknown type code 0xe0"),
        ("b000", "unknown type code 0xb0"),
        ("2100", "4 octets are announced, 1 are there"),
        ("95ffff61", "65535 octets are announced, 1 are there"),
        ("a0ffffffff", "4294967295 octets are announced, 0 are there"),
        ("a9 00000004 ffffffff", "fewer values than it says"),
        ("a8 00000004 00000001", "a name runs over the end of its map"),
        ("a8 00000005 00000001 05", "a name runs over the end of its map"),
        ("a8 00000007 00000001 016195", "'a': 2 octets are announced, 0 are there"),
        ("a9 00000005 00000000 00", "1 octets after the last value of a list"),
        ("aa 00000005 f0 ffffffff", "an array of values that take no octets"),
        ("aa 00000005 21 ffffffff", "4 octets are announced, 0 are there"),
        ("aa 00000003 210000", "4 octets are announced, 2 are there"),
    ],
)
def test_octets_that_are_no_value_are_refused_with_the_reason(octets: str, why: str) -> None:
    raw = bytes.fromhex(octets)
    with pytest.raises(Malformed, match=why.replace("(", r"\(")):
        read(raw)


def test_nothing_is_nested_deeper_than_the_limit() -> None:
    deep = b"\xa9\0\0\0\4\0\0\0\0"
    for _ in range(TABLE_DEPTH + 1):
        deep = b"\xa9" + (len(deep) + 4).to_bytes(4) + b"\0\0\0\1" + deep
    with pytest.raises(Malformed, match=f"nested deeper than {TABLE_DEPTH}"):
        read(deep)
    value: list[Any] = []
    for _ in range(TABLE_DEPTH + 1):
        value = [value]
    with pytest.raises(ValueError, match=f"nested deeper than {TABLE_DEPTH}"):
        written(value)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"k": object()}, "'k': a map cannot hold object"),
        ({"k": 2**64}, "'k': 18446744073709551616 does not fit its type"),
        ({"k" * 256: 1}, "256 octets, at most 255"),
        ({1: 1}, "must be a str, not int"),
        ({"k": datetime(2020, 1, 1)}, "'k': a datetime without a time zone"),
        ({"k": Decimal("NaN")}, "'k': NaN has no decimal form"),
        ({"k": Decimal(2**63)}, "more digits than fit"),
        ({"k": Decimal(-(2**63) - 1)}, "more digits than fit"),
        ({"k": Array(0x12, ["x"])}, "does not fit|cannot write"),
        ({"k": Array(0xC8, [Decimal(2**31)])}, "2147483648 does not fit into 32 bits"),
    ],
)
def test_a_value_that_cannot_be_written_is_named(value: Any, why: str) -> None:
    with pytest.raises((ValueError, TypeError), match=why):
        written(value)


def test_a_text_too_long_for_any_text_type_keeps_its_octets() -> None:
    assert read(written("x" * 65536)) == b"x" * 65536


plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.binary(max_size=20)
    | st.uuids()
    | st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1)).map(
        lambda at: at.replace(tzinfo=UTC, microsecond=0)
    )
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-1e9, max_value=1e9)
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcé", max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_any_value_survives_being_written_and_read(value: Any) -> None:
    assert read(written(value)) == value


@settings(max_examples=300, deadline=None)
@given(st.binary(min_size=1, max_size=60))
def test_any_octets_are_refused_or_survive_being_read_and_written(raw: bytes) -> None:
    try:
        value, _ = types.read_value(raw, raw[0], 1, len(raw))
    except Malformed:
        return
    assert repr(read(written(value))) == repr(value)


WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Octets of a value by the first digit of its type's code (AMQP 0-10 3.3)."""


@pytest.mark.parametrize("code", range(0x80))
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_an_array_of_fixed_width_survives_being_read_and_written(
    code: int, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 3))
    width = count * WIDTHS[code >> 4]
    items = data.draw(st.binary(min_size=width, max_size=width))
    raw = bytes((code,)) + count.to_bytes(4) + items
    try:
        value = types.read_array(raw, 0, len(raw))
    except Malformed:
        assert code == 0x27, "not every number is a character of Unicode"
        return
    assert repr(read(written(value))) == repr(value)
