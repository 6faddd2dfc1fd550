"""Messages of AMQP 1.0 for tests, and what is in them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from harebell.base.message import Message
from harebell.kernels.sections import parse_properties, split
from harebell.wire.v1 import values as v
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.sections import (
    Sections,
    body_sections,
    data_section,
    encode_message,
    sequence_section,
    value_section,
)

FOOTER = b"\0\x53\x78\xc1\x0b\x02\xa3\x05x-sum\xa0\x01\x07"
CHARACTERS = st.characters(codec="utf-8")
TEXTS = st.text(CHARACTERS, max_size=8)
ASCII = st.text(st.characters(max_codepoint=126, min_codepoint=33), max_size=8)
SIMPLE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 255).map(v.UByte),
    st.integers(0, 2**16 - 1).map(v.UShort),
    st.integers(0, 2**32 - 1).map(v.UInt),
    st.integers(0, 2**64 - 1).map(v.ULong),
    st.integers(-128, 127).map(v.Byte),
    st.integers(-(2**15), 2**15 - 1).map(v.Short),
    st.integers(-(2**31), 2**31 - 1).map(v.Int),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(v.Float),
    CHARACTERS.map(v.Char),
    st.integers(-(2**63), 2**63 - 1).map(v.Timestamp),
    st.integers(0, 2**40).map(lambda seconds: v.Timestamp(seconds * 1000)),
    st.binary(min_size=4, max_size=4).map(v.Decimal32),
    st.binary(min_size=8, max_size=8).map(v.Decimal64),
    st.binary(min_size=16, max_size=16).map(v.Decimal128),
    st.uuids(),
    st.binary(max_size=8),
    TEXTS,
    ASCII.map(v.Symbol),
)
"""Values of every type that holds no others."""
VALUES = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(TEXTS | ASCII.map(v.Symbol) | st.integers(0, 9), inner, max_size=3),
        st.lists(st.integers(0, 2**32 - 1).map(v.UInt), max_size=3).map(
            lambda items: v.Array(0x70, items)
        ),
        inner.map(lambda value: v.Described(v.Symbol("x:y"), value)),
    ),
    max_leaves=6,
)
IDS = st.one_of(
    st.none(),
    TEXTS,
    st.text("ab", min_size=250, max_size=300),
    st.uuids(),
    st.uuids().map(lambda uuid: f"urn:uuid:{uuid}"),
    st.integers(0, 2**64 - 1).map(v.ULong),
    st.binary(max_size=300),
    TEXTS.map(str.encode),
)
OPTIONAL = st.none() | TEXTS | st.text("xé", min_size=120, max_size=300)
ADDRESSES = st.one_of(
    OPTIONAL,
    TEXTS.map(lambda name: f"/queues/{name}"),
    TEXTS.map(lambda name: f"/exchanges/{name}/k"),
    st.sampled_from(
        ("/queues/a%2Fb", "/queues/%41", "/exchanges/x", "/exchanges/x/", "/exchanges/")
    ),
)
MOMENTS = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2**31).map(lambda s: s * 1000)
)
HEADERS = st.none() | st.builds(
    Header,
    durable=st.booleans(),
    priority=st.integers(0, 255),
    ttl=st.none() | st.integers(0, 2**32 - 1),
)
FIELDS = st.none() | st.builds(
    Properties,
    message_id=IDS,
    user_id=st.none() | st.binary(max_size=300),
    to=ADDRESSES,
    subject=OPTIONAL,
    reply_to=ADDRESSES,
    correlation_id=IDS,
    content_type=st.none() | ASCII,
    content_encoding=st.none() | ASCII,
    absolute_expiry_time=MOMENTS,
    creation_time=MOMENTS,
    group_id=OPTIONAL,
    group_sequence=st.none() | st.integers(0, 2**32 - 1),
    reply_to_group_id=OPTIONAL,
)
KEYS = st.one_of(
    ASCII.map(lambda key: v.Symbol(f"x-{key}")),
    ASCII.map(v.Symbol),
    st.integers(0, 2**64 - 1).map(v.ULong),
    st.sampled_from(("x-cc", "x-opt-deaths", "x-basic-type", "CC", "BCC", "x-death", "a")).map(
        v.Symbol
    ),
    st.just(v.Symbol("x-" + "k" * 300)),
)
NAMES = st.one_of(TEXTS, ASCII.map(lambda key: f"x-{key}"), st.sampled_from(("CC", "a", "é" * 200)))
BODIES = st.one_of(
    st.binary(max_size=300).map(data_section),
    st.lists(st.binary(max_size=9), min_size=1, max_size=3).map(
        lambda parts: b"".join(map(data_section, parts))
    ),
    VALUES.map(value_section),
    st.lists(st.lists(VALUES, max_size=2), min_size=1, max_size=2).map(
        lambda parts: b"".join(map(sequence_section, parts))
    ),
)


def message_of(payload: bytes) -> Message:
    """Return the message that the broker keeps of a transfer."""
    raw, body, family = split(payload)
    return Message("x", "k", parse_properties(raw, family), body)


MESSAGES = st.builds(
    encode_message,
    st.tuples(BODIES, st.sampled_from((b"", FOOTER))).map(b"".join),
    HEADERS,
    st.dictionaries(KEYS, VALUES, max_size=4),
    FIELDS,
    st.dictionaries(NAMES, SIMPLE, max_size=4),
).map(message_of)
"""Messages of 1.0 with anything that the specification allows in them."""


def typed(value: Any) -> Any:
    """Return a value together with the types of everything in it."""
    if isinstance(value, dict):
        return "dict", {(type(key), key): typed(inner) for key, inner in value.items()}
    if isinstance(value, v.Array):
        return v.Array, value.code, value.descriptors, [typed(each) for each in value]
    if isinstance(value, v.Described):
        return v.Described, typed(value.descriptor), typed(value.value)
    if isinstance(value, list):
        return list, [typed(each) for each in value]
    return type(value), UUID(bytes=value.bytes) if isinstance(value, UUID) else value


def contents(message: Message) -> dict[str, Any]:
    """Return what is in a message of 1.0, each value with its type."""
    sections = Sections(message.raw)
    header, fields = sections.header(), sections.properties()
    return {
        "header": (header.durable, header.priority, header.ttl),
        "annotations": typed(sections.message_annotations()),
        "properties": {name: typed(getattr(fields, name)) for name in fields.__struct_fields__},
        "application": typed(sections.application_properties()),
        "body": [
            (each.code, typed(each.value)) for each in body_sections(message.body, message.family)
        ],
    }
