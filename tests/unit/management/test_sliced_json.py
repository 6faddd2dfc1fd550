"""A long text of JSON that is decoded in parts is what a decoder makes of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.admin.long_text import LongText
from harebell.base.slices import at_once
from harebell.management import sliced_json
from harebell.management.limits import JSON_DEPTH, JSON_MEMBERS
from harebell.management.sliced_json import decoded

SMALL = {"JSON_PART_BYTES": 24, "JSON_STRING_BYTES": 8, "JSON_SLICE_TOKENS": 2}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=40,
)
SPACES = st.sampled_from([b"", b" ", b"\n\t "])


@pytest.fixture(scope="module", autouse=True)
def small_parts() -> Iterator[None]:
    """Short texts are cut as well."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(sliced_json, name, value)
        yield


def outcome(text: bytes) -> Any:
    try:
        return at_once(decoded(text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ValueError


def whole(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ValueError


@given(VALUES, SPACES)
def test_a_text_is_decoded_as_at_once(value: Any, space: bytes) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=len(space))
    assert at_once(decoded(space + text + space)) == value


@given(VALUES, st.data())
def test_a_damaged_text_is_decoded_or_refused_as_at_once(value: Any, data: st.DataObject) -> None:
    text = bytearray(msgspec.json.encode([value, value]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        change = data.draw(st.sampled_from([b"", *(bytes([each]) for each in b'"\\[]{},: 0x')]))
        text[at : at + 1] = change
        if not text:
            return
    assert outcome(bytes(text)) == whole(bytes(text))


@pytest.mark.parametrize(
    "text",
    [
        b'{"a": [1, 2, 3], "b": "' + b"x" * 90,
        b"[" + b"1, " * 40 + b"]",
        b"[" + b"1, " * 40 + b"2]]",
        b"[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], x]",
        b'{"a": {"b": [1, 2, 3, 4, 5, 6, 7, 8, 9]} "c": 1}',
        b'{"a": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 3: [1]}',
        b"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}",
        b'["\xff" , 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]',
    ],
)
def test_a_wrong_text_is_refused(text: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        at_once(decoded(text))


def test_an_error_names_the_position_in_the_whole_text() -> None:
    text = b'["' + b"x" * 100 + b'", 1, oops]'
    with pytest.raises(msgspec.DecodeError, match=rf"byte {text.index(b'oops')}"):
        at_once(decoded(text))


def test_a_text_that_is_too_deep_is_refused() -> None:
    assert at_once(decoded(b"[" * JSON_DEPTH + b"]" * JSON_DEPTH)) is not None
    with pytest.raises(RecursionError, match=f"deeper than {JSON_DEPTH} levels"):
        at_once(decoded(b"[" * (JSON_DEPTH + 1) + b"]" * (JSON_DEPTH + 1)))


def test_an_object_with_too_many_members_is_refused_and_a_list_may_be_as_long() -> None:
    many = {f"x-{number}": 0 for number in range(JSON_MEMBERS)}
    assert at_once(decoded(msgspec.json.encode({"arguments": many}))) == {"arguments": many}
    more = msgspec.json.encode({"arguments": {**many, "x": 0}, "after": 1})
    with pytest.raises(msgspec.DecodeError, match=f"more than {JSON_MEMBERS} members \\(byte "):
        at_once(decoded(more))
    numbers = list(range(2 * JSON_MEMBERS))
    assert at_once(decoded(msgspec.json.encode(numbers))) == numbers


def test_a_long_text_takes_many_slices() -> None:
    assert sum(1 for _ in decoded(msgspec.json.encode([{"name": "q" * 9}] * 200))) > 100
    assert sum(1 for _ in decoded(msgspec.json.encode(["\\" * 400 + '"' * 400]))) > 10


def test_a_long_text_is_decoded_in_pieces_and_stays_so_where_it_is_asked_for() -> None:
    text = '\u20ac"\\\n\U0001f64b' * 300
    body = msgspec.json.encode({"a": text, "b": [text, {"c": text}], "c": text})
    slices = decoded(body, apart="c")
    count = 0
    while True:
        count += 1
        try:
            next(slices)
        except StopIteration as end:
            found = end.value
            break
    pieces = found["c"]
    assert isinstance(pieces, LongText)
    assert count > len(body) // SMALL["JSON_PART_BYTES"]
    assert found | {"c": str(pieces)} == msgspec.json.decode(body)
    assert all(len(each) <= SMALL["JSON_PART_BYTES"] for each in pieces.taken())
    assert not list(pieces.taken())


@pytest.mark.parametrize(
    "text", ['["%s"]', '{"%s": 1}', '{"a": {"c": "%s"}}', '"%s"', '{"c": 1%s}']
)
def test_no_other_value_may_be_longer_than_is_decoded_at_once(text: str) -> None:
    assert at_once(decoded((text % ("0" * 90)).encode(), "c", 120)) is not None
    with pytest.raises(msgspec.DecodeError, match="more than 120 bytes"):
        at_once(decoded((text % ("0" * 130)).encode(), "c", 120))
    assert str(at_once(decoded(b'{"c": "%s"}' % (b"0" * 130), "c", 120))["c"]) == "0" * 130
