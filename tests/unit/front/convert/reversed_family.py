"""A family of the tests: the property list of basic, its octets in reverse order."""

from __future__ import annotations

from harebell.base.message import FAMILY_09, Message, Properties

FAMILY = 0xE7
calls: list[bytes] = []
"""Every list that was converted."""


def _reversed(message: Message, family: int) -> Message:
    calls.append(message.raw)
    properties = Properties(
        message.raw[::-1],
        message.delivery_mode,
        message.priority,
        message.has_headers,
        family=family,
    )
    return Message(message.exchange, message.routing_key, properties, message.body)


def to_basic(message: Message) -> Message:
    """The same list in its right order."""
    return _reversed(message, FAMILY_09)


def from_basic(message: Message) -> Message:
    """The same list in reverse order."""
    return _reversed(message, FAMILY)
