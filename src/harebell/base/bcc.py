"""BCC: hide the header `BCC` from consumers, and keep it for later routing.

    publish --- BCC: [b] ---> queues               keep it hidden; a dead letter is routed by its
                                                   keys again
                         ---> a delayed exchange   keeps it: its keys are used when it is routed

In class basic such a message has a property family of its own, also on disk; readers get it
converted, without the header. In other classes and in 0-10 the queues get a message without the
header; the hidden part is kept in the object, so only in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.message import (
    FAMILY_09,
    FAMILY_09_BCC,
    Message,
    Properties,
    copy_message,
    new_message,
)

CC = "CC"
BCC = "BCC"
"""The header with the blind keys."""


def keys_in(header: Any) -> list[str]:
    """Return the routing keys in a header CC or BCC; [] for anything but a list of them."""
    if not isinstance(header, list | tuple):
        return []
    return [key for key in header if isinstance(key, str)]


def further_keys(headers: Mapping[str, Any]) -> list[str]:
    """Return the routing keys of the headers CC and BCC."""
    return [*keys_in(headers.get(CC)), *keys_in(headers.get(BCC))]


class BccMessage(Message):
    """A message that hides its blind keys and is not of class basic.

    Args:
        routed: the message as it was routed, with all its properties.
        seen: the properties without the blind keys.
        whole: the properties as published.
    """

    __slots__ = ("as_published",)

    def __init__(self, routed: Message, seen: Properties, whole: Properties) -> None:
        super().__init__(routed.exchange, routed.routing_key, seen, routed.body)
        self.once = routed.once
        self.as_published = whole


def _of_family(message: Message, family: int) -> Message:
    properties = Properties(
        message.raw, message.delivery_mode, message.priority, message.has_headers, family=family
    )
    copy = new_message(message.exchange, message.routing_key, properties, message.body)
    copy.origin = message.origin
    copy.due = message.due
    copy.deliveries = message.deliveries
    copy.once = message.once
    return copy


def hidden(message: Message) -> Message:
    """Return a message that hides its blind keys; the same one if it is not of class basic."""
    if message.family != FAMILY_09:
        return message
    return _of_family(message, FAMILY_09_BCC)


def whole(message: Message) -> Message:
    """Return a message with its hidden blind keys; the same object if it hides none."""
    return _of_family(message, FAMILY_09) if message.family == FAMILY_09_BCC else message


def revealed(message: Message) -> Message:
    """Return a copy of a message with all properties that its publisher sent."""
    # It has the properties as published beside those that queues show.
    if isinstance(message, BccMessage):
        properties = message.as_published
        return Message(message.exchange, message.routing_key, properties, message.body)
    original = whole(message)
    if original is not message:
        return original
    return copy_message(message, message.exchange, message.routing_key)
