"""Headers are decoded only when somebody asks for them."""

from __future__ import annotations

from harebell.base.message import Message, Properties
from harebell.front.convert import headers_of
from harebell.wire.v09.content import BasicProperties, encode_properties


def test_headers_come_out_as_they_went_in() -> None:
    raw = encode_properties(BasicProperties(headers={"a": 1, "b": "x"}, delivery_mode=2))
    assert headers_of(Message("", "q", Properties(raw), b"")) == {"a": 1, "b": "x"}


def test_a_message_without_headers_has_none() -> None:
    raw = encode_properties(BasicProperties(priority=3))
    assert headers_of(Message("", "q", Properties(raw), b"")) == {}
