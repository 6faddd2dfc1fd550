"""Messages: bodies, properties by name, and what publish accepts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.base.message import Properties
from harebell.client.message import (
    PROPERTY_NAMES,
    Content,
    Delivered,
    Message,
    encode_arguments,
    encode_once,
    outgoing,
    outgoing_item,
)
from harebell.wire.v09.content import BasicProperties, decode_properties

EVERY = {
    "content_type": "application/json",
    "content_encoding": "gzip",
    "headers": {"a": 1, "b": [True, "x"]},
    "delivery_mode": 2,
    "priority": 0,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "60000",
    "message_id": "m",
    "timestamp": datetime(2024, 2, 29, 12, tzinfo=UTC),
    "type": "t",
    "user_id": "guest",
    "app_id": "a",
    "cluster_id": "k",
}


def test_every_property_survives_the_wire_and_can_be_read_as_an_attribute() -> None:
    assert set(EVERY) == PROPERTY_NAMES
    encoded = encode_arguments(EVERY)
    content = Content(b"", "x", "k", encoded)
    for name, value in EVERY.items():
        assert getattr(content, name) == value


def test_properties_that_are_absent_read_as_none_and_headers_as_empty() -> None:
    content = Content(b"", "", "", encode_arguments({}))
    assert content.content_type is None
    assert content.priority is None
    assert content.headers == {}


def test_equal_properties_are_encoded_once() -> None:
    first = encode_arguments({"content_type": "a/b", "delivery_mode": 2})
    assert encode_arguments({"content_type": "a/b", "delivery_mode": 2}) is first
    assert encode_arguments({"content_type": "a/b", "delivery_mode": 1}) is not first


def test_the_memory_for_equal_properties_is_bounded() -> None:
    from harebell.client import message

    for number in range(2000):
        encode_arguments({"correlation_id": str(number)})
    assert len(message._cache) <= 256


def test_a_property_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match=r"'content_typo'.*content_type"):
        encode_arguments({"content_typo": "x"})
    with pytest.raises(TypeError, match="'ttl'"):
        Message(b"", ttl=5)


@pytest.mark.parametrize(
    "wrong", [{"delivery_mode": "2"}, {"content_type": 5}, {"priority": 1000}, {"priority": -1}]
)
def test_a_property_of_the_wrong_kind_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode_arguments(wrong)
    with pytest.raises((TypeError, ValueError)):
        encode_arguments(wrong)


def test_bodies_are_octets_and_text_is_refused_with_the_mend() -> None:
    for body in (b"abc", bytearray(b"abc"), memoryview(b"abc")):
        assert outgoing(body, "", "k", {}).body == b"abc"
        assert type(Message(body).body) is bytes
    with pytest.raises(TypeError, match=r"\.encode\(\)"):
        outgoing("abc", "", "k", {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not int"):
        outgoing(5, "", "k", {})  # type: ignore[arg-type]


def test_a_message_brings_its_own_route_or_takes_the_calls() -> None:
    bare = outgoing(Message(b"x"), "calls-exchange", "calls-key", {})
    assert (bare.exchange, bare.routing_key) == ("calls-exchange", "calls-key")
    own = outgoing(Message(b"x", exchange="", routing_key="own"), "calls", "calls", {})
    assert (own.exchange, own.routing_key) == ("", "own")


def test_a_message_and_properties_beside_it_are_refused() -> None:
    with pytest.raises(TypeError, match="Message"):
        outgoing(Message(b"x"), "", "k", {"content_type": "a"})


def test_bulk_items_are_bodies_pairs_or_messages() -> None:
    arguments = {"content_type": "a/b"}
    encoded = encode_arguments(arguments)
    items = [b"1", bytearray(b"2"), ("own", b"3"), ("own", bytearray(b"4"))]
    sent = [outgoing_item(item, "x", "k", encoded, arguments) for item in items]
    assert [one.body for one in sent] == [b"1", b"2", b"3", b"4"]
    assert [one.routing_key for one in sent] == ["k", "k", "own", "own"]
    assert {one.raw for one in sent} == {encoded.raw}
    message = outgoing_item(Message(b"5", priority=3), "x", "k", encoded, {})
    assert decode_properties(message.raw) == BasicProperties(priority=3)


def test_a_delivery_knows_where_it_came_from() -> None:
    delivered = Delivered(b"abc", "x", "k", Properties(b"\0\0"), 7, True, "tag", 3)
    assert (delivered.delivery_tag, delivered.redelivered) == (7, True)
    assert (delivered.consumer_tag, delivered.message_count) == ("tag", 3)
    assert "3 bytes" in repr(delivered)
    assert "abc" not in repr(delivered)


@pytest.mark.parametrize(("persistent", "mode"), [(True, 2), (False, 1)])
def test_persistent_stands_for_the_delivery_mode(persistent: bool, mode: int) -> None:
    assert encode_arguments({"persistent": persistent}) == encode_arguments({"delivery_mode": mode})
    assert encode_once({"persistent": persistent}) == encode_once({"delivery_mode": mode})
    message = Message(b"", persistent=persistent, headers={"a": 1})
    assert (message.delivery_mode, message.persistent) == (mode, persistent)


@pytest.mark.parametrize("wrong", [{"persistent": 2}, {"persistent": True, "delivery_mode": 2}])
def test_persistent_is_a_boolean_and_has_no_delivery_mode_beside_it(wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="persistent"):
        encode_arguments(wrong)
