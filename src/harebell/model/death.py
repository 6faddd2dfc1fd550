"""What a dead letter says of its death: queue, reason, routing key, and error of its consumer.

    death.queue     the queue it died in first: x-first-death-queue, or the oldest entry of x-death
    death.reason    why it died there: x-first-death-reason, or that of the oldest entry
    death.routing_key
                    the first key that it was published with, of the oldest entry of x-death
    death.error     what went wrong, without what differs for each message: the first line of a
                    header with `exception`, `error` or `fault` in its name, of `x-reason`, or what
                    a consumer of AMQP 1.0 said; numbers and identifiers are 0

Conditions have these as columns, dead letters are grouped by them, and a retry goes to the queue:
a group has exactly the messages that its condition selects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from harebell.base.limits import NAME_BYTES
from harebell.model.limits import DEATH_NAMES_KEPT

HISTORY = "x-death"
FIRST_QUEUE = "x-first-death-queue"
FIRST_REASON = "x-first-death-reason"
CONDITION = "condition"
DESCRIPTION = "description"
_ERROR_NAME = re.compile(r"exception|error|(?<!de)fault|^x-reason$", re.IGNORECASE)
_TRACE_NAME = re.compile(r"stack|trace", re.IGNORECASE)
_TYPE_NAME = re.compile(r"(type|class|fqcn)$", re.IGNORECASE)
_DIFFERS = re.compile(r"[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*|[0-9]+")
_OF_TYPE = 1
_OF_TEXT = 2
_LINE_CHARACTERS = 1_000
_ERROR_CHARACTERS = 120


class Death(NamedTuple):
    """What a dead letter says.

    Args:
        queue: where it died first.
        reason: why it died there; None if it does not say.
        routing_key: the key that it was published with; None if it does not say.
        error: what went wrong, without what differs for each message; None if it does not say.
    """

    queue: str
    reason: str | None
    routing_key: str | None
    error: str | None


def death_of(headers: Mapping[str, Any]) -> Death | None:
    """Return what the headers of a message say of its death; None if it is no dead letter."""
    history = headers.get(HISTORY)
    events = history if isinstance(history, list) else []
    oldest = events[-1] if events and isinstance(events[-1], Mapping) else {}
    # Of one event as a whole: a header of a publisher beside it must not be mixed in.
    named = _text(headers.get(FIRST_QUEUE))
    queue = named or _text(oldest.get("queue"))
    if queue is None:
        return None
    reason = headers.get(FIRST_REASON) if named else oldest.get("reason")
    keys = oldest.get("routing-keys")
    key = keys[0] if isinstance(keys, list) and keys else None
    key = "" if key == "" else _text(key)
    return Death(queue, _text(reason), key, _error_of(headers, events))


def _text(value: Any) -> str | None:
    """Return a name; None for what no queue and no reason is called."""
    return value if isinstance(value, str) and 0 < len(value) <= NAME_BYTES else None


def _error_of(headers: Mapping[str, Any], events: list[Any]) -> str | None:
    ranked = [
        (rank, name)
        for name, value in headers.items()
        if (rank := _rank(name)) and isinstance(value, str) and value
    ]
    if ranked:
        return signature(headers[min(ranked)[1]])
    newest = events[0] if events and isinstance(events[0], Mapping) else {}
    said = newest.get(DESCRIPTION) or newest.get(CONDITION)
    return signature(said) if isinstance(said, str) and said else None


@lru_cache(DEATH_NAMES_KEPT)
def _rank(name: str) -> int:
    """Return the rank of a header that may tell of an error, the least first; 0 for others."""
    if not _ERROR_NAME.search(name) or _TRACE_NAME.search(name):
        return 0
    # A type says more about a group than a text does.
    return _OF_TYPE if _TYPE_NAME.search(name) else _OF_TEXT


def signature(text: str) -> str:
    """Return the first line of a text without numbers and identifiers, cut to a length."""
    first = text[:_LINE_CHARACTERS].strip().partition("\n")[0].strip()
    return _DIFFERS.sub("0", first)[:_ERROR_CHARACTERS]
