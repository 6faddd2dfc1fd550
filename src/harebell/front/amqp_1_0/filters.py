"""Filters of a source: those that its queue has are in force, and listed in the answer.

    key, or descriptor                  value
    rabbitmq:stream-offset-spec         where to begin: first, last, next, 1h, an offset, a time
    rabbitmq:stream-filter              filter values, a string or several
    rabbitmq:stream-match-unfiltered    whether messages without a filter value come too
    apache.org:selector-filter:string   a selector, for every kind of queue
    amqp:sql-filter                     the same, by RabbitMQ's name
    amqp:properties-filter              properties and their values
    amqp:application-properties-filter  application properties and their values
    apache.org:legacy-amqp-topic-binding:string, -direct-binding:string
                                        the binding key, of a source that is an exchange

A filter that is not known, or not for this kind of queue, is left out of the answer: the client has
to look (AMQP 1.0 3.5.1). A message has to pass all that select. RabbitMQ before 4.3 takes values
without a descriptor, too.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from harebell.front.amqp_1_0.property_filters import selector_of
from harebell.model.queue.arguments import SELECTOR
from harebell.model.queue.contract import Queue
from harebell.model.queue.offsets import FILTER, MATCH_UNFILTERED, OFFSET
from harebell.model.queue.stream import StreamQueue
from harebell.wire.v1.encoding import Symbols
from harebell.wire.v1.values import Described, Symbol, Timestamp

_OFFSET = "rabbitmq:stream-offset-spec"
_FILTER = "rabbitmq:stream-filter"
_UNFILTERED = "rabbitmq:stream-match-unfiltered"
_SELECTORS = (
    *("apache.org:selector-filter:string", "apache.org:jms-selector-filter:string"),
    *(str(0x468C_0000_0004), "amqp:sql-filter", str(0x120)),
)
"""Names and numbers of the descriptors of selectors."""
CAPABILITIES = Symbols(("AMQP_FILTEX_PROP_V1_0", "AMQP_FILTEX_SQL_V1_0"))
"""What a link from a queue offers for them: RabbitMQ only one from a stream."""
_BINDINGS = (
    *("apache.org:legacy-amqp-direct-binding:string", str(0x468C_0000_0000)),
    *("apache.org:legacy-amqp-topic-binding:string", str(0x468C_0000_0001)),
)
"""Names and numbers of the descriptors of binding keys."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def arguments_of(
    queue: Queue, filters: dict[Any, Any] | None
) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Return the arguments of the consumer of a source, and the filters that are in force.

    Args:
        queue: of the source.
        filters: by key; None for none.
    """
    arguments: dict[str, Any] = {}
    in_force: dict[Any, Any] = {}
    for key, given in (filters or {}).items():
        name, value = _named(key, given)
        argument = _argument(name, value)
        if argument is None:
            continue
        # An offset is harmless for any other kind of queue, and is echoed, as by RabbitMQ.
        if argument[0] != SELECTOR:
            if isinstance(queue, StreamQueue):
                arguments[argument[0]] = argument[1]
            elif name != _OFFSET:
                continue
        in_force[Symbol(key)] = given
    return arguments | selector_in(filters), in_force


def selector_in(filters: dict[Any, Any] | None) -> dict[str, str]:
    """Return the selector of a source as an argument of a consumer or binding; empty for none."""
    selectors = []
    for key, given in (filters or {}).items():
        argument = _argument(*_named(key, given))
        # A blank one selects everything.
        if argument is not None and argument[0] == SELECTOR and argument[1].strip():
            selectors.append(argument[1])
    if not selectors:
        return {}
    alone = len(selectors) == 1
    return {SELECTOR: selectors[0] if alone else " AND ".join(map("({})".format, selectors))}


def binding_of(filters: dict[Any, Any] | None) -> tuple[str | None, dict[Any, Any]]:
    """Return the binding key of a source that is an exchange, and the filter that says it."""
    for key, given in (filters or {}).items():
        if type(given) is not Described or not isinstance(given.value, str):
            continue
        if str(given.descriptor) in _BINDINGS:
            return str(given.value), {Symbol(key): given}
    return None, {}


def _named(key: Any, given: Any) -> tuple[str, Any]:
    """Return the name and the value of a filter."""
    if type(given) is Described:
        return str(given.descriptor), given.value
    return str(key), given


def _argument(name: str, value: Any) -> tuple[str, Any] | None:
    """Return the argument of a consumer that a filter means; None if it is not known."""
    if name == _OFFSET:
        if type(value) is Timestamp:
            return OFFSET, _moment(value)
        if isinstance(value, str):
            return OFFSET, str(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return OFFSET, int(value)
    elif name == _FILTER:
        if isinstance(value, str):
            return FILTER, str(value)
        if isinstance(value, list):
            return FILTER, [str(each) for each in value if isinstance(each, str)]
    elif name in _SELECTORS and isinstance(value, str):
        return SELECTOR, str(value)
    elif name == _UNFILTERED and isinstance(value, bool):
        return MATCH_UNFILTERED, value
    selector = selector_of(name, value)
    return None if selector is None else (SELECTOR, selector)


def _moment(ms: int) -> Any:
    """Return a time in milliseconds as the model has it; a number if it is too far away."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return float(ms)
