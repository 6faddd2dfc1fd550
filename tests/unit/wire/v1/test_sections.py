"""Sections of messages of AMQP 1.0, decoded when they are asked for, and written."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from harebell.base.errors import DecodeError
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.sections import (
    APPLICATION_PROPERTIES,
    DATA,
    FOOTER,
    HEADER,
    MESSAGE_ANNOTATIONS,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    Sections,
    body_sections,
    data_section,
    encode_message,
    encode_sections,
    parse_properties,
    sequence_section,
    split,
    value_section,
)
from harebell.wire.v1.values import Symbol, UInt, ULong

ALL: tuple[Any, ...] = (
    Header(True, 7, 5, True, 3),
    {"x-opt-a": [1], ULong(5): "b"},
    Properties(message_id=ULong(5), subject="s"),
    {"a": 1, "b": UInt(2)},
)


def test_every_section_is_decoded_as_it_was_written() -> None:
    sections = Sections(encode_sections(*ALL))
    assert sections.header() == ALL[0]
    assert sections.message_annotations() == {Symbol("x-opt-a"): [1], ULong(5): "b"}
    assert [type(key) for key in sections.message_annotations()] == [Symbol, ULong]
    assert sections.properties() == ALL[2]
    assert sections.application_properties() == ALL[3]
    assert sections.octets(HEADER) == b"\xc0\x09\x05\x41\x50\x07\x52\x05\x41\x52\x03"
    for code in (HEADER, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES):
        assert code in sections


@pytest.mark.rule("1.0#126")
def test_sections_that_are_not_there_are_empty() -> None:
    sections = Sections(b"")
    assert sections.header() == Header()
    assert sections.properties() == Properties()
    assert sections.message_annotations() == sections.application_properties() == {}
    assert sections.octets(PROPERTIES) == b""
    assert PROPERTIES not in sections
    assert encode_sections(None, {}, None, {}) == b""


@pytest.mark.rule("1.0#135")
@pytest.mark.parametrize("number", [ULong(1), UUID(int=1), b"1", "1"])
def test_the_kind_of_a_message_id_is_kept(number: Any) -> None:
    raw = encode_sections(properties=Properties(message_id=number, correlation_id=number))
    parse_properties(raw)
    read = Sections(raw).properties()
    assert (read.message_id, read.correlation_id) == (number, number)
    assert type(read.message_id) is type(read.correlation_id) is type(number)


def test_of_equal_keys_in_a_message_the_last_counts() -> None:
    raw = b"\0\x53\x74\xc1\x0b\x04\xa1\x01a\x55\x01\xa1\x01a\x55\x02"
    parse_properties(raw)
    assert Sections(raw).application_properties() == {"a": 2}


def test_a_malformed_section_fails_when_it_is_decoded() -> None:
    raw = b"\0\x53\x70\xc0\x03\x01\x55\x01" + encode_sections(properties=Properties(subject="s"))
    sections = Sections(raw)
    assert sections.properties().subject == "s"
    with pytest.raises(DecodeError, match="header: durable: must be boolean, not long"):
        sections.header()
    with pytest.raises(DecodeError, match="what is no section"):
        Sections(b"\x40")


def test_bodies_are_read_section_by_section() -> None:
    body = data_section(b"a") + data_section(b"b") + b"\0\x53\x78\xc1\x05\x02\xa3\x01f\x41"
    _, kept, family = split(encode_message(body, *ALL))
    assert list(body_sections(kept, family)) == [(DATA, b"a"), (DATA, b"b"), (FOOTER, {"f": True})]
    _, kept, family = split(encode_message(data_section(b"a")))
    assert list(body_sections(kept, family)) == [(DATA, b"a")]
    _, kept, family = split(sequence_section([1, "b"]) + sequence_section([]))
    assert list(body_sections(kept, family)) == [(SEQUENCE, [1, "b"]), (SEQUENCE, [])]
    _, kept, family = split(value_section(None))
    assert list(body_sections(kept, family)) == [(VALUE, None)]


def test_a_message_is_its_sections_and_its_body() -> None:
    message = encode_message(data_section(b"hi"), *ALL)
    assert split(message) == (encode_sections(*ALL), b"hi", 100)
