"""Field tables: every type octet both ways, every way to be malformed, and arbitrary octets."""

from __future__ import annotations

import struct
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.limits import TABLE_DEPTH
from harebell.wire.v09.fields import LongString, Timestamp, decode_table, encode_table
from tests.unit.wire.v09.attempt import attempt
from tests.unit.wire.v09.tables import TABLES, nested, sized


def one(value: bytes) -> bytes:
    """An encoded table with the one key `k`."""
    return sized(b"\x01k" + value)


def steady(value: Any) -> str:
    """A test's id without a memory address in it: every worker has to find the same."""
    shown = repr(value)
    return type(value).__name__ if " at 0x" in shown else shown


def read_one(value: bytes) -> Any:
    table, offset = decode_table(one(value))
    assert offset == len(one(value))
    assert list(table) == ["k"]
    return table["k"]


READ = [
    (b"t\x00", False),
    (b"t\x01", True),
    (b"t\x02", True),
    (b"b\xff", -1),
    (b"B\xff", 255),
    (b"s\xff\xfe", -2),
    (b"u\xff\xfe", 65534),
    (b"I\xff\xff\xff\xff", -1),
    (b"i\xff\xff\xff\xff", 2**32 - 1),
    (b"l" + b"\xff" * 8, -1),
    (b"L" + b"\xff" * 8, -1),
    (b"f" + struct.pack(">f", 1.5), 1.5),
    (b"d" + struct.pack(">d", 0.1), 0.1),
    (b"D\x02\x00\x00\x01\x3a", Decimal("3.14")),
    (b"D\x00\xff\xff\xff\xff", Decimal(-1)),
    (b"S" + sized("grün".encode()), "grün"),
    (b"S" + sized(b"\xff\xfe"), LongString(b"\xff\xfe")),
    (b"x" + sized(b"abc"), b"abc"),
    (b"T" + bytes(8), datetime(1970, 1, 1, tzinfo=UTC)),
    (b"T" + struct.pack(">Q", 253_402_300_799), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    (b"T" + struct.pack(">Q", 1_700_000_000_000), Timestamp(1_700_000_000_000)),
    (b"T" + b"\xff" * 8, Timestamp(2**64 - 1)),
    (b"V", None),
    (b"A" + sized(b""), []),
    (b"A" + sized(b"t\x01I\x00\x00\x00\x07V"), [True, 7, None]),
    (b"F" + sized(b""), {}),
    (b"F" + sized(b"\x01at\x01\x01bV"), {"a": True, "b": None}),
]


@pytest.mark.parametrize(("octets", "value"), READ, ids=[repr(octets[:6]) for octets, _ in READ])
def test_every_type_octet_is_read_as_its_python_type(octets: bytes, value: Any):
    found = read_one(octets)
    assert found == value
    assert type(found) is type(value)


ONE_ENCODING = [
    octets
    for octets, _ in READ
    if octets[:1] in (b"t", b"I", b"d", b"D", b"S", b"x", b"T", b"V", b"A", b"F")
    and octets != b"t\x02"
]


@pytest.mark.parametrize("octets", ONE_ENCODING, ids=repr)
def test_types_with_one_encoding_are_written_as_they_were_read(octets: bytes):
    assert encode_table({"k": read_one(octets)}) == one(octets)


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (2**31 - 1, b"I\x7f\xff\xff\xff"),
        (-(2**31), b"I\x80\x00\x00\x00"),
        (2**31, b"l\x00\x00\x00\x00\x80\x00\x00\x00"),
        (-(2**63), b"l\x80" + bytes(7)),
        (IntEnum("Level", {"HIGH": 9}).HIGH, b"I\x00\x00\x00\x09"),
        (bytearray(b"ab"), b"x" + sized(b"ab")),
        (memoryview(b"ab"), b"x" + sized(b"ab")),
        ((1, "a"), b"A" + sized(b"I\x00\x00\x00\x01S" + sized(b"a"))),
        (OrderedDict(a=None), b"F" + sized(b"\x01aV")),
        (MappingProxyType({"a": None}), b"F" + sized(b"\x01aV")),
        (Decimal("1E+3"), b"D\x00\x00\x00\x03\xe8"),
        (Decimal("-0.5"), b"D\x01\xff\xff\xff\xfb"),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), b"T" + bytes(8)),
        (datetime(1970, 1, 1, 0, 0, 1, 999_999, tzinfo=UTC), b"T" + bytes(7) + b"\x01"),
        (Timestamp(5), b"T" + bytes(7) + b"\x05"),
    ],
    ids=steady,
)
def test_python_values_are_written_with_the_type_octet_that_fits(value: Any, octets: bytes):
    assert encode_table({"k": value}) == one(octets)


