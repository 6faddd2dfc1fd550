"""The columns of a message in a queue: their names, types and order.

A client names columns, separated by commas. `properties` is a struct of all properties, and
`properties.message_id` is one field of it:

    offset,routing_key,value,properties.message_id,properties.app_id
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harebell.base.names import nearest
from harebell.wire.arrow.types import (
    BINARY,
    BOOL,
    INT32,
    INT64,
    TIMESTAMP,
    UTF8,
    ArrowColumn,
    struct,
    text_map,
)

FIELDS = {
    "content_type": UTF8,
    "content_encoding": UTF8,
    "delivery_mode": INT32,
    "priority": INT32,
    "correlation_id": UTF8,
    "reply_to": UTF8,
    "expiration": UTF8,
    "message_id": UTF8,
    "timestamp": TIMESTAMP,
    "type": UTF8,
    "user_id": UTF8,
    "app_id": UTF8,
    "cluster_id": UTF8,
}
"""The fields of the column `properties`."""

PROPERTIES = "properties"

COLUMNS = {
    "value": BINARY,
    "routing_key": UTF8,
    "exchange": UTF8,
    "queue": UTF8,
    "offset": INT64,
    "timestamp": TIMESTAMP,
    "redelivered": BOOL,
    "delivery_count": INT32,
    PROPERTIES: struct(*(ArrowColumn(name, kind) for name, kind in FIELDS.items())),
    "headers": text_map(),
    "headers_json": UTF8,
    "headers_raw": BINARY,
}
"""All columns of a message."""


@dataclass(frozen=True)
class ArrowSelection:
    """The selected columns.

    Args:
        columns: names of the columns, in their order.
        fields: names of the selected fields of `properties`, in their order.
    """

    columns: tuple[str, ...]
    fields: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the selection as a list of names."""
        names: list[str] = []
        for column in self.columns:
            if column == PROPERTIES and self.fields != tuple(FIELDS):
                names += [f"{PROPERTIES}.{field}" for field in self.fields]
            else:
                names.append(column)
        return ",".join(names)

    def schema(self) -> tuple[ArrowColumn, ...]:
        """Return the columns with their types."""
        return tuple(self._column(name) for name in self.columns)

    def _column(self, name: str) -> ArrowColumn:
        if name != PROPERTIES:
            return ArrowColumn(name, COLUMNS[name])
        return ArrowColumn(
            name, struct(*(ArrowColumn(field, FIELDS[field]) for field in self.fields))
        )


def selection(text: str) -> ArrowSelection:
    """Return the selection for a list of names.

    Raises:
        ValueError: a column does not exist, or is named twice.
    """
    columns: list[str] = []
    fields: list[str] = []
    for name in text.split(",") if text else ():
        head, dot, field = name.partition(".")
        if head not in COLUMNS or (dot and (head != PROPERTIES or field not in FIELDS)):
            raise ValueError(_unknown(name))
        if head != PROPERTIES:
            new: tuple[str, ...] = (head,) if head not in columns else ()
        else:
            # `properties` and one of its fields together would select the field twice.
            new = (field,) if dot else tuple(FIELDS)
            new = () if any(each in fields for each in new) else new
            fields += new
        if not new:
            raise ValueError(f"column {name} is asked for twice")
        if head not in columns:
            columns.append(head)
    if not columns:
        raise ValueError(f"no columns are asked for; a message has {', '.join(COLUMNS)}")
    return ArrowSelection(tuple(columns), tuple(fields))


def _unknown(name: str) -> str:
    known: Iterable[str] = [*COLUMNS, *(f"{PROPERTIES}.{field}" for field in FIELDS)]
    near = nearest(name.lower(), known)
    if near:
        return f"a message has no column {name}: did you mean {near}?"
    return f"a message has no column {name}; it has {', '.join(COLUMNS)}"
