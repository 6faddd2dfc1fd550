"""Messages for peers that know five types: nothing is copied without need, nothing else is lost."""

from __future__ import annotations

from harebell.base.message import Message
from harebell.front.convert.plain import plain_message
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)


def message(**properties: object) -> Message:
    raw = encode_properties(BasicProperties(**properties))  # type: ignore[arg-type]
    return Message("e", "k", parse_properties(raw), b"body")


def test_a_message_that_can_be_read_stays_the_same_object() -> None:
    for properties in ({}, {"content_type": "text/plain"}, {"headers": {"s": "text", "i": 1}}):
        # The second has an equal list of its own, and finds the first one's in the cache.
        for sent in (message(**properties), message(**properties)):
            assert plain_message(sent) is sent


def test_only_the_headers_change() -> None:
    sent = message(
        content_type="a/b", content_encoding="gzip", headers={"t": True}, message_id="m", priority=3
    )
    found = plain_message(sent)
    assert decode_properties(found.raw) == BasicProperties(
        content_type="a/b", content_encoding="gzip", headers={"t": 1}, message_id="m", priority=3
    )
    assert (found.exchange, found.routing_key, found.body) == ("e", "k", b"body")
    assert found.priority == 3
    assert decode_properties(sent.raw).headers == {"t": True}


def test_facts_that_the_broker_adds_to_a_delivery_become_headers() -> None:
    sent = message(headers={"a": "b"})
    sent.offset, sent.deliveries = 2**40, 3
    found = plain_message(sent)
    assert decode_properties(found.raw).headers == {
        "a": "b",
        "x-stream-offset": "1099511627776",
        "x-delivery-count": 3,
    }
    # It is in the headers now, and would otherwise be added twice.
    assert (found.offset, found.deliveries) == (-1, 0)


def test_a_message_without_headers_gets_them_for_what_is_added() -> None:
    sent = message(message_id="m")
    sent.offset = 0
    found = decode_properties(plain_message(sent).raw)
    assert (found.headers, found.message_id) == ({"x-stream-offset": 0}, "m")


def test_a_large_table_is_not_remembered_and_still_converted() -> None:
    sent = message(headers={"x": "y" * 200_000, "t": False})
    assert decode_properties(plain_message(sent).raw).headers == {"x": "y" * 200_000, "t": 0}
