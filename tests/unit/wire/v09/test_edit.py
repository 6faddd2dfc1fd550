"""Edited property lists: what changed, and that nothing else did."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.values import Long
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties
from harebell.wire.v09.edit import answered_at, edited

names = st.sampled_from(["a", "b", "CC", "x-death", "schön"])
values = st.one_of(
    st.integers(-(2**40), 2**40),
    st.text(max_size=5),
    st.booleans(),
    st.none(),
    st.lists(st.integers(0, 9), max_size=2),
    st.dictionaries(names, st.integers(0, 9), max_size=2),
)
texts = st.none() | st.text("abc", max_size=3)
lists = st.builds(
    BasicProperties,
    content_type=texts,
    content_encoding=texts,
    headers=st.none() | st.dictionaries(names, values, max_size=4),
    delivery_mode=st.none() | st.integers(0, 255),
    priority=st.none() | st.integers(0, 255),
    correlation_id=texts,
    reply_to=texts,
    expiration=texts,
    timestamp=st.none() | st.integers(0, 10**9),
    app_id=texts,
    cluster_id=texts,
)


@settings(deadline=None)
@given(
    lists,
    st.dictionaries(names, values.filter(lambda value: value is not None), max_size=3),
    st.sets(names, max_size=2),
    st.booleans(),
)
def test_editing_octets_does_what_editing_values_would(
    properties: BasicProperties, changes: dict[str, Any], removed: set[str], keep: bool
) -> None:
    before = decode_properties(encode_properties(properties))
    wanted = {**dict.fromkeys(removed), **changes}
    after = decode_properties(edited(encode_properties(properties), wanted, keep_expiration=keep))
    headers = {
        name: value for name, value in (before.headers or {}).items() if name not in wanted
    } | changes
    assert (after.headers or {}) == headers
    assert after.expiration == (before.expiration if keep else None)
    before.headers = after.headers = None
    before.expiration = after.expiration = None
    assert after == before


def test_unchanged_properties_keep_their_octets() -> None:
    # A short (s), an unsigned octet (B) and a second entry of the same name.
    kept = b"\x01as\x00\x05" + b"\x01bB\x07" + b"\x01as\x00\x06"
    gone = b"\x01ct\x01"
    raw = b"\x30\x00" + len(kept + gone).to_bytes(4) + kept[:5] + gone + kept[5:] + b"\x02"
    new = b"\x01cl" + (9).to_bytes(8)
    assert edited(raw, {"c": Long(9)}) == (
        b"\x30\x00" + len(kept + new).to_bytes(4) + kept + new + b"\x02"
    )


@pytest.mark.parametrize("raw", [b"\0\0", b"\x10\x00\x02"])
def test_no_table_is_made_for_nothing(raw: bytes) -> None:
    assert edited(raw, {"absent": None}) == raw


@given(lists, st.text("abc", max_size=255))
def test_another_reply_to_changes_nothing_else(properties: BasicProperties, name: str) -> None:
    before = decode_properties(encode_properties(properties))
    after = decode_properties(answered_at(encode_properties(properties), name))
    assert after.reply_to == (None if before.reply_to is None else name)
    before.reply_to = after.reply_to = None
    assert after == before
