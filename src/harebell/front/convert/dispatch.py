"""The converters between protocol families, and a cache of converted messages.

The modules are imported at first use, see `MODULES`. Each has two functions.

    to_basic(message) -> Message      its family -> FAMILY_09
    from_basic(message) -> Message    FAMILY_09 -> its family

They convert property lists. The body is the same in every family but one, so they are given a
message without one, and exchange and routing key do not change. Results are cached by the bytes of
the original list: a message is converted once for all its consumers, and consecutive messages with
equal properties once. The latest conversion to each family is found without the cache.

Some messages of 1.0 have a body of sections (`FAMILY_1_0_SECTIONS`): `to_basic` of its module gets
the body as well. And `from_basic` there may return that family, which says that the body has to be
looked at: `whole_from_basic` converts such a message. Neither is cached.

`FAMILY_09_BCC` is basic with BCC keys (`harebell.base.bcc`), which no consumer sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from msgspec import Struct

from harebell.base.bcc import BCC
from harebell.base.c_types import C, Done, i32
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import (
    FAMILY_010,
    FAMILY_010T,
    FAMILY_09,
    FAMILY_09_BCC,
    FAMILY_1_0,
    FAMILY_1_0_SECTIONS,
    FAMILY_FILE,
    FAMILY_STREAM,
    Message,
    Properties,
    new_message,
)
from harebell.front.limits import CONVERSIONS_KEPT_BYTES, CONVERSIONS_KEPT_COUNT
from harebell.kernels.conversion import listed, sectioned
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.edit import edited

MODULES = {
    FAMILY_FILE: "harebell.front.convert.file",
    FAMILY_STREAM: "harebell.front.convert.stream",
    FAMILY_010: "harebell.front.convert.final",
    FAMILY_010T: "harebell.front.convert.transitional",
    FAMILY_1_0: "harebell.front.convert.amqp_1_0",
}
"""The modules of the families other than basic."""

FAMILIES_1_0 = (FAMILY_1_0, FAMILY_1_0_SECTIONS)
"""Messages of 1.0: which of the two a message is of depends on its body."""


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


class Conversion:
    """The latest conversion to a family: consecutive messages mostly have equal properties."""

    def __init__(self) -> None:
        self.family: i32 = -1
        self.before: i32 = -1
        self.delivery_mode: i32 = 0
        self.priority: i32 = 0
        self.has_headers = False
        self.raw: bytes = b""
        self.exchange: str = ""
        self.routing_key: str = ""
        self.properties: Properties = Properties(b"")

    def fits(self, message: Message, family: i32) -> C[bool]:
        """True if the conversion of this message gives the same properties."""
        return (
            self.family == family
            and self.before == message.family
            and self.delivery_mode == message.delivery_mode
            and self.priority == message.priority
            and self.has_headers == message.has_headers
            and self.raw == message.raw
            and self.exchange == message.exchange
            and self.routing_key == message.routing_key
        )

    def keep(self, message: Message, family: i32, properties: Properties) -> Done:
        """Take the place of the conversion before."""
        self.family = family
        self.before = message.family
        self.delivery_mode = message.delivery_mode
        self.priority = message.priority
        self.has_headers = message.has_headers
        self.raw = message.raw
        self.exchange = message.exchange
        self.routing_key = message.routing_key
        self.properties = properties
        return 0


# One per family: the last three bits of their numbers differ.
_LAST_BITS: i32 = 7
_FAMILY_09: i32 = FAMILY_09
_FAMILY_1_0: i32 = FAMILY_1_0
_LATEST: C[list[Any]] = [Conversion() for _ in range(8)]


def converted(message: Message, family: i32) -> C[Message]:
    """Convert a message to another family; return it unchanged if it is of that family.

    Args:
        message: any message.
        family: `FAMILY_09` or another of its kind, see `harebell.base.message`. For `FAMILY_1_0`
            the result may be of `FAMILY_1_0_SECTIONS`.

    Raises:
        Refusal: its own family is not known here.
    """
    if message.family == family:
        return message
    latest: Conversion = _LATEST[family & _LAST_BITS]
    if not latest.fits(message, family):
        if message.family == FAMILY_1_0_SECTIONS:
            return _from_sections(message, family)
        properties: Properties = _converted(message, family)
        if properties.family == FAMILY_1_0_SECTIONS:
            return _to_sections(message)
        if len(message.raw) > CONVERSIONS_KEPT_BYTES:
            return _like(message, _with_properties(message, properties))
        latest.keep(message, family, properties)
    return _like(message, _with_properties(message, latest.properties))


def _with_properties(message: Message, properties: Properties) -> C[Message]:
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _converted(message: Message, family: i32) -> C[Properties]:
    """Convert the properties of a message, plain ones to and from 1.0 without the cache."""
    properties: Properties | None = None
    if family == _FAMILY_1_0 and message.family == _FAMILY_09:
        properties = sectioned(message.raw)
    elif family == _FAMILY_09 and message.family == _FAMILY_1_0:
        raw: bytes | None = listed(message.raw)
        if raw is not None:
            return parse_properties(raw)
    return _described(message, family) if properties is None else properties


def _from_sections(message: Message, family: int) -> Message:
    """Convert a message of 1.0 and its body."""
    if family == FAMILY_1_0:
        return message
    return converted(_like(message, pair(FAMILY_1_0).to_basic(message)), family)


def _to_sections(message: Message) -> Message:
    """Convert a message and its body to 1.0."""
    from harebell.front.convert.amqp_1_0 import whole_from_basic

    return _like(message, whole_from_basic(converted(message, FAMILY_09)))


def described(message: Message) -> Message:
    """Convert the properties of a message to class basic, and not its body; cached as above.

    Raises:
        Refusal: its family is not known here.
    """
    if message.family == FAMILY_09:
        return message
    return _with_properties(message, _described(message, FAMILY_09))


def _described(message: Message, family: int) -> Properties:
    # Large lists are not cached: a few of them would take the memory of the whole cache.
    convert = _cached_properties if len(message.raw) <= CONVERSIONS_KEPT_BYTES else _properties
    before = FAMILY_1_0 if message.family == FAMILY_1_0_SECTIONS else message.family
    properties: Properties = convert(
        family,
        before,
        message.raw,
        message.delivery_mode,
        message.priority,
        message.has_headers,
        message.exchange,
        message.routing_key,
    )
    return properties


def _like(message: Message, result: Message) -> C[Message]:
    """Copy what belongs to a message and its delivery, and not to its properties."""
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
        message.raw,
        message.delivery_mode,
        message.priority,
        message.has_headers,
        family=message.family,
    )


_cached_properties = lru_cache(CONVERSIONS_KEPT_COUNT)(_properties)


def forget() -> None:
    """Empty the caches."""
    _cached_properties.cache_clear()
    pair.cache_clear()
    for conversion in _LATEST:
        conversion.family = -1
