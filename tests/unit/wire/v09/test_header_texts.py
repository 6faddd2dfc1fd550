"""Headers as text: every type of a field table has one, and it is the documented one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from harebell.wire.v09.fields import LongString, Timestamp, encode_table
from harebell.wire.v09.header_texts import count_of, headers_of

NOON = datetime(2013, 1, 1, 12, 0, 0, tzinfo=UTC)


def table(**headers: Any) -> bytes:
    return encode_table(headers)[4:]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("träge", "träge"),
        (LongString(b"\xff\xfe"), "base64://4="),
        (b"\x00\x01", "base64:AAE="),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (2**63 - 1, "9223372036854775807"),
        (True, "true"),
        (False, "false"),
        (0.1, "0.1"),
        (float("inf"), "inf"),
        (Decimal("12.50"), "12.50"),
        (Decimal("-3"), "-3"),
        (NOON, "2013-01-01T12:00:00Z"),
        (Timestamp(253_402_300_800), "253402300800"),
        (["a", 1, None, True], '["a",1,null,true]'),
        ({"b": {"c": 2.5}}, '{"b":{"c":2.5}}'),
        ([NOON, Decimal("1.5"), b"\x00", float("nan")],
         '["2013-01-01T12:00:00Z","1.5","base64:AA==","nan"]'),
        ([], "[]"),
    ],
)  # fmt: skip
def test_every_type_has_a_text(value: Any, text: str) -> None:
    assert headers_of(table(h=value)) == [(b"h", text.encode())]


def test_a_void_header_is_null() -> None:
    assert headers_of(table(h=None)) == [(b"h", None)]


def test_the_last_of_equal_names_counts() -> None:
    twice = table(h="first") + table(h="second")
    assert headers_of(twice) == [(b"h", b"second")]


def test_a_name_that_is_no_utf8_is_shown_in_base64() -> None:
    assert headers_of(b"\x02\xff\xfet\x01") == [(b"base64://4=", b"true")]


def test_the_delivery_count_is_the_header_of_the_broker() -> None:
    assert count_of(table(**{"x-delivery-count": 3}), False) == 3


@pytest.mark.parametrize("value", ["three", True, None, 1.5])
def test_a_count_that_is_no_number_falls_back_to_the_flag(value: Any) -> None:
    headers = table(**{"x-delivery-count": value})
    assert (count_of(headers, False), count_of(headers, True)) == (0, 1)


def test_a_count_beyond_the_column_is_clamped() -> None:
    assert count_of(table(**{"x-delivery-count": 2**40}), False) == 2**31 - 1
    assert count_of(table(**{"x-delivery-count": -5}), False) == 0
