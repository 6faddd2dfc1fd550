"""The converters between protocol families, and a cache of converted messages.

The modules are imported at first use, see `MODULES`. Each has two functions.

    to_basic(message) -> Message      its family -> FAMILY_09
    from_basic(message) -> Message    FAMILY_09 -> its family

They convert property lists. The body is the same in every family, so they are given a message
without one, and exchange and routing key do not change. Results are cached by the bytes of the
original list: a message is converted once for all its consumers, and consecutive messages with
equal properties once.

`FAMILY_09_BCC` is basic with BCC keys (`harebell.model.bcc`), which no consumer sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module

from msgspec import Struct

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import (
    FAMILY_010,
    FAMILY_010T,
    FAMILY_09,
    FAMILY_09_BCC,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
    Properties,
    new_message,
)
from harebell.front.limits import CONVERSIONS_KEPT_BYTES, CONVERSIONS_KEPT_COUNT
from harebell.model.bcc import BCC
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.edit import edited

MODULES = {
    FAMILY_FILE: "harebell.front.convert.file",
    FAMILY_STREAM: "harebell.front.convert.stream",
    FAMILY_010: "harebell.front.convert.final",
    FAMILY_010T: "harebell.front.convert.transitional",
}
"""The modules of the families other than basic."""


class Pair(Struct, frozen=True):
    """The conversions of a family other than basic.

    Args:
        to_basic: converts a message of the family to class basic.
        from_basic: converts a message of class basic to the family.
    """

    to_basic: Callable[[Message], Message]
    from_basic: Callable[[Message], Message]


@cache
def pair(family: int) -> Pair:
    """Return the conversions between a family and basic.

    Raises:
        Refusal: this version of the broker does not know the family.
    """
    name = MODULES.get(family)
    if name is None:
        raise Refusal(
            ErrorKind.INTERNAL_ERROR,
            f"a message of the unknown protocol family {family} cannot be delivered: it was "
            "written by a newer version of Harebell",
        )
    module = import_module(name)
    return Pair(module.to_basic, module.from_basic)


def converted(message: Message, family: int) -> Message:
    """Convert a message to another family; return it unchanged if it is of that family.

    Args:
        message: any message.
        family: `FAMILY_09` or another of its kind, see `harebell.base.message`.

    Raises:
        Refusal: its own family is not known here.
    """
    if message.family == family:
        return message
    # Large lists are not cached: a few of them would take the memory of the whole cache.
    convert = _cached_properties if len(message.raw) <= CONVERSIONS_KEPT_BYTES else _properties
    properties = convert(
        family,
        message.family,
        message.raw,
        message.delivery_mode,
        message.priority,
        message.has_headers,
        message.exchange,
        message.routing_key,
    )
    result = new_message(message.exchange, message.routing_key, properties, message.body)
    # These belong to the message and its delivery, not to its properties.
    result.timestamp = message.timestamp
    result.offset = message.offset
    result.origin = message.origin
    result.deliveries = message.deliveries
    result.due = message.due
    return result


def _properties(
    family: int,
    before: int,
    raw: bytes,
    delivery_mode: int,
    priority: int,
    has_headers: bool,
    exchange: str,
    routing_key: str,
) -> Properties:
    """Convert the properties of a message; the arguments are all that they depend on."""
    properties = Properties(raw, delivery_mode, priority, has_headers, family=before)
    message = new_message(exchange, routing_key, properties, b"")
    if before == FAMILY_09_BCC:
        without_bcc = parse_properties(edited(raw, {BCC: None}))
        message = new_message(exchange, routing_key, without_bcc, b"")
    elif before != FAMILY_09:
        message = pair(before).to_basic(message)
    if family != FAMILY_09:
        message = pair(family).from_basic(message)
    return Properties(
        message.raw, message.delivery_mode, message.priority, message.has_headers, family=family
    )


_cached_properties = lru_cache(CONVERSIONS_KEPT_COUNT)(_properties)
