"""Between class basic and AMQP 1.0, see `harebell.wire.convert.amqp_1_0`.

Bodies change as well for some messages of 1.0, see `dispatch`; a message that the model changes
stays one of 1.0, and keeps its bare message.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from harebell.base.message import Message, Properties
from harebell.kernels.sections import HEADER, parse_properties
from harebell.wire.convert.amqp_1_0 import from_basic as whole_from_basic
from harebell.wire.convert.amqp_1_0 import properties_from_basic as from_basic
from harebell.wire.convert.amqp_1_0 import to_basic
from harebell.wire.convert.edit_1_0 import Milliseconds, edited
from harebell.wire.v1.sections import Sections

__all__ = [
    "Milliseconds",
    "edited",
    "edited_message",
    "edited_properties",
    "fields_of",
    "from_basic",
    "to_basic",
    "whole_from_basic",
]

_FIELDS = (
    *("message_id", "user_id", "to", "subject", "reply_to", "correlation_id", "content_type"),
    *("content_encoding", "absolute_expiry_time", "group_id", "group_sequence"),
    "reply_to_group_id",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = 253_402_300_799_999
"""The last millisecond that a datetime has."""


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


def fields_of(message: Message) -> dict[str, Any]:
    """Return the properties of a message of 1.0, and its priority; None for absent ones.

    Names are those of basic where it has the property.
    """
    sections = Sections(message.raw)
    given = sections.properties()
    fields = {name: _plain(getattr(given, name)) for name in _FIELDS}
    fields["priority"] = _plain(sections.header().priority) if HEADER in sections else None
    fields["app_id"] = fields["group_id"]
    created = _plain(given.creation_time)
    if created is not None and 0 <= created <= _LAST_MS:
        created = _EPOCH + timedelta(milliseconds=created)
    fields["timestamp"] = created
    return fields


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return f"urn:uuid:{value}"
    return int(value) if isinstance(value, int) else value
