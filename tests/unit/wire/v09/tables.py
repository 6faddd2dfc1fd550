"""Field tables for property-based tests: what applications put into one, and what may arrive."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from harebell.wire.v09.fields import LongString, Timestamp


def shortstr(max_octets: int = 255) -> st.SearchStrategy[str]:
    """Text that fits a short string."""
    text = st.text(max_size=max_octets)
    return text.filter(lambda value: len(value.encode()) <= max_octets)


def _is_no_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return True
    return False


LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(),
    st.binary(),
    st.binary().filter(_is_no_utf8).map(LongString),
    st.builds(
        lambda digits, scale: Decimal(digits).scaleb(-scale),
        st.integers(-(2**31), 2**31 - 1),
        st.integers(0, 20),
    ),
    st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)).map(
        lambda value: value.replace(microsecond=0, tzinfo=UTC)
    ),
    st.integers(253_402_300_800, 2**64 - 1).map(Timestamp),
)

VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(shortstr(20), inner, max_size=4),
    max_leaves=12,
)

TABLES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(shortstr(40), VALUES, max_size=6)
"""Tables in Python that a round trip gives back unchanged."""


def sized(octets: bytes) -> bytes:
    """Octets with their count, a long, in front."""
    return struct.pack(">I", len(octets)) + octets


def nested(depth: int, tag: bytes = b"F") -> bytes:
    """An encoded table that is the outermost of `depth` levels of tables or arrays."""
    inner = b""
    for _ in range(depth - 1):
        inner = tag + sized(inner)
        if tag == b"F":
            inner = b"\x01k" + inner
    return sized(inner if tag == b"F" or not inner else b"\x01k" + inner)
