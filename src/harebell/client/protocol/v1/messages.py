"""Messages of the client, whose properties are of class basic, as those of AMQP 1.0 and back."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.client.protocol.v1.addresses import Route
from harebell.wire.convert.amqp_1_0 import from_basic, to_basic
from harebell.wire.v1.sections import PROPERTIES, Sections, data_section, split

_EXCHANGE, _KEY = "x-exchange", "x-routing-key"
_CACHE_ENTRIES = 256


class Came(NamedTuple):
    """A delivered message.

    Args:
        redelivered: whether it was delivered before.
        exchange: the exchange that it was published to.
        key: its routing key.
        properties: of class basic.
        body: its body.
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
    sections = Sections(raw)
    properties = sections.properties()
    properties.to, properties.subject = to, subject
    old = sections.octets(PROPERTIES)
    encoded = properties.encoded()
    if old:
        # Three octets of descriptor are before the list.
        start = raw.index(old) - 3
        return raw[:start] + encoded + raw[start + 3 + len(old) :]
    after = _before_application(raw)
    return raw[:after] + encoded + raw[after:]
