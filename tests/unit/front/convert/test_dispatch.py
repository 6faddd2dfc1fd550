"""A message is converted when its peer is of another family, and once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harebell.base.bcc import hidden
from harebell.base.errors import Refusal
from harebell.base.message import FAMILY_09, Message
from harebell.front.convert import converted, dispatch, expiration_of, forwarded, headers_of
from harebell.front.limits import CONVERSIONS_KEPT_BYTES
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.unit.front.convert import reversed_family
from tests.unit.front.convert.reversed_family import FAMILY


@pytest.fixture(autouse=True)
def family(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A family that exists for the tests alone."""
    monkeypatch.setitem(dispatch.MODULES, FAMILY, reversed_family.__name__)
    reversed_family.calls.clear()
    dispatch.forget()
    yield
    dispatch.forget()


def message(properties: BasicProperties, body: bytes = b"body", key: str = "k") -> Message:
    """A message of class basic."""
    return Message("x", key, parse_properties(encode_properties(properties)), body)


def test_a_message_of_the_family_that_is_wanted_is_left_alone() -> None:
    original = message(BasicProperties(priority=3))
    assert converted(original, FAMILY_09) is original
    assert not reversed_family.calls


def test_another_family_gets_its_own_list_and_the_same_body() -> None:
    original = message(BasicProperties(priority=3, delivery_mode=2, headers={"a": 1}))
    twin = converted(original, FAMILY)
    assert (twin.family, twin.raw) == (FAMILY, original.raw[::-1])
    assert twin.body is original.body
    assert (twin.exchange, twin.routing_key) == ("x", "k")
    assert (twin.priority, twin.delivery_mode, twin.has_headers) == (3, 2, True)
    back = converted(twin, FAMILY_09)
    assert (back.family, back.raw) == (FAMILY_09, original.raw)


def test_blind_keys_are_left_out_for_every_family() -> None:
    headers = {"CC": ["seen"], "BCC": ["hidden"]}
    original = message(BasicProperties(priority=3, delivery_mode=2, headers=headers))
    told = BasicProperties(priority=3, delivery_mode=2, headers={"CC": ["seen"]})
    kept = hidden(original)
    kept.deliveries = 4
    found = converted(kept, FAMILY_09)
    assert (found.family, found.raw, found.deliveries) == (FAMILY_09, encode_properties(told), 4)
    assert converted(kept, FAMILY).raw == encode_properties(told)[::-1]
    assert headers_of(kept) == {"CC": ["seen"]}


def test_facts_of_the_delivery_go_along() -> None:
    original = message(BasicProperties())
    original.timestamp, original.offset, original.origin = 1, 2, 3
    original.deliveries, original.due = 4, 5
    twin = converted(original, FAMILY)
    assert (twin.timestamp, twin.offset, twin.origin, twin.deliveries, twin.due) == (1, 2, 3, 4, 5)


def test_many_consumers_of_one_message_cost_one_conversion() -> None:
    original = message(BasicProperties(priority=3))
    raws = {converted(original, FAMILY).raw for _ in range(10)}
    assert len(raws) == 1
    assert len(reversed_family.calls) == 1


def test_messages_that_differ_in_their_bodies_alone_cost_one_conversion() -> None:
    bodies = [b"a", b"b", b"c"]
    twins = [converted(message(BasicProperties(priority=3), body), FAMILY) for body in bodies]
    assert [twin.body for twin in twins] == bodies
    assert len(reversed_family.calls) == 1


def test_another_routing_key_is_another_message() -> None:
    keys = ["a", "b"]
    twins = [converted(message(BasicProperties(), key=key), FAMILY) for key in keys]
    assert [twin.routing_key for twin in twins] == keys
    assert len(reversed_family.calls) == 2


def test_a_list_too_long_to_remember_is_converted_all_the_same() -> None:
    original = message(BasicProperties(headers={"a": "x" * CONVERSIONS_KEPT_BYTES}))
    for _ in range(2):
        assert converted(original, FAMILY).raw == original.raw[::-1]
    assert len(reversed_family.calls) == 2


def test_a_family_from_the_future_is_refused_by_its_number() -> None:
    original = message(BasicProperties())
    with pytest.raises(Refusal, match="unknown protocol family 4711"):
        converted(original, 4711)


def test_the_model_reads_any_family_in_the_words_of_basic() -> None:
    original = message(BasicProperties(headers={"a": 1}, expiration="99"))
    twin = converted(original, FAMILY)
    assert headers_of(twin) == {"a": 1}
    assert expiration_of(twin) == "99"


def test_a_message_republished_with_other_headers_goes_on_as_basic() -> None:
    twin = converted(message(BasicProperties(headers={"a": 1}, expiration="99")), FAMILY)
    copy = forwarded(twin, "y", "l", {"b": 2})
    assert (copy.family, copy.exchange, copy.routing_key) == (FAMILY_09, "y", "l")
    assert (headers_of(copy), expiration_of(copy)) == ({"a": 1, "b": 2}, None)
    assert copy.body == b"body"
