"""Messages of the client, whose properties are of class basic, as those of AMQP 1.0 and back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.client.protocol.v1.addresses import Route
from harebell.client.protocol.v1.basic import from_basic, to_basic
from harebell.wire.v1.sections import (
    HEADER,
    PROPERTIES,
    Sections,
    data_section,
    section,
)

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
    converted = from_basic(message)
    raw = converted.raw
    if route.to is not None or route.subject is not None:
        raw = _routed(raw, route.to, route.subject)
    if converted.family != FAMILY_1_0:
        return raw + converted.body
    return raw + data_section(converted.body)


@lru_cache(_CACHE_ENTRIES)
def _routed(raw: bytes, to: str | None, subject: str | None) -> bytes:
    """Return sections whose properties have `to` and `subject`."""
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
    redelivered, exchange, key = _origin(sections.raw)
    basic = to_basic(Message(exchange, key, sections, body))
    converted = Properties(basic.raw, basic.delivery_mode, basic.priority, basic.has_headers)
    return Came(redelivered, exchange, key, converted, basic.body)


@lru_cache(_CACHE_ENTRIES)
def _origin(raw: bytes) -> tuple[bool, str, str]:
    """Return whether a message was delivered before, its exchange and its routing key."""
    sections = Sections(raw)
    redelivered = False
    if HEADER in sections:
        header = sections.header()
        redelivered = header.delivery_count > 0 or not header.first_acquirer
    annotations: dict[Any, Any] = sections.message_annotations()
    return redelivered, str(annotations.get(_EXCHANGE, "")), str(annotations.get(_KEY, ""))
