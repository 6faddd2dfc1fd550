"""Field tables of transitional 0-10: each of its types, letters, and what a peer may be sent."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.values import Long
from harebell.wire.v09.fields import LongString, Timestamp, decode_table, encode_table
from harebell.wire.v09.typed_fields import FieldDialect, decode_typed, encode_typed
from tests.unit.wire.v09.tables import TABLES

NUMBER = UUID("00112233-4455-6677-8899-aabbccddeeff")
DAY = datetime(2007, 8, 10, tzinfo=UTC)

TYPES: dict[str, tuple[str, Any]] = {
    "octet": ("00 ab", b"\xab"),
    "signed byte": ("01 ff", -1),
    "unsigned byte": ("02 ff", 255),
    "char": ("04 a4", "\u20ac"),
    "boolean": ("08 01", True),
    "two octets": ("10 abcd", b"\xab\xcd"),
    "signed short": ("11 fffe", -2),
    "unsigned short": ("12 fffe", 65534),
    "four octets": ("20 00010203", b"\0\1\2\3"),
    "signed int": ("21 fffffffd", -3),
    "unsigned int": ("22 fffffffd", 4294967293),
    "float": ("23 3fc00000", 1.5),
    "utf-32 char": ("27 0001f600", "\U0001f600"),
    "eight octets": ("30 0001020304050607", bytes(range(8))),
    "signed long": ("31 fffffffffffffffc", -4),
    "unsigned long": ("32 fffffffffffffffc", 2**64 - 4),
    "double": ("33 3ff8000000000000", 1.5),
    "datetime": ("38 0000000046bbaa80", DAY),
    "sixteen octets": ("40" + bytes(range(16)).hex(), bytes(range(16))),
    "uuid": ("48" + NUMBER.hex, NUMBER),
    "32 octets": ("50" + "07" * 32, b"\x07" * 32),
    "64 octets": ("60" + "07" * 64, b"\x07" * 64),
    "128 octets": ("70" + "07" * 128, b"\x07" * 128),
    "short binary": ("80 02 fffe", b"\xff\xfe"),
    "short latin": ("84 02 61a4", "a\u20ac"),
    "short utf-8": ("85 03 e282ac", "\u20ac"),
    "short utf-16": ("86 02 20ac", "\u20ac"),
    "short utf-32": ("87 04 000020ac", "\u20ac"),
    "binary": ("90 0002 fffe", b"\xff\xfe"),
    "latin": ("94 0002 61a4", "a\u20ac"),
    "utf-8": ("95 0003 e282ac", "\u20ac"),
    "utf-16": ("96 0002 20ac", "\u20ac"),
    "utf-32": ("97 0004 000020ac", "\u20ac"),
    "long binary": ("a0 00000002 fffe", b"\xff\xfe"),
    "long latin": ("a4 00000002 61a4", "a\u20ac"),
    "long utf-8": ("a5 00000003 e282ac", "\u20ac"),
    "long utf-16": ("a6 00000002 20ac", "\u20ac"),
    "long utf-32": ("a7 00000004 000020ac", "\u20ac"),
    "table": ("a8 00000004 0161 0201", {"a": 1}),
    "sequence": ("a9 00000005 0201 850161", [1, "a"]),
    "array": ("aa 00000007 02 00000002 0102", [1, 2]),
    "array of texts": ("aa 00000009 85 00000002 0161 0162", ["a", "b"]),
    "array of nothing": ("aa 00000005 f0 00000003", [None, None, None]),
    "five octets": ("c0 0001020304", bytes(range(5))),
    "decimal": ("c8 02 ffffff85", Decimal("-1.23")),
    "nine octets": ("d0 000102030405060708", bytes(range(9))),
    "long decimal": ("d8 02 ffffffffffffff85", Decimal("-1.23")),
    "void": ("f0", None),
}
LETTERED = {
    "long string": ("53 00000001 61", "a"),
    "integer": ("49 ffffffff", -1),
    "boolean": ("74 01", True),
    "nested": ("46 00000003 0161 56", {"a": None}),
    "list": ("41 00000004 74 01 74 00", [True, False]),
    "octets": ("78 00000001 ff", b"\xff"),
}


def table_of(value: str) -> bytes:
    """A table with the one entry `k`."""
    entry = b"\x01k" + bytes.fromhex(value)
    return len(entry).to_bytes(4) + entry


@pytest.mark.parametrize(("octets", "value"), TYPES.values(), ids=TYPES)
def test_each_type_of_the_document_is_read(octets: str, value: Any):
    data = table_of(octets)
    table, at = decode_typed(data)
    assert (table, at) == ({"k": value}, len(data))
    assert type(table["k"]) is type(value)
    assert table.dialect is FieldDialect.TYPED


@pytest.mark.parametrize(("octets", "value"), LETTERED.values(), ids=LETTERED)
def test_the_letters_of_0_9_are_read_too(octets: str, value: Any):
    table, _ = decode_typed(table_of(octets))
    assert table == {"k": value}
    plain = octets[:2] in ("53", "49")
    assert table.dialect is (FieldDialect.PLAIN if plain else FieldDialect.LETTERS)


@given(TABLES)
def test_whatever_0_9_1_writes_is_read_alike(table: dict[str, Any]):
    octets = encode_table(table)
    assert decode_typed(octets) == decode_table(octets)


@given(TABLES)
def test_values_written_in_the_types_of_the_document_come_back(table: dict[str, Any]):
    octets = encode_typed(table, FieldDialect.TYPED)
    assert decode_typed(octets)[0] == decode_table(encode_table(table))[0]


@given(TABLES)
def test_a_plain_peer_is_sent_nothing_but_texts_and_numbers(table: dict[str, Any]):
    decoded, _ = decode_typed(encode_typed(table))
    assert decoded.dialect is FieldDialect.PLAIN
    assert set(decoded) == set(table)
    assert all(type(value) in (str, int, LongString) for value in decoded.values())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, ""),
        (2**31, "2147483648"),
        (1.5, "1.5"),
        (Decimal("1.20"), "1.20"),
        (DAY, "2007-08-10T00:00:00+00:00"),
        (Timestamp(2**60), str(2**60)),
        ([1, {"a": True, "t": DAY}], '[1, {"a": true, "t": "2007-08-10T00:00:00+00:00"}]'),
        (NUMBER, str(NUMBER)),
        (b"abc", "abc"),
    ],
)
def test_a_plain_peer_reads_other_values_as_text(value: Any, text: str):
    assert decode_typed(encode_typed({"k": value}))[0] == {"k": text}


def test_invalid_utf_8_inside_a_table_is_marked_and_can_be_sent_again():
    name = b"d\xb2p".decode(errors="surrogateescape")
    found, _ = decode_typed(encode_typed({"k": [{name: {name: b"\xff"}}]}))
    assert found == {"k": '[{"d\ufffdp": {"d\ufffdp": "\ufffd"}}]'}
    assert decode_typed(encode_typed(found))[0] == found


@pytest.mark.parametrize("value", [7, Long(7), "text", b"\xff"])
def test_a_plain_peer_reads_texts_and_small_numbers_as_they_are(value: Any):
    assert decode_typed(encode_typed({"k": value}))[0] == {"k": value}


def test_letters_carry_what_has_no_letter_as_text():
    table = {"u": NUMBER, "n": 2**63, "d": Decimal(2**40), "l": [NUMBER]}
    decoded, _ = decode_table(encode_typed(table, FieldDialect.LETTERS))
    texts = {"u": str(NUMBER), "n": str(2**63), "d": str(2**40), "l": [str(NUMBER)]}
    assert decoded == texts


@pytest.mark.parametrize("value", [NUMBER, 2**63, Decimal(2**40), "x" * 300, b"x" * 70_000])
def test_types_that_only_the_document_has_are_written_as_such(value: Any):
    table, _ = decode_typed(encode_typed({"k": value}, FieldDialect.TYPED))
    assert table == {"k": value}


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, Decimal(2**70), Decimal("Infinity")])
def test_numbers_that_do_not_fit_are_refused_by_name(value: Any):
    with pytest.raises(ValueError, match="'k'"):
        encode_typed({"k": value}, FieldDialect.TYPED)


def test_a_value_that_a_table_cannot_have_is_refused_by_name():
    with pytest.raises(TypeError, match="'k'"):
        encode_typed({"k": object()}, FieldDialect.TYPED)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        ("03 00", "unknown type octet 0x03"),
        ("83 00", "unknown type octet"),
        ("b0", "unknown type octet"),
        ("22 0000", "runs over"),
        ("95 0005 61", "runs over"),
        ("a8 00000003 0561", "runs over"),
        ("aa 00000004 02000000", "without type and count"),
        ("aa 00000005 02 ffffffff", "an array of 4294967295 values"),
        ("aa 00000005 f0 ffffffff", "an array of 4294967295 values"),
        ("aa 00000007 02 00000001 0102", "garbage"),
    ],
)
def test_malformed_values_are_refused_with_their_name(octets: str, why: str):
    with pytest.raises(ProtocolError, match=why) as caught:
        decode_typed(table_of(octets))
    assert caught.value.code == 502
    assert "'k'" in caught.value.text


@pytest.mark.parametrize("data", [b"", b"\0\0\0", b"\0\0\0\x05a"])
def test_a_table_that_is_cut_off_is_refused(data: bytes):
    with pytest.raises(ProtocolError, match="malformed field table"):
        decode_typed(data)


@pytest.mark.parametrize("kind", ["a9", "a8", "aa"])
def test_nesting_is_limited(kind: str):
    value = b"\xf0"
    for _ in range(40):
        if kind == "a8":
            value = b"\x01n" + value
        elif kind == "aa":
            value = value[:1] + (1).to_bytes(4) + value[1:]
        value = bytes.fromhex(kind) + len(value).to_bytes(4) + value
    with pytest.raises(ProtocolError, match="nested deeper"):
        decode_typed(table_of(value.hex()))


@given(st.binary(max_size=200))
def test_any_octets_are_read_or_refused(data: bytes):
    try:
        table, _ = decode_typed(len(data).to_bytes(4) + data)
    except ProtocolError:
        return
    octets = encode_typed(table, FieldDialect.TYPED)
    assert decode_typed(octets)[0].keys() == table.keys()
