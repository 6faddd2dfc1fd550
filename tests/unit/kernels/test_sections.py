"""Sections of messages of AMQP 1.0: borders, checks, what the broker reads, and both kernels."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harebell.base.errors import DecodeError
from harebell.kernels.limits import MESSAGE_SECTIONS
from harebell.wire.v1.composites import Header, Properties
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.sections import (
    data_section,
    encode_message,
    encode_sections,
    sequence_section,
    value_section,
)
from harebell.wire.v1.values import Array, Described, Symbol, UInt, ULong
from tests.unit.kernels.performative_frames import said
from tests.unit.kernels.twins import told, twin, used

TWIN = twin("sections")
USED = used("sections")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
DATA = data_section(b"hi")
BEFORE = encode_sections(
    Header(durable=True), {"x-opt-a": 1}, Properties(message_id="m"), {"key": "value"}
)
DELIVERY_ANNOTATIONS = b"\0\x53\x71\xc1\x05\x02\xa3\x01d\x41"
FOOTER = b"\0\x53\x78\xc1\x05\x02\xa3\x01f\x41"


@BOTH
@pytest.mark.rule("1.0#125")
def test_a_message_with_one_data_section_is_its_content(module: Any) -> None:
    assert module.split(BEFORE + DATA) == (BEFORE, b"hi", 100)
    assert module.split(DATA) == (b"", b"hi", 100)
    assert module.split(data_section(b"")) == (b"", b"", 100)


@BOTH
@pytest.mark.parametrize("size", [0, 1, 255, 256, 70_000])
def test_a_long_body_is_its_content_too(module: Any, size: int) -> None:
    assert module.split(BEFORE + data_section(b"x" * size)) == (BEFORE, b"x" * size, 100)


@BOTH
@pytest.mark.rule("1.0#124", "1.0#125", "1.0#139")
@pytest.mark.parametrize(
    "body",
    [
        DATA + DATA,
        sequence_section([1]) + sequence_section([2]),
        value_section(None),
        value_section({"a": [1]}),
        DATA + FOOTER,
        b"\0\x53\x75\xb0\0\0\0\x02hi",
        b"\0\x80\0\0\0\0\0\0\0\x75\xa0\x02hi",
        b"\0\xa3\x10amqp:data:binary\xa0\x02hi",
    ],
)
def test_every_other_body_stays_encoded(module: Any, body: bytes) -> None:
    assert module.split(BEFORE + body) == (BEFORE, body, 101)


@BOTH
@pytest.mark.rule("1.0#131")
def test_delivery_annotations_are_dropped(module: Any) -> None:
    header = encode_sections(Header(durable=True))
    rest = BEFORE.removeprefix(header)
    assert module.split(header + DELIVERY_ANNOTATIONS + rest + DATA) == (BEFORE, b"hi", 100)
    assert module.split(DELIVERY_ANNOTATIONS + DATA) == (b"", b"hi", 100)


@BOTH
@pytest.mark.rule("1.0#009")
def test_a_section_may_be_named_by_its_symbol(module: Any) -> None:
    raw = b"".join(
        b"\0" + encode(Symbol(name)) + value
        for name, value in (
            ("amqp:header:list", b"\xc0\x04\x02\x41\x50\x07"),
            ("amqp:message-annotations:map", encode({Symbol("x-cc"): ["a"]})),
            ("amqp:properties:list", encode(["m"])),
            ("amqp:application-properties:map", encode({"a": 1})),
        )
    )
    assert module.split(raw + DATA) == (raw, b"hi", 100)
    assert told(module.parse_properties(raw)) == (raw, 2, 7, True, True)


REFUSED = [
    (b"", "message: there is no body"),
    (BEFORE, "message: there is no body"),
    (b"\x40", "message: what is no section"),
    (b"\0\x53\x79\x45", "message: a section that is not known"),
    (b"\0\xa1\x01x\x45", "message: a section that is not known"),
    (b"\0\x53\x10\x45" + DATA, "message: a section that is not known"),
    (DATA + BEFORE, "message: header after data"),
    (FOOTER + DATA, "message: data after footer"),
    (DATA + FOOTER + FOOTER, "message: footer after footer"),
    (value_section(1) + value_section(2), "message: amqp-value after amqp-value"),
    (DATA + sequence_section([]), "message: amqp-sequence after data"),
    (DATA + value_section(1), "message: amqp-value after data"),
    (b"\0\x53\x73\x45\0\x53\x70\x45" + DATA, "message: header after properties"),
    (b"\0\x53\x70\x45\0\x53\x70\x45" + DATA, "message: header after header"),
    (b"\0\x53\x70\xc1\x01\0" + DATA, "header: a value of format code 0xc1"),
    (b"\0\x53\x75\xa1\x01x", "data: a value of format code 0xa1"),
    (b"\0\x53\x76\x40", "amqp-sequence: a value of format code 0x40"),
    (b"\0\x53\x75\xa0\x05x", "data: a value of 6 octets, of which 2 are there"),
    (b"\0\x53\x77", "amqp-value: a value without a constructor"),
]


@BOTH
@pytest.mark.rule("1.0#123", "1.0#124")
@pytest.mark.parametrize(("payload", "text"), REFUSED)
def test_sections_out_of_order_are_refused(module: Any, payload: bytes, text: str) -> None:
    assert said(module.split, payload) == ("amqp:decode-error", text)


@BOTH
def test_a_message_may_have_as_many_sections_as_the_limit_says(module: Any) -> None:
    body = data_section(b"") * MESSAGE_SECTIONS
    assert module.split(body) == (b"", body, 101)
    more = body + data_section(b"")
    assert said(module.split, more)[1] == "message: more than 4096 sections"


@BOTH
@pytest.mark.rule("1.0#126")
@pytest.mark.parametrize(
    ("sections", "mode", "priority", "headers", "suspect"),
    [
        ((None,), 0, -1, False, False),
        ((Header(),), 1, -1, False, False),
        ((Header(durable=True),), 2, -1, False, False),
        ((Header(priority=0),), 1, 0, False, False),
        ((Header(durable=True, priority=255),), 2, 255, False, False),
        ((Header(ttl=0),), 1, -1, False, True),
        ((Header(ttl=70_000),), 1, -1, False, True),
        ((Header(first_acquirer=True, delivery_count=3),), 1, -1, False, False),
        ((None, None, Properties(message_id="m", to="t", reply_to="r")), 0, -1, False, False),
        ((None, None, Properties(user_id=b"u")), 0, -1, False, True),
        ((None, None, Properties(absolute_expiry_time=5)), 0, -1, False, True),
        ((None, None, None, {"a": 1}), 0, -1, True, False),
        ((None, {"x-opt-jms-msg-type": 1}), 0, -1, True, False),
        ((None, {"x-basic-type": "t", "x-a": 1}), 0, -1, True, False),
        ((None, {"x-cc": ["a"]}), 0, -1, True, True),
        ((None, {"x-a": 1, "x-bcc": ["a"]}), 0, -1, True, True),
        ((None, {"x-opt-delivery-time": 1}), 0, -1, True, True),
        ((None, {"x-opt-delivery-delay": 1}), 0, -1, True, True),
        ((None, {"x-qpid-not-valid-before": 1}), 0, -1, True, True),
        ((None, {"y": 1}), 0, -1, True, True),
        ((None, {ULong(1): 1}), 0, -1, True, True),
        ((None, {"x" * 300: 1}), 0, -1, True, True),
    ],
)
def test_what_the_broker_needs_is_read(
    module: Any, sections: Any, mode: int, priority: int, headers: bool, suspect: bool
) -> None:
    raw = encode_sections(*sections)
    properties = module.parse_properties(raw, 101)
    assert told(properties) == (raw, mode, priority, headers, suspect)
    assert properties.family == 101


@BOTH
def test_a_footer_is_only_checked(module: Any) -> None:
    raw = encode_sections(Header(durable=True)) + FOOTER
    assert told(module.parse_properties(raw)) == (raw, 2, -1, False, False)
    malformed = FOOTER[:-1] + b"\x46"
    assert said(module.parse_properties, malformed)[1] == "footer: unknown format code 0x46"


@BOTH
@pytest.mark.rule("1.0#004")
def test_booleans_have_two_encodings(module: Any) -> None:
    assert module.parse_properties(b"\0\x53\x70\xc0\x03\x01\x56\x01").delivery_mode == 2
    assert module.parse_properties(b"\0\x53\x70\xc0\x03\x01\x56\x00").delivery_mode == 1


def _described(code: int, value: Any) -> bytes:
    return encode(Described(ULong(code), value))


UNREADABLE = [
    (_described(0x70, [1]), "header: durable: a value of format code 0x55"),
    (_described(0x70, [None, UInt(4)]), "header: priority: a value of format code 0x52"),
    (_described(0x70, [None] * 6), "header: 6 fields, at most 5 may be"),
    (b"\0\x53\x70\xc0\x03\x01\x56\x02", "header: durable: a boolean 0x02"),
    (b"\0\x53\x70\xc0\x03\x01\x40\x40", "header: 1 octets after the last value of a list"),
    (b"\0\x53\x70\xc0\x01\x01", "header: durable: a value without a constructor"),
    (
        b"\0\x53\x70\xc0\x00",
        "header: a list, map or array whose size leaves no room for its count",
    ),
    (_described(0x73, [1]), "properties: message-id: a value of format code 0x55"),
    (_described(0x73, [None, "u"]), "properties: user-id: a value of format code 0xa1"),
    (_described(0x73, [None] * 14), "properties: 14 fields, at most 13 may be"),
    (b"\0\x53\x73\xc0\x04\x01\xa1\x01\xff", "properties: message-id: a string that is not UTF-8"),
    (
        _described(0x73, [None] * 6 + ["text"]),
        "properties: content-type: a value of format code 0xa1",
    ),
    (_described(0x74, {Symbol("a"): 1}), "application-properties: a key of format code 0xa3"),
    (_described(0x74, {"a": [1]}), "application-properties: a value of format code 0xc0"),
    (_described(0x74, {"a": []}), "application-properties: a value of format code 0x45"),
    (_described(0x74, {"a": {}}), "application-properties: a value of format code 0xc1"),
    (_described(0x74, {"a": Array(0x50)}), "application-properties: a value of format code 0xe0"),
    (
        _described(0x74, {"a": Described(ULong(1), 1)}),
        "application-properties: a value of format code 0x00",
    ),
    (
        b"\0\x53\x72\xc1\x04\x01\xa3\x01x",
        "message-annotations: a map of 1 values, which are no pairs",
    ),
    (
        b"\0\x53\x72\xc1\x05\x02\xa3\x01\xff\x40",
        "message-annotations: a symbol that is not ASCII",
    ),
    (
        b"\0\x53\x72\xc1\x07\x02\xa3\x01x\xa1\x01\xff",
        "message-annotations: a string that is not UTF-8",
    ),
    (
        b"\0\x53\x72\xc1\x03\x02\x45\x40",
        "message-annotations: a map with a list, map or array as a key",
    ),
    (DATA, "message: data before the body"),
]


@BOTH
@pytest.mark.rule("1.0#010", "1.0#123", "1.0#134", "1.0#135")
@pytest.mark.parametrize(("raw", "text"), UNREADABLE)
def test_a_malformed_section_is_refused_by_name(module: Any, raw: bytes, text: str) -> None:
    assert said(module.parse_properties, raw) == ("amqp:decode-error", text)


@BOTH
def test_a_value_is_skipped_without_a_look_into_it(module: Any) -> None:
    octets = encode({"a": [1, "b"], "c": Described(Symbol("d"), b"e")})
    assert module.skip(b"\x40" + octets + b"\x40", 1, len(octets) + 2) == len(octets) + 1
    assert module.skip(b"\xc0\x02\xff\xff", 0, 4) == 4
    with pytest.raises(DecodeError, match="unknown format code 0xff"):
        module.check(b"\xc0\x02\x01\xff", 0, 4)


def test_both_kernels_say_the_same_of_random_changes() -> None:
    rng = Random(100)
    whole = encode_message(
        data_section(b"hi"),
        Header(durable=True, priority=4, ttl=5),
        {"x-opt-a": [1, {"k": Array(0x50)}], "x-cc": "é"},
        Properties(message_id="m", user_id=b"u", creation_time=5),
        {"a": 1, "b": Symbol("c")},
    )
    sections = (whole, whole.replace(DATA, value_section([1, None])), BEFORE + DATA + FOOTER)
    for _ in range(3_000):
        payload = bytearray(rng.choice(sections))
        for _ in range(rng.randrange(3)):
            payload[rng.randrange(len(payload))] = rng.choice(
                b"\0\x01\x02\x40\x45\x53\x56\x70\x73\x75\x78\xa0\xa1\xa3\xb0\xc0\xc1\xd1\xe0\xf0\xff"
            )
        outcome = said(USED.split, bytes(payload))
        assert outcome == said(TWIN.split, bytes(payload))
        if len(outcome) == 3:
            read = [said(module.parse_properties, outcome[0]) for module in (USED, TWIN)]
            both = [each if isinstance(each, tuple) else told(each) for each in read]
            assert both[0] == both[1]
