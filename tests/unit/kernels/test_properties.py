"""Property lists: what is taken, and that the compiled kernel and its twin judge alike."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.limits import TABLE_DEPTH
from tests.unit.kernels.twins import outcome, told, twin, used

TWIN = twin("properties")
USED = used("properties")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])


def table(*pairs: bytes) -> bytes:
    inner = b"".join(pairs)
    return struct.pack(">I", len(inner)) + inner


def nested(depth: int, tag: bytes = b"F") -> bytes:
    """A table `depth` levels deep, counting the header table itself."""
    inner = b""
    for _ in range(depth - 1):
        name = b"\x01n" if tag == b"F" else b""
        inner = name + tag + struct.pack(">I", len(inner)) + inner
    if tag == b"A" and depth > 1:
        inner = b"\x01n" + inner
    return struct.pack(">I", len(inner)) + inner


@BOTH
def test_delivery_mode_and_priority_are_found_wherever_they_lie(module: Any) -> None:
    raw = b"\xf8\x00\x04text\x04gzip" + table(b"\x01at\x01") + b"\x02\x07"
    assert told(module.parse_properties(raw)) == (raw, 2, 7, True, False)


@BOTH
@pytest.mark.parametrize("raw", [b"\x01\x00\x0260", b"\x00\x10\x05guest"])
def test_user_id_and_expiration_are_marked_for_a_closer_look(module: Any, raw: bytes) -> None:
    assert told(module.parse_properties(raw)) == (raw, 0, -1, False, True)


@BOTH
@pytest.mark.parametrize("tag", [b"F", b"A"])
def test_tables_may_nest_as_deep_as_the_limit_and_no_deeper(module: Any, tag: bytes) -> None:
    raw = b"\x20\x00" + nested(TABLE_DEPTH, tag)
    assert module.parse_properties(raw).raw == raw
    found = outcome(module.parse_properties, b"\x20\x00" + nested(TABLE_DEPTH + 1, tag))
    assert found[1:3] == (505, "malformed content header: headers are not a field table")


@BOTH
@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "property flags are missing"),
        (b"\0", "property flags are missing"),
        (b"\0\x01", "unknown property flags"),
        (b"\0\x02", "unknown property flags"),
        (b"\x10\0", "properties run over the end"),
        (b"\x80\0", "properties run over the end"),
        (b"\x80\0\x05abc", "properties run over the end"),
        (b"\0\x40" + b"\0" * 7, "properties run over the end"),
        (b"\x20\0\0\0", "properties run over the end"),
        (b"\x20\0\0\0\0\x09", "headers run over the end"),
        (b"\x20\0\0\0\0\x01\x01", "headers are not a field table"),
        (b"\x20\0" + table(b"\x01az"), "headers are not a field table"),
        (b"\x20\0" + table(b"\x01aS\0\0\0\x09x"), "headers are not a field table"),
        (b"\x20\0" + table(b"\x01aA\0\0\0\x01z"), "headers are not a field table"),
        (b"\0\0x", "octets after the last property"),
    ],
)
def test_a_malformed_property_list_says_what_is_wrong(module: Any, raw: bytes, why: str) -> None:
    text = f"malformed content header: {why}"
    assert outcome(module.parse_properties, raw) == ("raises", 505, text, 60, 0)


values = st.one_of(
    st.sampled_from([b"V", b"t\x01", b"b\xff", b"B\x01", b"s\0\1", b"u\0\1", b"I\0\0\0\1"]),
    st.sampled_from([b"i\0\0\0\1", b"f\0\0\0\0", b"l" + b"\0" * 8, b"L" + b"\0" * 8]),
    st.sampled_from([b"d" + b"\0" * 8, b"T" + b"\0" * 8, b"D\2\0\0\0\1", b"S\0\0\0\1x"]),
    st.sampled_from([b"x\0\0\0\2\0\0", b"F\0\0\0\0", b"A\0\0\0\1V", b"A\0\0\0\2VV", b"?"]),
    st.binary(max_size=6),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(values, max_size=4), st.integers(-1, 1))
def test_both_judge_every_table_alike(members: list[bytes], off: int) -> None:
    inner = b"".join(b"\x01a" + value for value in members)
    raw = b"\x20\x00" + struct.pack(">I", max(0, len(inner) + off)) + inner
    assert judged(USED, raw) == judged(TWIN, raw)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40))
def test_both_judge_every_property_list_alike(raw: bytes) -> None:
    assert judged(USED, raw) == judged(TWIN, raw)


def judged(module: Any, raw: bytes) -> Any:
    return outcome(lambda data: told(module.parse_properties(data)), raw)


@BOTH
def test_a_header_is_found_by_its_name_and_of_equal_names_the_last(module: Any) -> None:
    entries = (b"\x01at\x01", b"\x02abV", b"\x01bF\0\0\0\x03\x01aV", b"\x01aB\x07")
    raw = b"\xe0\x00\x04text\x04gzip" + table(*entries)
    assert raw[module.find_header(raw, b"a") :] == b"B\x07"
    assert raw[module.find_header(raw, b"b") :].startswith(b"F")
    assert raw[module.find_header(raw, b"ab") :].startswith(b"V")
    assert module.find_header(raw, b"c") == module.find_header(raw, b"") == -1
    assert module.find_header(b"\x80\x00\x01a", b"a") == -1


@settings(max_examples=300, deadline=None)
@given(st.lists(values, max_size=4), st.binary(max_size=12), st.integers(0, 40))
def test_both_find_headers_alike_whatever_the_octets(
    members: list[bytes], more: bytes, cut: int
) -> None:
    inner = b"".join(b"\x01" + b"ab"[n % 2 :][:1] + value for n, value in enumerate(members))
    whole = b"\xa0\x00\x01x" + struct.pack(">I", len(inner)) + inner + more
    for raw in (whole, whole[: max(0, len(whole) - cut)], b"\x20\x00" + more):
        for name in (b"a", b"b", b""):
            assert outcome(USED.find_header, raw, name) == outcome(TWIN.find_header, raw, name)
