"""Fuzzed: messages of 1.0 and property lists of class basic, converted to each other."""

from __future__ import annotations

from harebell.base.errors import DecodeError, ProtocolError
from harebell.base.message import FAMILY_09, FAMILY_1_0_SECTIONS, Message
from harebell.front.convert import converted
from harebell.front.convert.dispatch import MODULES
from harebell.kernels.sections import parse_properties as parse_sections
from harebell.kernels.sections import split
from harebell.wire.convert.amqp_1_0 import (
    exact_list,
    exact_sections,
    from_basic,
    properties_from_basic,
    to_basic,
)
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from harebell.wire.v09.edit import headers_span
from harebell.wire.v09.fields import entries
from harebell.wire.v1.sections import body_sections, data_section
from tests.fuzz.performatives import performative_seeds
from tests.unit.kernels.twins import twin, used

_KERNELS = (used("conversion"), twin("conversion"))


def conversions1(data: bytes) -> None:
    """What is well-formed is converted to what is well-formed, and back to the same."""
    if not data:
        return
    if data[0] & 1:
        _from_basic(data[1:])
    else:
        _from_sections(data[1:])


def _from_basic(data: bytes) -> None:
    try:
        properties = parse_properties(data)
    except ProtocolError:
        return
    message = Message("x", "k", properties, b"body")
    found = [kernel.sectioned(data) for kernel in _KERNELS]
    assert [each and each.raw for each in found] == [found[0] and found[0].raw] * 2
    if found[0] is not None:
        assert found[0].raw == exact_sections(message).raw
    there = from_basic(message)
    assert parse_sections(there.raw).raw == there.raw
    assert properties_from_basic(message).raw == there.raw or there.body != b"body"
    back = to_basic(there)
    # Once there and back, only what 1.0 does not know apart has changed.
    again = to_basic(from_basic(back))
    assert (_named(again.raw), again.body) == (_named(back.raw), back.body), (back.raw, again.raw)


def _named(raw: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """A list without its headers, and the headers: their order may change."""
    begin, end = headers_span(raw)
    found = entries(raw, begin) if begin < end else ()
    return raw[2:begin] + raw[end:], {name: raw[at:after] for name, at, after in found}


def _from_sections(data: bytes) -> None:
    try:
        raw, body, family = split(data)
        properties = parse_sections(raw, family)
    except DecodeError:
        return
    message = Message("x", "k", properties, body)
    found = [kernel.listed(raw) for kernel in _KERNELS]
    assert found[0] == found[1]
    assert found[0] in (None, exact_list(raw))
    there = to_basic(message)
    back = from_basic(there)
    assert parse_sections(back.raw, back.family).raw == back.raw
    try:
        expected = list(body_sections(body, family))
    except DecodeError:
        return  # bodies are passed on unread
    assert repr(list(body_sections(back.body, back.family))) == repr(expected)


_FAMILIES = (FAMILY_09, *MODULES)


def conversions(data: bytes) -> None:
    """A message of 1.0 or of class basic is converted to every version, and from each to each."""
    if not data:
        return
    body, family, raw = b"body", FAMILY_09, data[1:]
    try:
        if data[0] & 1:
            properties = parse_properties(raw)
        else:
            raw, body, family = split(raw)
            properties = parse_sections(raw, family)
    except (DecodeError, ProtocolError):
        return
    message = Message("x", "k", properties, body)
    plain = converted(message, FAMILY_09).body
    for there in (converted(message, each) for each in _FAMILIES):
        for back in (converted(there, each) for each in _FAMILIES):
            _check_body(back, plain)


def _check_body(message: Message, plain: bytes) -> None:
    """A message has the body that class basic has of the first one, or the sections of it."""
    if message.family == FAMILY_1_0_SECTIONS:
        parse_sections(message.raw, message.family)
        message = converted(message, FAMILY_09)
    assert message.body == plain, (message.body, plain)


def conversion1_seeds() -> list[bytes]:
    """A list and messages."""
    properties = BasicProperties(
        content_type="a/b", headers={"a": 1, "x-b": ["c"]}, delivery_mode=2, reply_to="r", type="t"
    )
    messages = performative_seeds("messages1")
    return [b"\1" + encode_properties(properties), *(b"\0" + each for each in messages),
            b"\0" + data_section(b"a") * 2]  # fmt: skip
