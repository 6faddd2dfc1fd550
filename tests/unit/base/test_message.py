"""Messages keep what they came with and nothing that could refer back to them."""

from __future__ import annotations

import gc
import pickle

import pytest

from harebell.base.limits import MESSAGE_OVERHEAD_BYTES
from harebell.base.message import (
    FAMILY_010,
    FAMILY_09,
    PERSISTENT,
    Message,
    Properties,
    new_message,
)


def test_a_message_keeps_what_it_was_published_with() -> None:
    properties = Properties(b"\x18\x00\x02\x05", delivery_mode=PERSISTENT, priority=5)
    message = Message("logs", "a.b", properties, b"body")
    assert (message.exchange, message.routing_key, message.body) == ("logs", "a.b", b"body")
    assert (message.raw, message.delivery_mode, message.priority) == (properties.raw, 2, 5)
    assert message.family == FAMILY_09
    assert not message.has_headers


def test_properties_can_be_pickled_as_messages_of_the_client_have_them() -> None:
    properties = Properties(b"\x18\x00\x02\x05", PERSISTENT, 5, suspect=True, family=FAMILY_010)
    again = pickle.loads(pickle.dumps(properties))
    assert (again, again.delivery_mode, again.priority) == (properties, PERSISTENT, 5)
    assert (again.has_headers, again.suspect, again.family) == (False, True, FAMILY_010)


def test_absent_properties_have_values_that_no_peer_can_send() -> None:
    message = Message("", "q", Properties(b"\0\0"), b"")
    assert message.delivery_mode == 0
    assert message.priority == -1


def test_both_ways_of_making_a_message_make_the_same() -> None:
    properties = Properties(b"\x20\x00\x00\x00\x00\x00", has_headers=True)
    slow, fast = Message("x", "k", properties, b"b"), new_message("x", "k", properties, b"b")
    for name in (
        "exchange",
        "routing_key",
        "raw",
        "delivery_mode",
        "priority",
        "has_headers",
        "family",
        "body",
    ):
        assert getattr(slow, name) == getattr(fast, name), name


def test_memory_is_counted_with_body_properties_and_a_share_of_the_rest() -> None:
    message = Message("x", "k", Properties(b"\0\0"), b"12345")
    assert message.footprint() == 5 + 2 + MESSAGE_OVERHEAD_BYTES


def test_equal_property_lists_are_equal_and_hash_alike() -> None:
    one, other = Properties(b"\0\0"), Properties(b"\0\0", delivery_mode=0)
    assert one == other
    assert hash(one) == hash(other)
    assert one != Properties(b"\x10\x00\x01")
    assert one != b"\0\0"


def test_texts_for_people_name_what_matters() -> None:
    message = Message("logs", "a.b", Properties(b"\0\0"), b"12345")
    assert repr(message) == "Message('logs', 'a.b', 5 bytes)"
    assert repr(Properties(b"\0\0")) == "Properties(b'\\x00\\x00')"


def test_a_body_cannot_be_changed_by_attribute_in_the_compiled_class() -> None:
    from harebell.base import impl

    message = Message("", "q", Properties(b"\0\0"), b"x")
    if impl.chosen() == impl.NATIVE:
        with pytest.raises(AttributeError):
            message.body = b"other"
        with pytest.raises(AttributeError):
            message.something_else = 1  # type: ignore[attr-defined]
        # Millions of them wait in queues: the collector must not have to look at each.
        assert not gc.is_tracked(message)
    assert message.body == b"x"
