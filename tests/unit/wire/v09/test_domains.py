"""The elementary data types: their limits on both sides, and text that is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.wire.v09.domains import DOMAINS
from tests.unit.wire.v09.tables import shortstr

SIZES = {"octet": 1, "short": 2, "long": 4, "longlong": 8, "timestamp": 8}


@pytest.mark.rule("0-9-1#040")
@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_integers_are_unsigned_in_network_order_at_any_offset(name: str, size: int):
    domain = DOMAINS[name]
    limit = 2 ** (8 * size) - 1
    for value in (0, 1, 0x7F, limit - 1, limit):
        octets = domain.write(value)
        assert octets == value.to_bytes(size, "big")
        for offset in range(9):
            assert domain.read(bytes(offset) + octets, offset) == (value, offset + size)


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_integers_out_of_range_are_refused(name: str, size: int):
    for value in (-1, 2 ** (8 * size)):
        with pytest.raises(ValueError, match=f"{value} is not between 0 and"):
            DOMAINS[name].write(value)


@given(shortstr())
def test_a_short_string_survives_the_round_trip(value: str):
    octets = DOMAINS["shortstr"].write(value)
    assert octets[0] == len(octets) - 1
    assert DOMAINS["shortstr"].read(octets, 0) == (value, len(octets))


def test_a_short_string_has_at_most_255_octets_not_characters():
    assert len(DOMAINS["shortstr"].write("x" * 255)) == 256
    with pytest.raises(ValueError, match="has 256 octets, at most 255"):
        DOMAINS["shortstr"].write("ü" * 128)


def test_a_short_string_that_is_no_utf8_is_a_frame_error():
    with pytest.raises(ProtocolError) as caught:
        DOMAINS["shortstr"].read(b"\x02\xc3\x28", 0)
    assert (caught.value.code, caught.value.text) == (501, "Malformed UTF-8 in shortstr")


@given(st.binary(max_size=1_000))
def test_a_long_string_survives_the_round_trip(value: bytes):
    octets = DOMAINS["longstr"].write(value)
    assert DOMAINS["longstr"].read(octets, 0) == (value, len(value) + 4)


@pytest.mark.parametrize("name", [name for name in DOMAINS if "table" not in name])
def test_every_cut_value_runs_over_the_end(name: str):
    value: Any = {"shortstr": "abc", "longstr": b"abc"}.get(name, 1)
    octets = DOMAINS[name].write(value)
    for length in range(len(octets)):
        with pytest.raises(ProtocolError, match="runs over the end") as caught:
            DOMAINS[name].read(octets[:length], 0)
        assert caught.value.code == 502


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("octet", "1", "an int, not str"),
        ("long", 1.0, "an int, not float"),
        ("shortstr", b"abc", "a str, not bytes"),
        ("shortstr", None, "a str, not NoneType"),
        ("longstr", "abc", "bytes, not str"),
        ("table", [], "a mapping, not list"),
        ("plain-table", [], "a mapping, not list"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(name: str, value: Any, wanted: str):
    with pytest.raises(TypeError, match=f"must be {wanted}"):
        DOMAINS[name].write(value)


def test_the_zero_of_a_reserved_field_can_be_written():
    for domain in DOMAINS.values():
        octets = domain.write(domain.zero)
        assert not any(octets)
        assert domain.read(octets, 0) == (domain.zero, len(octets))
