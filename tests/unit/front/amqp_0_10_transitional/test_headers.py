"""Header tables between the letters of 0-9-1 and what a peer of transitional 0-10 knows."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.message import Message
from harebell.front.amqp_0_10_transitional.headers import lettered_header, shown
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, decode_typed, encode_typed

FIXED = bytes.fromhex("003c0000") + (5).to_bytes(8)


class Noted:
    """What a connection notes of the types that its peer knows."""

    def __init__(self, dialect: FieldDialect = FieldDialect.PLAIN) -> None:
        self.dialect = dialect

    def note_dialect(self, table: object) -> None:
        assert isinstance(table, TypedTable)
        self.dialect = max(self.dialect, table.dialect)


def raw(headers: bytes) -> bytes:
    """A property list with a content type, an encoded header table, and a priority."""
    return b"\xa8\x00" + b"\x04text" + headers + b"\x05"


def message(properties: bytes, **fields: Any) -> Message:
    made = Message("e", "k", parse_properties(properties), b"body")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_types_of_the_document_become_letters():
    noted = Noted()
    headers = encode_typed({"n": 1, "t": "x"}, FieldDialect.TYPED)
    changed = lettered_header(noted, FIXED + raw(headers))  # type: ignore[arg-type]
    found = decode_properties(changed[12:])
    assert (found.content_type, found.headers, found.priority) == ("text", {"n": 1, "t": "x"}, 5)
    assert noted.dialect is FieldDialect.TYPED


def test_letters_stay_as_they_came():
    noted = Noted()
    payload = FIXED + raw(encode_typed({"b": True}, FieldDialect.LETTERS))
    assert lettered_header(noted, payload) is payload  # type: ignore[arg-type]
    assert noted.dialect is FieldDialect.LETTERS


@pytest.mark.parametrize("properties", [b"", b"\xa0", b"\xa0\0", b"\xa0\0\x04text\0\0\0\xff"])
def test_a_header_that_is_cut_off_is_left_to_the_next_reader(properties: bytes):
    payload = FIXED + properties
    assert lettered_header(Noted(), payload) == payload  # type: ignore[arg-type]


def test_a_plain_peer_is_shown_texts_and_numbers():
    properties = BasicProperties(content_type="text", headers={"b": True, "n": 7}, priority=5)
    found = shown(Noted(), message(encode_properties(properties)))  # type: ignore[arg-type]
    assert decode_properties(found.raw) == BasicProperties(
        content_type="text", headers={"b": "true", "n": 7}, priority=5
    )


def test_a_message_that_a_plain_peer_can_read_is_the_message_itself():
    properties = BasicProperties(headers={"s": "text", "n": 7})
    original = message(encode_properties(properties))
    assert shown(Noted(), original) is original  # type: ignore[arg-type]


def test_a_peer_that_knows_letters_gets_every_message_as_it_is():
    original = message(encode_properties(BasicProperties(headers={"b": True})), offset=3)
    assert shown(Noted(FieldDialect.LETTERS), original) is original  # type: ignore[arg-type]


def test_a_peer_of_the_document_is_shown_its_types():
    original = message(encode_properties(BasicProperties(headers={"b": True})))
    found = shown(Noted(FieldDialect.TYPED), original)  # type: ignore[arg-type]
    table, _ = decode_typed(found.raw, 2)
    assert (table, table.dialect) == ({"b": True}, FieldDialect.TYPED)


@pytest.mark.parametrize("properties", [BasicProperties(priority=5), BasicProperties(headers={})])
def test_fields_that_only_a_delivery_has_become_part_of_the_headers(properties: BasicProperties):
    original = message(encode_properties(properties), offset=3, deliveries=2)
    found = shown(Noted(), original)  # type: ignore[arg-type]
    decoded = decode_properties(found.raw)
    assert decoded.headers == {"x-stream-offset": 3, "x-delivery-count": 2}
    assert decoded.priority == properties.priority
    assert (found.offset, found.deliveries) == (-1, 0)
