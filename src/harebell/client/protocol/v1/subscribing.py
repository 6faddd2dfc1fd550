"""Arguments of `consume` as the source and the properties of a link.

| argument | AMQP 1.0 |
|---|---|
| `x-priority` | link property `rabbitmq:priority` |
| `x-consumer-timeout` | link property `rabbitmq:consumer-timeout` |
| `x-stream-offset` | filter `rabbitmq:stream-offset-spec` |
| `x-stream-filter` | filter `rabbitmq:stream-filter` |
| `x-stream-match-unfiltered` | filter `rabbitmq:stream-match-unfiltered` |
| `x-filter-jms-selector` | filter `apache.org:selector-filter:string` |

Others are refused, and so is a consumer whose filter the broker does not take: it would get all
messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from harebell.client.errors import UnsupportedByVersion, closed_channel
from harebell.client.protocol.v1.plans import VERSION
from harebell.wire.v1.composites import Attach, Source
from harebell.wire.v1.values import Described, Int, Symbol, Timestamp, UInt

_NOT_IMPLEMENTED = 540
_MILLISECONDS = 1000


def _offset(value: Any) -> Any:
    if isinstance(value, datetime):
        return Timestamp(value.timestamp() * _MILLISECONDS)
    return value


def _as_is(value: Any) -> Any:
    return value


_OFFSET, _FILTER, _UNFILTERED = (
    "rabbitmq:stream-offset-spec",
    "rabbitmq:stream-filter",
    "rabbitmq:stream-match-unfiltered",
)
_PROPERTIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "x-priority": ("rabbitmq:priority", Int),
    "x-consumer-timeout": ("rabbitmq:consumer-timeout", UInt),
}
_FILTERS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "x-stream-offset": (_OFFSET, _OFFSET, _offset),
    "x-stream-filter": (_FILTER, _FILTER, _as_is),
    "x-stream-match-unfiltered": (_UNFILTERED, _UNFILTERED, bool),
    "x-filter-jms-selector": ("jms-selector", "apache.org:selector-filter:string", str),
}


class Subscribed(NamedTuple):
    """What a link is attached with.

    Args:
        source: where its messages come from.
        properties: those of the link; None for none.
    """

    source: Source
    properties: dict[Any, Any] | None


def subscription(address: str, arguments: Mapping[str, Any]) -> Subscribed:
    """Return the source and the properties for the arguments of a consumer.

    Raises:
        UnsupportedByVersion: an argument has no equivalent.
    """
    filters: dict[Any, Any] = {}
    properties: dict[Any, Any] = {}
    for name, value in arguments.items():
        if name in _PROPERTIES:
            key, convert = _PROPERTIES[name]
            properties[Symbol(key)] = convert(value)
        elif name in _FILTERS:
            key, descriptor, convert = _FILTERS[name]
            filters[Symbol(key)] = Described(Symbol(descriptor), convert(value))
        else:
            raise UnsupportedByVersion(VERSION, f"argument {name!r} of consumers")
    return Subscribed(Source(address=address, filter=filters or None), properties or None)


def check_filters(wanted: Source, answer: Attach | None) -> None:
    """Check that the filters are in force.

    Raises:
        ChannelClosed: the broker has left one out.
    """
    source = None if answer is None else answer.source
    granted = source.filter if isinstance(source, Source) else None
    for name in wanted.filter or ():
        if name not in (granted or ()):
            raise closed_channel(_NOT_IMPLEMENTED, f"the broker does not take the filter {name!r}")