def test_a_boolean_stays_a_boolean_and_never_becomes_a_number():
    table, _ = decode_table(encode_table({"yes": True, "one": 1}))
    assert table["yes"] is True
    assert type(table["one"]) is int


@given(TABLES)
def test_a_table_survives_the_round_trip(table: dict[str, Any]):
    octets = encode_table(table)
    again, offset = decode_table(octets)
    assert again == table
    assert offset == len(octets)
    assert encode_table(again) == octets


@given(st.floats())
def test_a_double_keeps_its_bits_even_when_it_is_no_number(value: float):
    octets = one(b"d" + struct.pack(">d", value))
    assert encode_table(decode_table(octets)[0]) == octets


@given(TABLES, st.binary(max_size=9), st.binary(max_size=9))
def test_a_table_is_read_from_the_middle_of_other_octets(
    table: dict[str, Any], before: bytes, after: bytes
):
    octets = encode_table(table)
    assert decode_table(before + octets + after, len(before)) == (
        table,
        len(before) + len(octets),
    )


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_kind_of_buffer_can_be_read(kind: type):
    assert decode_table(kind(one(b"S" + sized(b"v"))))[0] == {"k": "v"}


def test_of_equal_names_the_last_one_counts():
    assert decode_table(sized(b"\x01kt\x00\x01kV\x01kt\x01"))[0] == {"k": True}


def test_an_empty_name_is_a_name():
    assert decode_table(sized(b"\x00V"))[0] == {"": None}


def test_a_name_that_is_no_utf8_keeps_its_octets():
    octets = sized(b"\x02\xff\xfeV")
    table, _ = decode_table(octets)
    assert encode_table(table) == octets


# --- malformed input ----------------------------------------------------------------------------

MALFORMED = [
    (b"", "its size is cut off"),
    (b"\x00\x00\x00", "its size is cut off"),
    (b"\x00\x00\x00\x01", "1 octets are announced, 0 are there"),
    (b"\xff\xff\xff\xff" + b"\x01kV", "4294967295 octets are announced, 3 are there"),
    (sized(b"\x01"), "a name runs over the end of its table"),
    (sized(b"\x05ab"), "a name runs over the end of its table"),
    (sized(b"\x01k"), "a name runs over the end of its table"),
    (sized(b"\x01kI\x00"), "'k': a value runs over the end of its table"),
    (sized(b"\x01kS\x00\x00"), "'k': a value runs over the end of its table"),
    (sized(b"\x01kS\x00\x00\x00\x05ab"), "'k': a value runs over the end of its table"),
    (sized(b"\x01kx\xff\xff\xff\xffab"), "'k': a value runs over the end of its table"),
    (sized(b"\x01kD\x00\x00\x00\x00"), "'k': a value runs over the end of its table"),
    (sized(b"\x01kU\x00\x00"), "'k': unknown type octet 0x55 ('U')"),
    (sized(b"\x01k\xff"), "'k': unknown type octet 0xff ('\\xff')"),
    (one(b"A" + sized(b"I\x00")), "'k': a value runs over the end of its table"),
    (one(b"F" + sized(b"\x02inZ")), "'k': 'in': unknown type octet 0x5a ('Z')"),
]


@pytest.mark.parametrize(("octets", "why"), MALFORMED, ids=[why for _, why in MALFORMED])
def test_a_malformed_table_is_a_syntax_error_that_says_where(octets: bytes, why: str):
    with pytest.raises(ProtocolError) as caught:
        decode_table(octets)
    assert caught.value.code == 502
    assert caught.value.text == f"malformed field table: {why}"


@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_nesting_is_read_up_to_the_limit_and_no_deeper(tag: bytes):
    deepest, _ = decode_table(nested(TABLE_DEPTH, tag))
    levels = 1
    inner: Any = deepest.get("k")
    while inner:
        levels += 1
        inner = inner["k"] if isinstance(inner, dict) else inner[0]
    assert levels == TABLE_DEPTH - 1  # the innermost level is empty
    with pytest.raises(ProtocolError, match=f"nested deeper than {TABLE_DEPTH}") as caught:
        decode_table(nested(TABLE_DEPTH + 1, tag))
    assert caught.value.code == 502


@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_absurd_nesting_is_refused_without_exhausting_the_stack(tag: bytes):
    with pytest.raises(ProtocolError, match="nested deeper"):
        decode_table(nested(3_000, tag))


