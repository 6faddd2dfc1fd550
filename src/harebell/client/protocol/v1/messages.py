"""Messages of the client, whose properties are of class basic, as those of AMQP 1.0 and back."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.client.protocol.v1.addresses import Route
from harebell.wire.convert.amqp_1_0 import from_basic, properties_from_basic, to_basic
from harebell.wire.v1.sections import HEADER, PROPERTIES, Sections, data_section, section

_EXCHANGE, _KEY = "x-exchange", "x-routing-key"
_CACHE_ENTRIES = 256


class Came(NamedTuple):
    """A delivered message.

    Args:
        redelivered: whether it was delivered before.
        exchange: the exchange that it was published to.
        key: its routing key.
        properties: of class basic.
        body: its octets; encoded sections if the type is `amqp-1.0`.
    """

    redelivered: bool
    exchange: str
    key: str
    properties: Properties
    body: bytes


def outgoing(message: Message, route: Route) -> bytes:
    """Return the encoded sections of a message.

    Args:
        message: with properties of class basic.
        route: what its properties say about its way.
    """
    raw = _before_body(message.raw, route.to, route.subject)
    if raw is not None:
        return raw + data_section(message.body)
    converted = from_basic(message)
    raw = _routed(converted.raw, route.to, route.subject)
    if converted.family == FAMILY_1_0:
        return raw + data_section(converted.body)
    return raw + converted.body


@lru_cache(_CACHE_ENTRIES)
def _before_body(basic: bytes, to: str | None, subject: str | None) -> bytes | None:
    """Return the sections before a body that does not change; None if it may have to."""
    converted = properties_from_basic(Message("", "", Properties(basic), b""))
    if converted.family != FAMILY_1_0:
        return None
    return _routed(converted.raw, to, subject)


def _routed(raw: bytes, to: str | None, subject: str | None) -> bytes:
    """Return sections whose properties have `to` and `subject`, unless both are None."""
    if to is None and subject is None:
        return raw
    properties = Sections(raw).properties()
    properties.to, properties.subject = to, subject
    start = end = 0
    while end < len(raw):
        code, _, after = section(raw, end, len(raw))
        if code > PROPERTIES:
            break
        start, end = (end if code == PROPERTIES else after), after
    return raw[:start] + properties.encoded() + raw[end:]


def incoming(sections: Properties, body: bytes) -> Came:
    """Return a delivered message.

    Args:
        sections: those before the body.
        body: of the message, as `sections.family` says.

    Raises:
        DecodeError: they are malformed.
    """
    if sections.family != FAMILY_1_0:
        return _converted(sections, body)
    return _with_one_body(sections.raw)._replace(body=body)


@lru_cache(_CACHE_ENTRIES)
def _with_one_body(raw: bytes) -> Came:
    """Return a message whose body is that of basic, without it."""
    return _converted(Properties(raw, family=FAMILY_1_0), b"")


def _converted(sections: Properties, body: bytes) -> Came:
    before = Sections(sections.raw)
    redelivered = False
    if HEADER in before:
        header = before.header()
        redelivered = header.delivery_count > 0 or not header.first_acquirer
    annotations = before.message_annotations()
    exchange, key = str(annotations.get(_EXCHANGE, "")), str(annotations.get(_KEY, ""))
    basic = to_basic(Message(exchange, key, sections, body))
    converted = Properties(basic.raw, basic.delivery_mode, basic.priority, basic.has_headers)
    return Came(redelivered, exchange, key, converted, basic.body)
