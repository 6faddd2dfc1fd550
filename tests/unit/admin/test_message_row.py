"""A message as a row: long payloads are encoded in slices, and are the same as short ones."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Generator
from typing import Any

import pytest

from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.admin.message_row import long_message_row, message_row
from harebell.base.message import Message
from harebell.front.convert import EDITOR
from harebell.kernels.sections import parse_properties, split
from harebell.management.json_rows import encoded_rows
from harebell.wire.v1.composites import Properties
from harebell.wire.v1.sections import data_section, encode_message
from harebell.wire.v1.values import ULong
from tests.unit.model.things import message

LONG = 20 * HTTP_CHUNK_BYTES + 1


def sliced(slices: Generator[Any, None, Any]) -> tuple[Any, int]:
    """The result, and how many slices it took."""
    count = 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize("encoding", ["auto", "base64"])
@pytest.mark.parametrize("truncate", [LONG, LONG - 1, LONG - 2, HTTP_CHUNK_BYTES * 3])
@pytest.mark.parametrize(
    "body",
    [
        b"\xff\x00" * LONG,
        b'"\\\n\x01' * LONG,
        "\u00e4\u20ac\U0001f600".encode() * LONG,
        b"a" * (LONG - 1) + b"\xe2\x82",
        b"a" * (LONG + 9) + b"\xff",
    ],
)
def test_a_long_payload_takes_many_slices_and_is_the_same(
    body: bytes, encoding: str, truncate: int
) -> None:
    one = message(body)
    expected = message_row(EDITOR, one, encoding, truncate)
    row, looking = sliced(long_message_row(EDITOR, one, encoding, truncate))
    encoded, encoding_it = sliced(encoded_rows([{"a": 1}, row, {"b": 2}]))
    assert encoding_it > truncate // HTTP_CHUNK_BYTES
    assert looking > 0 or expected["payload_encoding"] == "base64"
    assert max(map(len, encoded.pieces)) < 8 * HTTP_CHUNK_BYTES
    first, found, last = json.loads(b"".join(encoded.pieces))
    assert (first, last) == ({"a": 1}, {"b": 2})
    assert found == json.loads(json.dumps(expected))


def test_a_short_payload_is_an_ordinary_row() -> None:
    row, slices = sliced(long_message_row(EDITOR, message(b"\xff"), "auto", 1))
    assert slices == 0
    assert b64decode(row["payload"]) == b"\xff"


def test_a_message_of_1_0_is_a_row_as_in_basic() -> None:
    body = data_section(b"a") + data_section(b"b")
    properties = Properties(message_id=ULong(5), subject="s")
    raw, parts, family = split(encode_message(body, properties=properties))
    one = Message("x", "k", parse_properties(raw, family), parts)
    row = message_row(EDITOR, one, "auto", LONG)
    assert (row["payload"], row["payload_bytes"], row["payload_encoding"]) == ("ab", 2, "string")
    shown = row["properties"]
    assert isinstance(shown, dict)
    assert shown["message_id"] == "5"
    assert shown["headers"]["x-amqp-subject"] == "s"
    long_row, _ = sliced(long_message_row(EDITOR, one, "auto", LONG))
    assert long_row == row
