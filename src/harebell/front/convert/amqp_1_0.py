"""Between class basic and AMQP 1.0, see `harebell.wire.convert.amqp_1_0`.

Bodies change as well for some messages of 1.0, see `dispatch`; a message that the model changes
stays one of 1.0, and keeps its bare message.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harebell.base.message import Message, Properties
from harebell.kernels.sections import parse_properties
from harebell.wire.convert.amqp_1_0 import from_basic as whole_from_basic
from harebell.wire.convert.amqp_1_0 import properties_from_basic as from_basic
from harebell.wire.convert.amqp_1_0 import to_basic
from harebell.wire.convert.edit_1_0 import Milliseconds, edited

__all__ = [
    "Milliseconds",
    "edited",
    "edited_message",
    "edited_properties",
    "from_basic",
    "to_basic",
    "whole_from_basic",
]


def edited_properties(properties: Properties, changes: Mapping[str, Any]) -> Properties:
    """Return sections with some headers set or removed; None removes one.

    Raises:
        TypeError, ValueError: a value cannot stand in a section.
    """
    return parse_properties(edited(properties.raw, changes), properties.family)


def edited_message(
    message: Message,
    exchange: str,
    routing_key: str,
    changes: Mapping[str, Any],
    *,
    keep_ttl: bool = True,
    died: datetime | None = None,
) -> Message:
    """Copy a message of 1.0 with some headers set or removed; the arguments are those of `edited`.

    Raises:
        TypeError, ValueError: a value cannot stand in a section.
    """
    raw = edited(message.raw, changes, keep_ttl=keep_ttl, died=died)
    return Message(exchange, routing_key, parse_properties(raw, message.family), message.body)