@given(st.binary(max_size=200))
@example(sized(b"\x01kD\xff\x80\x00\x00\x00"))
def test_arbitrary_octets_are_read_or_refused_with_502(octets: bytes):
    for data in (octets, sized(octets)):
        found = attempt(decode_table, data)
        if isinstance(found, ProtocolError):
            assert found.code == 502
        else:
            assert isinstance(found[0], dict)
            assert found[1] <= len(data)


@given(TABLES, st.data())
def test_a_damaged_table_is_read_or_refused_with_502(table: dict[str, Any], data: st.DataObject):
    octets = bytearray(encode_table(table))
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    found = attempt(decode_table, octets)
    if isinstance(found, ProtocolError):
        assert found.code == 502
    else:
        # Whatever could be read can be written and read again.
        assert decode_table(encode_table(found[0]))[1] > 0


@given(TABLES, st.data())
def test_a_cut_table_is_refused(table: dict[str, Any], data: st.DataObject):
    octets = encode_table(table)
    with pytest.raises(ProtocolError) as caught:
        decode_table(octets[: data.draw(st.integers(0, len(octets) - 1))])
    assert caught.value.code == 502


# --- what cannot be written ---------------------------------------------------------------------


@pytest.mark.parametrize("value", [object(), {1, 2}, 1j, timedelta(1), range(3)], ids=steady)
def test_a_value_of_a_foreign_type_is_refused_by_its_key(value: Any):
    with pytest.raises(TypeError, match=r"'colour'.*cannot hold " + type(value).__name__):
        encode_table({"colour": value})


def test_the_key_is_named_for_values_inside_tables_and_arrays():
    with pytest.raises(TypeError, match="'inner'"):
        encode_table({"outer": {"inner": object()}})
    with pytest.raises(TypeError, match="'list'"):
        encode_table({"list": [1, [object()]]})


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30])
def test_an_integer_beyond_64_bits_is_refused_by_its_key(value: int):
    with pytest.raises(ValueError, match=f"'count': {value} does not fit into 64 bits"):
        encode_table({"count": value})


@pytest.mark.parametrize(
    "value",
    [
        Decimal("NaN"),
        Decimal("-Infinity"),
        Decimal(2**31),
        Decimal(-(2**31) - 1),
        Decimal("1E-256"),
        Decimal("1E+1000000"),
        Decimal("1" * 300),
        Decimal("0.12345678901"),
    ],
    ids=str,
)
def test_a_decimal_beyond_32_bits_or_255_places_is_refused_by_its_key(value: Decimal):
    with pytest.raises(ValueError, match="'price'"):
        encode_table({"price": value})


def test_a_datetime_without_a_zone_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"'when'.*datetime\.now\(timezone\.utc\)"):
        encode_table({"when": datetime(2020, 1, 1)})


@pytest.mark.parametrize(
    "value", [datetime(1969, 12, 31, tzinfo=UTC), Timestamp(-1), Timestamp(2**64)], ids=repr
)
def test_a_time_that_the_wire_cannot_hold_is_refused_by_its_key(value: Any):
    with pytest.raises(ValueError, match="'when'"):
        encode_table({"when": value})


def test_a_key_of_more_than_255_octets_is_refused():
    assert decode_table(encode_table({"ü" * 127: 1}))[0] == {"ü" * 127: 1}
    with pytest.raises(ValueError, match="256 octets long, at most 255"):
        encode_table({"ü" * 128: 1})


def test_a_key_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match="the key 5 "):
        encode_table({5: 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("table", [{"k": "\ud800"}, {"\ud800": 1}])
def test_text_that_utf8_cannot_express_is_refused(table: dict[str, Any]):
    with pytest.raises(ValueError, match="characters that UTF-8 cannot express"):
        encode_table(table)


def test_something_else_than_a_mapping_is_no_table():
    with pytest.raises(TypeError, match="must be a mapping, not list"):
        encode_table([("a", 1)])  # type: ignore[arg-type]


def test_a_table_within_itself_is_refused_as_too_deep():
    table: dict[str, Any] = {}
    table["me"] = table
    with pytest.raises(ValueError, match=rf"'me': .* nested deeper than {TABLE_DEPTH}"):
        encode_table(table)
    array: list[Any] = []
    array.append(array)
    with pytest.raises(ValueError, match=r"'list': .* nested deeper"):
        encode_table({"list": array})


def test_values_that_may_be_written_may_be_read():
    value: Any = 1
    for _ in range(TABLE_DEPTH - 1):
        value = [value]
    octets = encode_table({"k": value})
    assert decode_table(octets)[0] == {"k": value}
    with pytest.raises(ValueError, match="nested deeper"):
        encode_table({"k": [value]})
