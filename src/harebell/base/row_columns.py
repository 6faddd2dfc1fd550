"""The columns that become a message: what both kernels, the client and the broker agree on."""

from __future__ import annotations

from collections.abc import Sequence

from harebell.base.errors import BatchError
from harebell.base.limits import NAME_BYTES

COLUMNS = ("value", "routing_key", "exchange", "properties", "headers", "headers_raw")
"""The columns that there can be."""

PROPERTY_NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
"""The properties of class basic, in the order of their flags (AMQP 0-9-1 4.2.6.1)."""

FIELDS = tuple(name for name in PROPERTY_NAMES if name != "headers")
"""Those that the column `properties` can have."""

PUBLISHING_ID = b"x-publishing-id"
"""The header with the number that a publisher gives a message."""


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
    """A default for rows without one, if it can be sent.

    Raises:
        BatchError: it is too long.
    """
    size = len(text.encode())
    if size > NAME_BYTES:
        raise BatchError(f"the default {name} has {size} octets, and the most is {NAME_BYTES}")
    return text
