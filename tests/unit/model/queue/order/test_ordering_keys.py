"""Which keys are held, what waits for them, and that nothing else is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.limits import GROUP_KEY_LETTERS
from harebell.model.queue.order.ordering_keys import NOTHING, OrderingKeys, key_of
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties


def with_properties(**properties: Any) -> Message:
    raw = encode_properties(BasicProperties(**properties))
    return Message("x", "k", parse_properties(raw), b"")


@pytest.mark.parametrize(
    ("name", "properties", "key"),
    [
        ("routing_key", {}, "k"),
        ("message_id", {"message_id": "m"}, "m"),
        ("correlation_id", {"message_id": "m"}, None),
        ("customer", {"headers": {"customer": "c"}}, "c"),
        ("customer", {"headers": {"customer": 7}}, 7),
        ("customer", {"headers": {"customer": ["c"]}}, None),
        ("customer", {"headers": {"other": "c"}}, None),
        ("customer", {}, None),
        ("customer", {"headers": {"customer": "c" * 1_000}}, "c" * GROUP_KEY_LETTERS),
    ],
)
def test_a_key_is_a_header_a_property_or_the_routing_key(
    name: str, properties: dict[str, Any], key: object
) -> None:
    assert key_of(EDITOR, name, with_properties(**properties)) == key


def test_a_message_without_headers_has_no_header_for_a_key() -> None:
    assert key_of(EDITOR, "h", Message("", "", Properties(b"\0\0"), b"")) is None


def test_a_key_that_is_held_goes_on_with_its_holder_alone() -> None:
    groups = OrderingKeys()
    groups.hold(1, "a", "consumer")
    groups.wait("a", 5, redelivered=False)
    groups.wait("a", 3, redelivered=True)
    assert groups.first_free() == groups.first_of("other") == NOTHING
    assert groups.first_of("consumer") == 3
    assert groups.take(3) == ("a", True)
    assert groups.first_of("consumer") == 5


def test_a_key_is_free_when_nothing_of_it_is_out() -> None:
    groups = OrderingKeys()
    groups.hold(1, "a", "consumer")
    groups.hold(2, "a", "consumer")
    groups.wait("a", 3, redelivered=False)
    assert groups.release(1) == "a"
    assert groups.first_free() == NOTHING
    assert groups.release(2) == "a"
    assert groups.first_free() == 3
    assert groups.first_of("consumer") == NOTHING
    assert groups.take(3) == ("a", False)
    assert len(groups) == groups.count == 0


def test_a_requeued_message_blocks_its_key_until_the_rest_is_back_or_settled() -> None:
    groups = OrderingKeys()
    for position in (1, 2, 3):
        groups.hold(position, "a", "consumer")
    groups.wait("a", 4, redelivered=False)
    groups.release(2)
    groups.restore("a", 2, redelivered=True)
    assert groups.first_of("consumer") == groups.first_free() == NOTHING
    groups.release(1)
    groups.wait("a", 5, redelivered=False)
    assert groups.first_of("consumer") == groups.first_free() == NOTHING
    groups.release(3)
    groups.restore("a", 3, redelivered=True)
    assert groups.positions() == [2, 3, 4, 5]
    assert groups.first_free() == 2


def test_a_holder_goes_on_with_its_own_key_unless_something_of_it_waits_or_it_is_blocked() -> None:
    groups = OrderingKeys()
    assert not groups.goes_on("a", "group")
    groups.hold(1, "a", "group")
    groups.hold(2, "a", "group")
    assert groups.goes_on("a", "group")
    assert not groups.goes_on("a", "other")
    groups.wait("a", 5, redelivered=False)
    assert not groups.goes_on("a", "group")
    groups.take(5)
    groups.pause(2)
    assert not groups.goes_on("a", "group")


def test_a_message_that_waits_for_its_retry_does_not_take_a_key_from_its_holder() -> None:
    groups = OrderingKeys()
    groups.hold(1, "a", "group")
    groups.wait("a", 3, redelivered=False)
    groups.hold(2, "a", "queue")
    groups.pause(2)
    assert groups.first_of("group") == groups.first_of("queue") == groups.first_free() == NOTHING
    groups.release(2)
    groups.release(1)
    assert groups.first_free() == 3


def test_a_message_may_leave_from_between_others_and_come_again() -> None:
    groups = OrderingKeys()
    for position in (3, 5, 7):
        groups.wait("a", position, redelivered=False)
    groups.take(5)
    groups.wait("a", 5, redelivered=True)
    found = []
    while (position := groups.first_free()) != NOTHING:
        found.append((position, groups.take(position)[1]))
    assert found == [(3, False), (5, True), (7, False)]
    assert len(groups) == groups.count == 0


def test_the_oldest_of_all_that_wait_is_known() -> None:
    groups = OrderingKeys()
    assert groups.oldest() == NOTHING
    for key, position in (("a", 7), ("b", 2), ("a", 4)):
        groups.wait(key, position, redelivered=False)
    assert groups.oldest() == 2
    groups.take(2)
    assert groups.oldest() == 4
    for _ in range(3_000):
        groups.take(4)
        groups.wait("a", 4, redelivered=True)
    assert (groups.oldest(), groups.count, len(groups)) == (4, 2, 1)


def test_a_message_without_a_key_is_nobodys() -> None:
    assert OrderingKeys().release(3) is None
