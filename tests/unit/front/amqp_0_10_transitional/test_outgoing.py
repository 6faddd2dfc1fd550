"""Messages on their way out: whole where they fit a frame, by reference where they do not."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.message import Message
from harebell.front.amqp_0_10_transitional.outgoing import commands_of, transfer_of
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from harebell.wire.v09.methods_transitional import MessageAppend, MessageClose, MessageOpen
from harebell.wire.v09.transfer import (
    TransferProperties,
    decode_transfer,
    encode_transfer,
    parse_transfer,
    read_transfer,
    write_transfer,
)
from harebell.wire.v09.transitional_types import INLINE, REFERENCE
from harebell.wire.v09.typed_fields import FieldDialect


def message(body: bytes = b"body", **properties: Any) -> Message:
    """A message that was transferred."""
    raw = encode_transfer(TransferProperties(**properties))
    return Message("x", "k", parse_transfer(raw), body)


def basic(**properties: Any) -> Message:
    """A message of class basic."""
    raw = encode_properties(BasicProperties(**properties))
    return Message("x", "k", parse_properties(raw), b"body")


def test_a_transfer_says_where_it_goes_and_where_it_came_from():
    found = transfer_of(message(app_id="a"), "d", True, FieldDialect.PLAIN)
    assert (found.destination, found.redelivered, found.exchange) == ("d", True, "x")
    assert (found.routing_key, found.content_length) == ("k", 4)
    assert (found.kind, found.value) == (INLINE, b"body")
    assert decode_transfer(found.raw) == TransferProperties(app_id="a")


def test_a_message_of_class_basic_is_transferred_too():
    found = transfer_of(basic(correlation_id="c", headers={"a": 1}), "d", False, FieldDialect.PLAIN)
    properties = TransferProperties(correlation_id="c", application_headers={"a": 1})
    assert decode_transfer(found.raw) == properties


def test_the_expiration_is_when_the_message_will_be_gone():
    given = message(ttl=60_000, expiration=5)
    given.due = 1_186_000_000_001
    found = decode_transfer(transfer_of(given, "d", False, FieldDialect.PLAIN).raw)
    assert (found.ttl, found.expiration) == (60_000, 1_186_000_001)


@pytest.mark.parametrize(
    ("dialect", "shown"),
    [(FieldDialect.PLAIN, "true"), (FieldDialect.LETTERS, True), (FieldDialect.TYPED, True)],
)
def test_headers_are_written_as_the_peer_can_read_them(dialect: FieldDialect, shown: Any):
    given = message(application_headers={"a": True})
    found = decode_transfer(transfer_of(given, "d", False, dialect).raw).application_headers
    assert found == {"a": shown}
    assert found.dialect <= dialect


def test_headers_that_the_peer_can_read_are_not_touched():
    raw = encode_transfer(
        TransferProperties(application_headers={"a": 1}), None, FieldDialect.LETTERS
    )
    given = Message("x", "k", parse_transfer(raw), b"")
    for dialect in FieldDialect:
        assert transfer_of(given, "d", False, dialect).raw == raw


def test_a_field_that_only_a_delivery_has_is_a_header():
    given = message(application_headers={"a": 1})
    given.offset, given.deliveries = 7, 2
    found = decode_transfer(transfer_of(given, "d", False, FieldDialect.PLAIN).raw)
    headers = {"a": 1, "x-stream-offset": 7, "x-delivery-count": 2}
    assert found.application_headers == headers


def test_a_message_that_fits_a_frame_goes_inline():
    found = transfer_of(message(b"x" * 100), "d", False, FieldDialect.PLAIN)
    whole = write_transfer(found)
    assert commands_of(found, b"r", len(whole)) == [whole]


@pytest.mark.parametrize("size", [101, 5000])
def test_a_message_that_does_not_fit_goes_by_reference(size: int):
    body = bytes(at % 251 for at in range(size))
    found = transfer_of(message(body, message_id="m"), "d", False, FieldDialect.PLAIN)
    room = len(write_transfer(found)) - 1 if size == 101 else 200
    payloads = commands_of(found, b"r", room)
    assert all(len(payload) <= room for payload in payloads)
    decode = AMQP_0_10_TRANSITIONAL.decode
    assert decode(payloads[0]) == MessageOpen(reference=b"r")
    sent = read_transfer(payloads[1])
    assert (sent.kind, sent.value, sent.content_length) == (REFERENCE, b"r", size)
    assert (sent.destination, decode_transfer(sent.raw).message_id) == ("d", "m")
    appended = [decode(payload) for payload in payloads[2:-1]]
    assert all(isinstance(each, MessageAppend) and each.reference == b"r" for each in appended)
    assert b"".join(each.octets for each in appended) == body  # type: ignore[attr-defined]
    assert decode(payloads[-1]) == MessageClose(reference=b"r")
