"""The columns of rows that become messages, for client, broker and both kernels."""

from __future__ import annotations

from collections.abc import Sequence

from harebell.base.errors import BatchError
from harebell.base.limits import NAME_BYTES

COLUMNS = ("value", "routing_key", "exchange", "properties", "headers", "headers_raw")
"""All valid columns."""

PROPERTY_NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
"""The properties of class basic, in the order of their flags (AMQP 0-9-1 4.2.6.1)."""

FIELDS = tuple(name for name in PROPERTY_NAMES if name != "headers")
"""The fields of the column `properties`."""

PUBLISHING_ID = b"x-publishing-id"
"""The header with the publishing id of a message."""


def columns_of(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns, and the fields of `properties`, of a list of names.

    `value,routing_key,properties.type,properties.app_id` names two fields; `properties` alone means
    all of them.

    Raises:
        BatchError: a name is unknown, or given twice.
    """
    columns: list[str] = []
    fields: list[str] = []
    for name in text.split(","):
        head, dot, field = name.partition(".")
        if dot and head == "properties":
            fields.append(field)
            if head in columns:
                continue
        elif name == "properties":
            fields += FIELDS
        columns.append(head if head == "properties" else name)
    check_columns(columns, fields)
    return tuple(columns), tuple(fields)


def check_columns(columns: Sequence[str], fields: Sequence[str]) -> None:
    """Refuse columns that cannot become messages.

    Raises:
        BatchError: it names the column.
    """
    for names, known, what in ((columns, COLUMNS, "column"), (fields, FIELDS, "property")):
        for number, name in enumerate(names):
            if name not in known:
                raise BatchError(f"there is no {what} '{name}'; there are {', '.join(known)}")
            if name in names[:number]:
                raise BatchError(f"the {what} '{name}' is there twice")
    if "value" not in columns:
        raise BatchError("there is no column 'value', and a message needs a body")
    if fields and "properties" not in columns:
        raise BatchError("there are properties, and no column 'properties'")


def default_name(text: str, name: str) -> str:
    """Return a default exchange or routing key, if it can be sent.

    Raises:
        BatchError: it is too long.
    """
    size = len(text.encode())
    if size > NAME_BYTES:
        raise BatchError(f"the default {name} has {size} octets, and the most is {NAME_BYTES}")
    return text
