"""Codecs: values become bodies and come back, and what does not fit says why."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from harebell.client.codecs import JSON, MESSAGE_PACK, TEXT, Codec, Json, MessagePack
from harebell.client.errors import Undecodable
from harebell.client.message import Delivered, Message


class Line(pydantic.BaseModel):
    article: str
    count: int = 1


@dataclasses.dataclass
class Order:
    id: int
    lines: list[Line] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    branches: list[Tree]


class Point(msgspec.Struct):
    x: int
    y: int


class Entry(TypedDict):
    name: str


class Unknown:
    """A class that is no type of data."""


VALUES: list[tuple[Any, Any]] = [
    (int, 5),
    (list[str], ["a", "ü"]),
    (Line, Line(article="tea", count=2)),
    (Order, Order(3, [Line(article="tea")])),
    (Tree, Tree([Tree([]), Tree([])])),
    (Point, Point(1, 2)),
    (Entry, {"name": "n"}),
    (dict[str, Order], {"first": Order(1)}),
]


def received(body: bytes) -> Delivered:
    """A message with a body, as from a queue."""
    return Delivered(body, "", "q", Message(b"").encoded, 1, False)


@pytest.mark.parametrize("codec", [Json, MessagePack])
@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_a_value_comes_back_as_its_type(codec: Any, kind: Any, value: Any) -> None:
    used = codec(kind)
    message = Message.of(value, used, priority=3)
    assert (message.content_type, message.priority) == (used.content_type, 3)
    assert received(message.body).decode(used) == value


def test_json_of_a_message_is_built_in_types_or_of_a_type() -> None:
    message = Message.of(Order(3, [Line(article="tea")]))
    assert message.json() == {"id": 3, "lines": [{"article": "tea", "count": 1}]}
    assert message.json(Order) == Order(3, [Line(article="tea")])


def test_text_is_utf_8() -> None:
    message = Message.of("grün", TEXT, routing_key="q")
    assert message.body == "grün".encode()
    assert message.decode(TEXT) == "grün"
    assert (message.content_type, message.routing_key) == ("text/plain; charset=utf-8", "q")


@pytest.mark.parametrize(
    ("codec", "body", "reason"),
    [
        (JSON, b"", "JSON: Input data was truncated"),
        (JSON, b"\xff", "JSON: JSON is malformed"),
        (JSON, b"[" * 100_000, "JSON: maximum recursion depth"),
        (Json(int), b'"5"', "JSON: Expected `int`, got `str`"),
        (Json(Order), b"{}", "missing required field `id`"),
        (Json(Order), b'{"id": 1, "lines": [{}]}', r"article[\s\S]*at `\$\.lines\[0\]`"),
        (Json(Line), b'{"article": "a", "count": "x"}', "valid integer"),
        (MESSAGE_PACK, b"\xc1", "MessagePack: MessagePack data is malformed"),
        (TEXT, b"\xff", "text in UTF-8: 'utf-8' codec"),
    ],
)
def test_what_cannot_be_decoded_says_why(codec: Codec[Any], body: bytes, reason: str) -> None:
    with pytest.raises(Undecodable, match=reason) as caught:
        received(body).decode(codec)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.reason) == (str(caught.value), caught.value.reason)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("kind", [Unknown, list[Unknown], dict[str, tuple[int, Unknown]]])
def test_a_type_that_cannot_be_decoded_is_refused_before_any_message(kind: Any) -> None:
    for codec in (Json, MessagePack):
        with pytest.raises(TypeError, match=r"a message cannot be decoded as <class .*Unknown"):
            codec(kind)
    with pytest.raises(TypeError, match="cannot be decoded"):
        received(b"{}").json(kind)


def test_a_value_without_a_form_is_refused_when_it_is_published() -> None:
    with pytest.raises(TypeError, match="Unknown has no form in a message"):
        Message.of(Unknown())


def test_a_codec_says_what_it_is_for() -> None:
    assert (repr(Json(Order)), repr(JSON)) == ("Json(Order)", "Json(Any)")
    assert repr(MessagePack(list[int])) == "MessagePack(list[int])"


def test_a_program_may_have_its_own_codec() -> None:
    class Numbers(Codec[int]):
        content_type = "application/x-number"

        def encode(self, value: int) -> bytes:
            return b"%d" % value

        def decode(self, body: bytes) -> int:
            return int(body)

    message = Message.of(5, Numbers())
    assert (message.body, message.content_type) == (b"5", "application/x-number")
    assert message.decode(Numbers()) == 5
