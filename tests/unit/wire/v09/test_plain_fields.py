"""Tables of five types: everything fits, nothing else is written, and text stays readable."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from hypothesis import given

from harebell.wire.v09.fields import LongString, decode_table, encode_table
from harebell.wire.v09.plain_fields import encode_plain, is_plain, made_plain
from tests.unit.wire.v09.tables import TABLES


def test_the_five_types_stay_as_they_are() -> None:
    table = {
        "S": "text",
        "I": -5,
        "D": Decimal("1.25"),
        "T": datetime(2026, 1, 1, tzinfo=UTC),
        "F": {"S": "inner"},
    }
    assert encode_plain(table) == encode_table(table)
    assert is_plain(encode_table(table))


def test_other_types_are_written_so_that_they_can_be_read_as_text_or_numbers() -> None:
    table = {"t": True, "l": 2**40, "d": 1.5, "x": b"\xff", "V": None, "A": [1, "two"]}
    assert not is_plain(encode_table(table))
    assert decode_table(encode_plain(table))[0] == {
        "t": 1,
        "l": "1099511627776",
        "d": "1.5",
        "x": LongString(b"\xff"),
        "V": "",
        "A": {"0": 1, "1": "two"},
    }


def test_a_value_of_another_type_deep_inside_is_found() -> None:
    assert not is_plain(encode_table({"a": {"b": {"c": True}}}))
    assert is_plain(encode_table({"a": {"b": {"c": "true"}}}))


@given(TABLES)
def test_any_table_becomes_one_of_five_types(table: dict[str, object]) -> None:
    octets = encode_table(table)
    plain, end = made_plain(octets)
    assert end == len(octets)
    assert is_plain(plain)
    assert list(decode_table(plain)[0]) == list(table)
