"""The columns of a message in a filter.

The names are those of the data source for Spark (docs/guides/spark.md), and a property may also be
written without `properties.` before it, but for `timestamp`, which is the time of the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harebell.base.names import did_you_mean
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject

Step = str | int
"""A name or an index."""
Getter = Callable[[Subject], Any]

PROPERTIES = (
    *("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id"),
    *("reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id"),
    "cluster_id",
)
_OWN: dict[str, Getter] = {
    "exchange": lambda subject: subject.message.exchange,
    "routing_key": lambda subject: subject.message.routing_key,
    "offset": lambda subject: subject.offset,
    "timestamp": lambda subject: subject.timestamp,
    "age": lambda subject: subject.age,
    "size": lambda subject: len(subject.message.body),
    "redelivered": lambda subject: subject.redelivered,
    "delivery_count": lambda subject: subject.delivery_count,
    "state": lambda subject: subject.state,
    "value": lambda subject: subject.text,
}
_TABLES: dict[str, Getter] = {
    "headers": lambda subject: subject.headers,
    "properties": lambda subject: subject.properties,
    "body": lambda subject: subject.json,
}
COLUMNS = (*_OWN, *_TABLES, *(name for name in PROPERTIES if name not in _OWN))
"""The names that a column may begin with."""


class Column(NamedTuple):
    """A column.

    Args:
        name: its first name.
        get: returns its value of a message; None if the message has none.
        is_time: whether its values are times.
        is_age: whether its values are seconds.
        reads_body: whether it needs the body.
    """

    name: str
    get: Getter
    is_time: bool
    is_age: bool
    reads_body: bool


def column_of(path: list[Step]) -> Column:
    """Return the column of a path, such as ["headers", "x-death", 0, "reason"].

    Raises:
        FilterError: there is none of that name.
    """
    first, *rest = path
    name = str(first)
    if name in _TABLES:
        return _part(name, rest)
    if name not in _OWN and name not in PROPERTIES:
        raise FilterError(f"there is no column '{name}': {did_you_mean(name, COLUMNS, quote=_Q)}")
    if rest:
        raise FilterError(f"column '{name}' has no parts: only {', '.join(_TABLES)} have")
    get = _OWN.get(name) or _property(name)
    return Column(name, get, name == "timestamp", name == "age", name == "value")


_Q = "'"


def _part(name: str, path: list[Step]) -> Column:
    table = _TABLES[name]
    if name == "properties":
        if len(path) != 1 or path[0] not in PROPERTIES:
            wanted = str(path[0]) if path else ""
            raise FilterError(
                f"there is no property '{wanted}': {did_you_mean(wanted, PROPERTIES, quote=_Q)}"
            )
        return Column(name, _property(str(path[0])), path[0] == "timestamp", False, False)
    if name == "headers" and not path:
        raise FilterError("say which header, such as headers.x-retries or headers['my header']")

    def get(subject: Subject) -> Any:
        value = table(subject)
        for step in path:
            if isinstance(step, str):
                if not isinstance(value, Mapping):
                    return None
                value = value.get(step)
            elif isinstance(value, list | tuple) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    return Column(name, get, False, False, name == "body")


def _property(name: str) -> Getter:
    return lambda subject: subject.properties.get(name)
