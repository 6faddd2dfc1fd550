"""Headers are decoded only when somebody asks for them."""

from __future__ import annotations

from harebell.base.message import Message, Properties
from harebell.front.convert import expiration_of, forwarded, headers_of
from harebell.wire.v09.content import BasicProperties, decode_properties, encode_properties


def test_headers_come_out_as_they_went_in() -> None:
    raw = encode_properties(BasicProperties(headers={"a": 1, "b": "x"}, delivery_mode=2))
    assert headers_of(Message("", "q", Properties(raw), b"")) == {"a": 1, "b": "x"}


def test_a_message_without_headers_has_none() -> None:
    raw = encode_properties(BasicProperties(priority=3))
    assert headers_of(Message("", "q", Properties(raw), b"")) == {}


def test_a_message_goes_on_without_expiring_and_with_new_headers() -> None:
    raw = encode_properties(
        BasicProperties(headers={"a": 1, "b": 2}, delivery_mode=2, priority=4, expiration="99")
    )
    message = Message("x", "k", Properties(raw), b"body")
    assert expiration_of(message) == "99"
    copy = forwarded(message, "y", "l", {"a": None, "c": 3})
    assert (copy.exchange, copy.routing_key, copy.body) == ("y", "l", b"body")
    assert (copy.delivery_mode, copy.priority, copy.has_headers) == (2, 4, True)
    assert headers_of(copy) == {"b": 2, "c": 3}
    assert expiration_of(copy) is None
    assert decode_properties(message.raw).expiration == "99"
