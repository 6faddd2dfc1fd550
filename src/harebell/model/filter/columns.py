"""The columns of a message in a filter or selector.

The names are those of the data source for Spark (docs/guides/spark.md), and a property may also be
written without `properties.` before it, but for `timestamp`, which is the time of the broker. JMS
has names of its own for properties, and AMQP 1.0 has other names for some of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from harebell.base.message import PERSISTENT
from harebell.base.names import did_you_mean
from harebell.model.death import Death
from harebell.model.filter.dialect import Dialect
from harebell.model.filter.errors import FilterError
from harebell.model.filter.subject import Subject

Step = str | int
"""A name or an index."""
Getter = Callable[[Subject], Any]
Node = tuple[Any, ...]
"""A node of a condition, see `harebell.kernels.conditions`."""

PROPERTIES = (
    *("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id"),
    *("reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id"),
    "cluster_id",
)
DEFAULT_PRIORITY = 4
_OWN: dict[str, Getter] = {
    "exchange": lambda subject: subject.message.exchange,
    "routing_key": lambda subject: subject.message.routing_key,
    "offset": lambda subject: subject.offset,
    "timestamp": lambda subject: subject.timestamp,
    "age": lambda subject: subject.age,
    "size": lambda subject: len(subject.body),
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
_DEATH = "death"
COLUMNS = (*_OWN, *_TABLES, _DEATH, *(name for name in PROPERTIES if name not in _OWN))
"""The names that a column may begin with."""
_PRIORITY: Node = ("else", ("property", "priority"), ("value", DEFAULT_PRIORITY))
_EXPIRES_AT: Node = ("get", lambda subject: subject.expires_at)


def _of_1_0(name: str, other: Node) -> Node:
    """Return a property that only 1.0 has, and what other messages have for it."""
    return ("native", ("property", name), other)


_SUBJECT = _of_1_0("subject", ("else", ("header", "x-amqp-subject"), ("property", "type")))
_GROUP = _of_1_0("group_id", ("header", "JMSXGroupID"))
_SEQUENCE = _of_1_0(
    "group_sequence", ("else", ("header", "JMSXGroupSeq"), ("header", "x-amqp-group-sequence"))
)
_LATER_NAMES: dict[str, Node] = {
    "subject": _SUBJECT,
    "creation_time": ("property", "timestamp"),
    "absolute_expiry_time": _of_1_0("absolute_expiry_time", _EXPIRES_AT),
    "group_id": _GROUP,
    "group_sequence": _SEQUENCE,
    "to": _of_1_0("to", ("header", "x-amqp-to")),
    "reply_to_group_id": _of_1_0("reply_to_group_id", ("header", "x-amqp-reply-to-group-id")),
}
"""Properties that have another name in AMQP 1.0, or that only 1.0 has: their headers are those of
docs/protocols/conversion.md."""
_OF_JMS: dict[str, Node] = {
    "JMSMessageID": ("property", "message_id"),
    "JMSCorrelationID": ("property", "correlation_id"),
    "JMSType": _SUBJECT,
    "JMSXGroupID": _GROUP,
    "JMSXGroupSeq": _SEQUENCE,
    "JMSReplyTo": ("property", "reply_to"),
    "JMSTimestamp": ("property", "timestamp"),
    "JMSXUserID": ("property", "user_id"),
    "JMSXAppID": ("property", "app_id"),
    "JMSPriority": _PRIORITY,
    "JMSDestination": ("get", lambda subject: subject.message.routing_key),
    "JMSRedelivered": ("get", lambda subject: subject.redelivered),
    "JMSXDeliveryCount": ("get", lambda subject: subject.delivery_count + 1),
    "JMSExpiration": (
        "else",
        ("else", _of_1_0("absolute_expiry_time", _EXPIRES_AT), _EXPIRES_AT),
        ("value", 0),
    ),
    "JMSDeliveryMode": (
        "get",
        lambda subject: (
            "PERSISTENT" if subject.message.delivery_mode == PERSISTENT else "NON_PERSISTENT"
        ),
    ),
}
_HEADERS = ("headers", "application_properties")
_SHORT = {"p": "properties", "a": "application_properties", "h": "header", "amqp": "properties"}
"""Short names, in selectors only: a bare `p` of a filter would be a column."""
_CHANGING = ("age", "state")
"""Columns whose values change while a message stays where it is."""
_OF_QUEUE = (
    *(*_CHANGING, "offset", "timestamp", "redelivered", "delivery_count"),
    *("JMSRedelivered", "JMSXDeliveryCount", "UTC()"),
)
"""Columns that a message has in a queue, and before with another value or none."""
_Q = "'"


class Column(NamedTuple):
    """A column.

    Args:
        name: its first name.
        node: gets its value, see `harebell.kernels.conditions`.
        is_time: whether its values are times.
        is_age: whether its values are seconds.
        reads_body: whether it needs the body.
    """

    name: str
    node: Node
    is_time: bool = False
    is_age: bool = False
    reads_body: bool = False


def utc(dialect: Dialect) -> Column:
    """Return the column of the function UTC(): the time at which the message is looked at."""
    if dialect.bare_headers:
        return Column("UTC()", ("get", lambda subject: subject.now))
    return Column(
        "UTC()", ("get", lambda subject: datetime.fromtimestamp(subject.now / 1000, UTC)), True
    )


def header(name: str) -> Column:
    """Return the column of a header."""
    return Column("headers", ("header", name))


def column_of(path: list[Step], dialect: Dialect) -> Column:
    """Return the column of a path, such as ["headers", "x-death", 0, "reason"].

    Raises:
        FilterError: there is none of that name.
    """
    first, *rest = path
    name = str(first)
    if dialect.bare_headers:
        if not rest:
            return Column(name, _OF_JMS[name]) if name in _OF_JMS else header(name)
        name = _SHORT.get(name, name)
        if name == "message":
            name, *rest = str(rest[0]), *rest[1:]
            if name in _OWN:
                return _whole(name, rest)
            raise FilterError(f"a message has no '{name}': {did_you_mean(name, _OWN, quote=_Q)}")
    if name in _HEADERS:
        return _header(rest)
    if name == "header" and rest == ["priority"]:
        return Column("priority", _PRIORITY)
    if name == "properties":
        return _property(rest, dialect)
    if name == "body":
        return Column(name, ("get", _part(_TABLES["body"], rest)), reads_body=True)
    if dialect.bare_headers:
        tables = (*_HEADERS, "properties", "header", "message", "body")
        raise FilterError(
            f"'{name}' has no parts: only {', '.join(tables)} have. The name of a header with dots "
            "stands in brackets, such as [my.name]"
        )
    if name == _DEATH:
        return _death(rest)
    if name in _OF_JMS and not rest:
        return Column(name, _OF_JMS[name], is_time=name == "JMSTimestamp")
    if name not in _OWN and name not in PROPERTIES:
        raise FilterError(f"there is no column '{name}': {did_you_mean(name, COLUMNS, quote=_Q)}")
    if name in _OWN:
        return _whole(name, rest)
    _check_alone(name, rest)
    return _property([name], dialect)._replace(name=name)


def changes(columns: frozenset[str]) -> str:
    """Return the name of a column that changes while a message waits; "" if there is none."""
    return next((name for name in (*_CHANGING, "UTC()") if name in columns), "")


def is_settled(columns: frozenset[str]) -> bool:
    """Whether columns have the value that they have in a queue before the message is in one."""
    return columns.isdisjoint(_OF_QUEUE)


def _check_alone(name: str, rest: list[Step]) -> None:
    if rest:
        raise FilterError(
            f"column '{name}' has no parts: only {', '.join((*_TABLES, _DEATH))} have"
        )


def _whole(name: str, rest: list[Step]) -> Column:
    _check_alone(name, rest)
    return Column(name, ("get", _OWN[name]), name == "timestamp", name == "age", name == "value")


def _header(path: list[Step]) -> Column:
    if not path:
        raise FilterError("say which header, such as headers.x-retries or headers['my header']")
    if len(path) == 1 and isinstance(path[0], str):
        return header(path[0])
    return Column("headers", ("get", _part(_TABLES["headers"], path)))


def _death(path: list[Step]) -> Column:
    name = str(path[0]) if path else ""
    if len(path) != 1 or name not in Death._fields:
        near = did_you_mean(name, Death._fields, quote=_Q)
        raise FilterError(f"a dead letter has no 'death.{name}': {near}")
    return Column(_DEATH, ("get", lambda subject: getattr(subject.death, name, None)))


def _property(path: list[Step], dialect: Dialect) -> Column:
    name = str(path[0]) if path else ""
    is_time = name in ("timestamp", "creation_time")
    if len(path) == 1 and name in _LATER_NAMES:
        return Column("properties", _LATER_NAMES[name], is_time)
    if len(path) != 1 or name not in PROPERTIES:
        raise FilterError(
            f"there is no property '{name}': {did_you_mean(name, PROPERTIES, quote=_Q)}"
        )
    return Column("properties", ("property", name), is_time)


def _part(table: Getter, path: list[Step]) -> Getter:
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

    return get
