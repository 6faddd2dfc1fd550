"""Values of AMQP 1.0: every encoding of every type, what is refused, and round trips."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import DecodeError
from harebell.kernels.limits import COMPOUND_BYTES, NESTING, VOID_ARRAY_ELEMENTS
from harebell.wire.v1.decoding import CODES, decode
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.values import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

ENCODINGS: list[tuple[str, Any]] = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("5601", True),
    ("5600", False),
    ("50ff", UByte(255)),
    ("60ffff", UShort(65535)),
    ("70ffffffff", UInt(2**32 - 1)),
    ("5205", UInt(5)),
    ("43", UInt(0)),
    ("80ffffffffffffffff", ULong(2**64 - 1)),
    ("5305", ULong(5)),
    ("44", ULong(0)),
    ("5180", Byte(-128)),
    ("618000", Short(-32768)),
    ("7180000000", Int(-(2**31))),
    ("54ff", Int(-1)),
    ("818000000000000000", -(2**63)),
    ("55ff", -1),
    ("723f000000", Float(0.5)),
    ("823fe0000000000000", 0.5),
    ("7401020304", Decimal32(b"\1\2\3\4")),
    ("840102030405060708", Decimal64(b"\1\2\3\4\5\6\7\x08")),
    ("94" + "01" * 16, Decimal128(b"\1" * 16)),
    ("730001f600", Char("\U0001f600")),
    ("83ffffffffffffffff", Timestamp(-1)),
    ("98" + "00" * 15 + "01", UUID(int=1)),
    ("a00161", b"a"),
    ("b00000000161", b"a"),
    ("a102c3a9", "é"),
    ("b100000002c3a9", "é"),
    ("a30161", Symbol("a")),
    ("b30000000161", Symbol("a")),
    ("45", []),
    ("c003024142", [True, False]),
    ("d000000006000000024142", [True, False]),
    ("c10502a1016141", {"a": True}),
    ("d10000000800000002a1016141", {"a": True}),
    ("e0050356010001", Array(0x56, [True, False, True])),
    ("f000000006000000015105", Array(0x51, [Byte(5)])),
    ("00532441", Described(ULong(0x24), True)),
    ("00a3016141", Described(Symbol("a"), True)),
]
"""The octets of a value, hexadecimal, and the value."""


@pytest.mark.rule("1.0#001", "1.0#004", "1.0#009")
@pytest.mark.parametrize(("octets", "value"), ENCODINGS)
def test_every_encoding_is_read_as_a_value_of_its_type(octets: str, value: Any) -> None:
    data = bytes.fromhex(octets)
    decoded, end = decode(b"\x40" + data + b"\x40", 1)
    assert (decoded, type(decoded), end) == (value, type(value), 1 + len(data))


def test_the_encodings_are_those_of_the_specification() -> None:
    assert {bytes.fromhex(octets)[0] for octets, _ in ENCODINGS} == CODES | {0}


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (None, "40"),
        (UInt(0), "43"),
        (UInt(255), "52ff"),
        (UInt(256), "7000000100"),
        (ULong(0), "44"),
        (ULong(255), "53ff"),
        (ULong(256), "800000000000000100"),
        (Int(127), "547f"),
        (Int(128), "7100000080"),
        (-128, "5580"),
        (-129, "81ffffffffffffff7f"),
        ("", "a100"),
        (b"", "a000"),
        ([], "45"),
        ([[]], "c0020145"),
        ({}, "c10100"),
        ((True,), "c0020141"),
        (Array(0xA3, [Symbol("a"), Symbol("bc")]), "e00702a30161026263"),
        (Array(0x43, [UInt(0), UInt(1)]), "e00a02700000000000000001"),
        (Array(0x45, [[], [1]]), "e01402d0000000040000000000000006000000015501"),
        (Array(0xC1), "e00200d1"),
        (Array(0x50, [UByte(1)], (Symbol("x"), ULong(3))), "e00a0100a301780053035001"),
        (bytearray(b"x"), "a00178"),
        (memoryview(b"x"), "a00178"),
    ],
)
def test_a_value_is_written_in_its_shortest_form(value: Any, octets: str) -> None:
    assert encode(value).hex() == octets


@pytest.mark.parametrize("size", [255, 256])
def test_lengths_of_more_than_an_octet_are_written_in_four(size: int) -> None:
    for value, short in ((b"x" * size, 0xA0), ("x" * size, 0xA1), (Symbol("x" * size), 0xA3)):
        octets = encode(value)
        assert octets[0] == short + (0x10 if size > 255 else 0)
        assert decode(octets) == (value, len(octets))


@pytest.mark.rule("1.0#002")
@pytest.mark.parametrize("count", [127, 128, 254, 255, 256, 300])
def test_sizes_and_counts_of_lists_and_maps_fit(count: int) -> None:
    for value in ([None] * count, dict.fromkeys(range(count), 1), Array(0x50, [UByte(1)] * count)):
        octets = encode(value)
        assert decode(octets) == (value, len(octets))


REFUSED = [
    ("", "a value without a constructor"),
    ("00", "a value without a constructor"),
    ("005324", "a value without a constructor"),
    ("3f", "unknown format code 0x3f"),
    ("46", "unknown format code 0x46"),
    ("a2", "unknown format code 0xa2"),
    ("ff", "unknown format code 0xff"),
    ("70000000", "a value of 4 octets, of which 3 are there"),
    ("a1", "a length that is cut off"),
    ("b1000000", "a length that is cut off"),
    ("a102c3", "a value of 3 octets, of which 2 are there"),
    ("b1ffffffff", "a value of 4294967299 octets, of which 4 are there"),
    ("a101ff", "a string that is not UTF-8"),
    ("a103eda080", "a string that is not UTF-8"),
    ("a30180", "a symbol that is not ASCII"),
    ("5602", "a boolean 0x02"),
    ("7300110000", "a char 0x110000, which is no Unicode character"),
    ("730000d800", "a char 0xd800, which is no Unicode character"),
    ("c000", "a list, map or array whose size leaves no room for its count"),
    ("d00000000300000000", "a list, map or array whose size leaves no room for its count"),
    ("c0020240", "a list of 2 values in 1 octets"),
    ("c0030140a1", "1 octets after the last value of a list"),
    ("c0020170", "a value of 4 octets, of which 0 are there"),
    ("c1020140", "a map of 1 values, which are no pairs"),
    ("c1020240", "a map of 2 values in 1 octets"),
    ("c103024540", "a map with a list, map or array as a key"),
    ("c105020045454040"[:14], "a map with a list, map or array as a key"),
    ("c1050441404140", "a map with two keys that are equal"),
    ("e00101", "an array without a constructor of its elements"),
    ("e0020146", "unknown format code 0x46"),
    ("e0020250", "an array of 2 values in 0 octets"),
    ("e003005001", "1 octets after the last value of an array"),
    ("e0024143", "an array of 65 values without octets, at most 64 may be"),
    ("f000000005ffffffff43", "an array of 4294967295 values without octets, at most 64 may be"),
    ("f000000005ffffffff50", "an array of 4294967295 values in 0 octets"),
    ("d000000004ffffffff", "a list of 4294967295 values in 0 octets"),
]


@pytest.mark.rule("1.0#001", "1.0#002", "1.0#003", "1.0#010", "1.0#011")
@pytest.mark.parametrize(("octets", "text"), REFUSED)
def test_malformed_values_are_refused_with_what_is_wrong(octets: str, text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(bytes.fromhex(octets))
    assert (caught.value.condition, caught.value.text) == ("amqp:decode-error", text)


@pytest.mark.parametrize("wrap", [lambda value: [value], lambda value: {"a": value}])
def test_values_may_be_nested_as_deeply_as_the_limit_says(wrap: Any) -> None:
    value: Any = None
    for _ in range(NESTING):
        value = wrap(value)
    octets = encode(value)
    assert decode(octets)[0] == value
    with pytest.raises(ValueError, match="nested deeper"):
        encode(wrap(value))
    with pytest.raises(DecodeError, match="nested deeper"):
        decode(b"\xd0" + (len(octets) + 4).to_bytes(4) + b"\0\0\0\1" + octets)


def test_an_empty_list_is_no_level_of_its_own() -> None:
    value: Any = []
    for _ in range(NESTING):
        value = [value]
    assert decode(encode(value)) == (value, len(encode(value)))


@pytest.mark.parametrize("octets", [b"\0" * 100, b"\0\x40" * 100 + b"\x40"])
def test_descriptors_count_as_nesting(octets: bytes) -> None:
    with pytest.raises(DecodeError, match="nested deeper"):
        decode(octets)


def test_a_list_is_decoded_up_to_its_longest_and_a_longer_one_is_not() -> None:
    count = COMPOUND_BYTES - 4
    octets = b"\xd0" + COMPOUND_BYTES.to_bytes(4) + count.to_bytes(4) + b"\x40" * count
    assert len(decode(octets)[0]) == count
    longer = b"\xd0" + (COMPOUND_BYTES + 1).to_bytes(4) + (count + 1).to_bytes(4)
    with pytest.raises(DecodeError, match=f"at most {COMPOUND_BYTES} may be"):
        decode(longer + b"\x40" * (count + 1))


def test_an_array_without_octets_may_have_as_many_values_as_the_limit_says() -> None:
    octets = b"\xe0\2" + bytes((VOID_ARRAY_ELEMENTS, 0x45))
    assert list(decode(octets)[0]) == [[]] * VOID_ARRAY_ELEMENTS


@pytest.mark.rule("1.0#011")
def test_the_pairs_of_a_map_keep_their_order() -> None:
    pairs = {"z": 1, "a": 2, UInt(5): 3, Symbol("m"): 4}
    assert list(decode(encode(pairs))[0]) == ["z", "a", 5, "m"]


@pytest.mark.parametrize(
    "value",
    [
        UByte(256), UShort(-1), UInt(2**32), ULong(2**64), Byte(128), Short(40_000), Int(2**31),
        2**63, Timestamp(2**63), Float(1e300), Char("ab"), Char("\ud800"), "\udc80", Symbol("é"),
        Decimal32(b"1"), Decimal64(b"1"), Decimal128(b"1"),
    ],
)  # fmt: skip
def test_a_value_out_of_the_range_of_its_type_cannot_be_written(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode([value])


@pytest.mark.parametrize("value", [object(), {1, 2}, Array(0x50, ["a"]), Array(0x50, [None])])
def test_what_has_no_type_cannot_be_written(value: Any) -> None:
    with pytest.raises(TypeError):
        encode(value)


def test_arrays_are_equal_if_type_and_values_are() -> None:
    assert Array(0xA1, ["a"]) == Array(0xB1, ["a"])
    assert Array(0xA1, ["a"]) != Array(0xA3, [Symbol("a")])
    assert Array(0xA1, ["a"]) == ["a"]
    assert Array(0xA1, ["a"]) != ["b"]
    assert Array(0xA1, ["a"], (ULong(1),)) != Array(0xA1, ["a"])


def _sized(kind: Any, bits: int, signed: bool = False) -> Any:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high).map(kind)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = st.one_of(
    st.none(), st.booleans(), st.binary(max_size=300), TEXT, st.uuids(),
    _sized(UByte, 8), _sized(UShort, 16), _sized(UInt, 32), _sized(ULong, 64),
    _sized(Byte, 8, signed=True), _sized(Short, 16, signed=True), _sized(Int, 32, signed=True),
    _sized(int, 64, signed=True), _sized(Timestamp, 64, signed=True),
    st.floats(allow_nan=False), st.floats(width=32, allow_nan=False).map(Float),
    st.characters(exclude_categories=["Cs"]).map(Char),
    st.text(st.characters(max_codepoint=127)).map(Symbol),
    st.binary(min_size=4, max_size=4).map(Decimal32),
)  # fmt: skip
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner),
        st.dictionaries(TEXT, inner),
        st.builds(Described, _sized(ULong, 64), inner),
        st.lists(_sized(UInt, 32)).map(lambda items: Array(0x70, items)),
        st.lists(TEXT).map(lambda items: Array(0xA1, items)),
        st.lists(st.lists(PLAIN)).map(lambda items: Array(0xC0, items)),
    ),
    max_leaves=20,
)


def typed(value: Any) -> Any:
    """A value with the types of all values in it."""
    if isinstance(value, Described):
        return Described, typed(value.descriptor), typed(value.value)
    if isinstance(value, dict):
        return dict, [(typed(key), typed(item)) for key, item in value.items()]
    if isinstance(value, Array):
        return Array, value.code, [typed(item) for item in value]
    if isinstance(value, list):
        return list, [typed(item) for item in value]
    return type(value), value


@given(VALUES)
def test_a_value_comes_back_with_its_type(value: Any) -> None:
    octets = encode(value)
    decoded, end = decode(octets)
    assert end == len(octets)
    assert typed(decoded) == typed(value)
