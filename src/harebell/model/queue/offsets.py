"""Stream offsets: where a consumer starts, and its filter, from its arguments.

x-stream-offset                       "first", "last", "next", an offset, a timestamp, or how
                                      long ago: a number and one of Y M D h m s
x-stream-eras                         the eras of an integer offset (`harebell.base.eras`)
x-stream-filter                       a string or an array of strings
x-stream-match-unfiltered             deliver messages without a filter value too
x-stream-automatic-offset-tracking    continue after the last offset acknowledged with this tag
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harebell.base.ports import Log
from harebell.model.equivalence import shown, type_name
from harebell.model.resource import precondition

OFFSET = "x-stream-offset"
ERAS = "x-stream-eras"
FILTER = "x-stream-filter"
MATCH_UNFILTERED = "x-stream-match-unfiltered"
TRACKING = "x-stream-automatic-offset-tracking"
FILTER_VALUE = "x-stream-filter-value"
"""The header by which messages are filtered."""

_MS = 1000
_DAY = 86_400
_UNITS = {"Y": 365 * _DAY, "M": 30 * _DAY, "D": _DAY, "h": 3600, "m": 60, "s": 1}
_SPAN = re.compile(r"([0-9]{1,18})([YMDhms])\Z", re.ASCII)
_NAMES = ("first", "last", "next")


def span_ms(text: str) -> int | None:
    """Return the milliseconds of an interval such as "7D"; None if it is invalid."""
    match = _SPAN.match(text)
    return None if match is None else int(match[1]) * _UNITS[match[2]] * _MS


def check_offset(resource: str, arguments: Mapping[str, Any]) -> None:
    """Refuse an invalid x-stream-offset."""
    if OFFSET not in arguments:
        return
    value = arguments[OFFSET]
    if isinstance(value, str):
        valid = value in _NAMES or span_ms(value) is not None
    else:
        valid = isinstance(value, datetime | int) and not isinstance(value, bool)
    if not valid:
        text = f'<<"{value}">>' if isinstance(value, str) else shown(value)
        raise precondition(
            f"invalid arg '{OFFSET}' for {resource}: "
            f"{{invalid_stream_offset_arg,{{{type_name(value)},{text}}}}}"
        )


def start_position(value: Any, log: Log, end: int, now: int) -> int:
    """Return the position where a consumer starts.

    Args:
        value: the checked x-stream-offset.
        log: the log of the stream.
        end: the visible end of the stream.
        now: wall clock time in milliseconds.
    """
    first = log.first()
    if isinstance(value, str):
        if value == "first":
            return first
        if value == "next":
            return end
        if value == "last":
            # RabbitMQ begins with the last chunk of messages. There are no chunks here.
            return max(first, end - 1)
        return min(log.at_time(max(now - (span_ms(value) or 0), 0)), end)
    if isinstance(value, datetime):
        return min(log.at_time(max(int(value.timestamp() * _MS), 0)), end)
    if type(value) is not int:
        # The timestamp is outside the range of datetime.
        return end
    # An offset that retention has removed means the first, as in RabbitMQ.
    return min(max(value, first), end)


def filter_values(arguments: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the filter values of a consumer; None if it has no filter."""
    value = arguments.get(FILTER)
    if isinstance(value, str):
        return frozenset((value,))
    if isinstance(value, list):
        return frozenset(each for each in value if isinstance(each, str))
    return None
