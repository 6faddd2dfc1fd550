"""Values of AMQP as JSON and back: all of them have JSON, and what is kept comes back."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.limits import FRAME_MAX_BYTES, TABLE_DEPTH
from harebell.base.values import Typed
from harebell.wire import json_values
from harebell.wire.json_values import given_table, kept, kept_table, shown, shown_table
from harebell.wire.v09.fields import LongString, Timestamp, decode_table, encode_table

NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)
ODD_NAME = b"M\xfcn".decode(errors="surrogateescape")

VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=("Cs",)), max_size=9)
    | st.binary(max_size=9)
    | st.binary(max_size=9).map(LongString).filter(lambda octets: not json_values._is_utf8(octets))
    | st.integers(0, 2**64 - 1).map(json_values.read_timestamp)
    | st.builds(
        lambda digits, scale: Decimal(digits).scaleb(-scale),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(0, 20),
    )
)
NAMES = st.binary(max_size=12).map(lambda octets: octets.decode(errors="surrogateescape")) | (
    st.sampled_from(("$table", "$binary", "$binary:eA==", "$timestamp", "$odd"))
)
TABLES = st.dictionaries(
    NAMES,
    st.recursive(
        VALUES,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=9,
    ),
    max_size=4,
)


def through_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("träge", "träge"),
        (b"text", "text"),
        (b"\xff", "base64:/w=="),
        (LongString(b"M\xfcn"), "base64:Tfxu"),
        ("\udcfc", "base64:/A=="),
        (2**64 - 1, 2**64 - 1),
        (2**64, "18446744073709551616"),
        (NOON, 1_357_041_600),
        (Timestamp(1_700_000_000_000), 1_700_000_000_000),
        (Decimal("12.50"), 12.5),
        (Decimal("-9223372036854775808"), "-9223372036854775808"),
        (Decimal("NaN"), "NaN"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Typed(0x04, b"a"), "0x04:YQ=="),
        ([None, {"a": (True,)}], [None, {"a": [True]}]),
        ({ODD_NAME: 1}, {"base64:Tfxu": 1}),
    ],
)
def test_a_value_is_shown_in_full_as_json_has_it(value: Any, expected: Any) -> None:
    assert through_json(shown(value)) == expected
    assert shown_table({"x": value}) == {"x": expected}


@settings(deadline=None)
@given(TABLES)
def test_every_table_of_a_peer_can_be_shown(table: dict[str, Any]) -> None:
    decoded, _ = decode_table(encode_table(table))
    assert len(through_json(shown_table(decoded))) == len(decoded)


@settings(deadline=None)
@given(TABLES)
def test_a_table_that_is_kept_comes_back_as_it_was(table: dict[str, Any]) -> None:
    octets = encode_table(table)
    decoded, _ = decode_table(octets)
    back = given_table(through_json(kept_table(decoded)))
    assert encode_table(back) == octets


@pytest.mark.parametrize("value", [float("nan"), UUID(int=1), Typed(0x04, b"a"), 2**70])
def test_a_value_beyond_0_9_1_is_kept_in_json_too(value: Any) -> None:
    read = json_values._Given()._value(through_json(kept(value)), "x", 1)
    assert repr(read) == repr(value) or read == Decimal(value)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"x": 2**63}, "does not fit into 64 bits"),
        ({"n" * 256: 1}, "has 256 bytes, at most 255 are possible: shorten it"),
        ({"é" * 200: 1}, "has 400 bytes, at most 255"),
        ({"x": "a" * FRAME_MAX_BYTES}, "at most 131,072 bytes are possible: give less"),
        (dict.fromkeys(map(str, range(1_000_000))), "more than 43,690 entries"),
        ({"x": [0] * 1_000_000}, "more than 43,690 entries"),
        (
            dict.fromkeys((f"name{each}" for each in range(15_000)), object()),
            "more than 131,072 bytes",
        ),
        ({"x": {"$binary": "?"}}, 'write it such as {"$binary": "aGk="}'),
        ({"x": {"$timestamp": "noon"}}, 'write it such as {"$timestamp": 1357016400}'),
        ({"x": {"$decimal": "1e999999999"}}, "does not fit a decimal of 32 bits"),
        ({"$binary:?": 1}, "is not base64 behind '$binary:'"),
    ],
)
def test_a_table_that_amqp_cannot_carry_is_refused(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        given_table(table)
    assert why in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_a_table_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(TABLE_DEPTH):
        value = [value]
    with pytest.raises(ValueError, match="nested deeper than 32"):
        given_table({"x": value})
    assert given_table({"x": value[0]}) == {"x": value[0]}


def test_a_long_value_is_shown_with_the_table_around_it() -> None:
    value: Any = {}
    value["itself"] = value
    assert len(msgspec.json.encode(shown(value))) < 10_000
