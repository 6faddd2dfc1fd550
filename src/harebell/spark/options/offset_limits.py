"""Where reading begins or ends: startingOffsets, endingTimestamp and the related options.

    earliest   latest                the ends of the stored messages
    250000                           a position
    2026-01-31T12:00:00Z             the first message of that time or later
    {"orders": 250000, "audit": "latest", "old": -2}      per queue; -2 earliest, -1 latest
    {"events": {"generation": "77aa...", "position": 250000, "eras": "9c4e...:0"}}
                                     what the progress of a query has: checked against the broker

The names, the meaning of -2 and -1, milliseconds since 1970 in the options that speak of
timestamps, and which option wins over which are those of Spark's Kafka source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from harebell.base.eras import is_eras
from harebell.spark.options.values import OptionError

EARLIEST, LATEST, POSITION, TIME = "earliest", "latest", "position", "time"
_POSITION_MAX = 2**63 - 1
_DIGITS = 20
_MICROS = 1_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class OffsetLimit:
    """Where reading a queue begins or ends.

    Args:
        kind: EARLIEST, LATEST, POSITION or TIME.
        number: the position, or microseconds since 1970.
        generation: identity of the log that has the position; "" if unknown.
        eras: of the positions before it (`harebell.base.eras`); "" if unknown.
    """

    kind: str
    number: int = 0
    generation: str = ""
    eras: str = ""

    def __str__(self) -> str:
        """The text of an option."""
        if self.kind == POSITION:
            return str(self.number)
        if self.kind == TIME:
            try:
                return (_EPOCH + timedelta(microseconds=self.number)).isoformat()
            except OverflowError:
                return f"{self.number // 1000} ms after 1970"
        return self.kind


@dataclass(frozen=True)
class OffsetLimits:
    """Limits for all queues, or for each queue.

    Args:
        everywhere: for queues that are not named; None if not given.
        named: by queue.
    """

    everywhere: OffsetLimit | None = None
    named: Mapping[str, OffsetLimit] = field(default_factory=dict)

    def of(self, queue: str) -> OffsetLimit | None:
        """Return the limit of one queue."""
        return self.named.get(queue, self.everywhere)

    def check_named(self, read: Callable[[str], object], what: str) -> None:
        """Check that only queues that are read have limits of their own.

        Args:
            read: whether a queue is read.
            what: the queues that are read, for the error.

        Raises:
            OptionError: another queue is named.
        """
        for queue in self.named:
            if not read(queue):
                raise OptionError(
                    f"a starting or ending option names queue {queue!r}, which is not read: {what}"
                )

    @property
    def all(self) -> tuple[OffsetLimit, ...]:
        """Return every limit that was given."""
        own = () if self.everywhere is None else (self.everywhere,)
        return (*own, *self.named.values())


NO_LIMITS = OffsetLimits()


_SHOWN = 3
"""Partitions that an error names."""


def read_offset_limits(name: str, value: str) -> OffsetLimits:
    """Parse the options startingOffsets and endingOffsets."""
    if not value.strip().startswith("{"):
        return OffsetLimits(_place(name, value.strip()))
    offsets = _object(name, value)
    for queue, one in offsets.items():
        if isinstance(one, dict) and not _of_progress(one):
            raise OptionError(
                f"the option {name} has an object for {queue!r}, which is Kafka's level of "
                f"partitions: an offset stands beside the name of a queue or stream, as in "
                f"{_flat(queue, one)}, and the partitions of a super stream are streams, as in "
                f"{_of_streams(queue, one)}"
            )
    return OffsetLimits(None, {queue: _place(name, one) for queue, one in offsets.items()})


def _of_progress(value: Mapping[str, Any]) -> bool:
    """True if it is the offset of a log, as the progress of a query has it."""
    return (
        set(value) | {"eras"} == {"generation", "position", "eras"}
        and isinstance(value["generation"], str)
        and is_eras(value.get("eras", ""))
    )


def _flat(queue: str, partitions: Mapping[str, Any]) -> str:
    """An example without the level of partitions."""
    value = next(iter(partitions.values()), 0)
    return json.dumps({queue: value if type(value) is int else 0}, ensure_ascii=False)


def _of_streams(name: str, partitions: Mapping[str, Any]) -> str:
    """The same partitions as those of a super stream."""
    numbers = [each for each in partitions if each.isdecimal()] or ["0"]
    offsets = {f"{name}-{each}": partitions.get(each, 0) for each in numbers[:_SHOWN]}
    shown = {each: value if type(value) is int else 0 for each, value in offsets.items()}
    return json.dumps(shown, ensure_ascii=False)


def read_time(name: str, value: str) -> OffsetLimits:
    """Parse the options startingTimestamp and endingTimestamp."""
    return OffsetLimits(OffsetLimit(TIME, _moment(name, value.strip())))


def read_times(name: str, value: str) -> OffsetLimits:
    """Parse the options startingOffsetsByTimestamp and endingOffsetsByTimestamp."""
    times = _object(name, value)
    return OffsetLimits(
        None, {queue: OffsetLimit(TIME, _moment(name, one)) for queue, one in times.items()}
    )


def _place(name: str, value: Any) -> OffsetLimit:
    if isinstance(value, dict):
        place = _place(name, value["position"])
        return replace(place, generation=value["generation"], eras=value.get("eras", ""))
    # Not isinstance: true and false are ints of Python.
    if type(value) is int:
        if value in (-2, -1):
            return OffsetLimit(EARLIEST if value == -2 else LATEST)
        if 0 <= value <= _POSITION_MAX:
            return OffsetLimit(POSITION, value)
    elif isinstance(value, str):
        if value.lower() in (EARLIEST, LATEST):
            return OffsetLimit(value.lower())
        number = _number(value)
        if number is not None and number <= _POSITION_MAX:
            return OffsetLimit(POSITION, number)
        micros = _iso(value)
        if micros is not None:
            return OffsetLimit(TIME, micros)
    raise OptionError(
        f"the option {name} must be earliest, latest, a position, a time such as "
        f"2026-01-31T12:00:00Z, or these per queue as JSON, not {value!r}"
    )


def _moment(name: str, value: Any) -> int:
    """Parse milliseconds since 1970, or an ISO 8601 time, as microseconds."""
    number = value if type(value) is int else None
    if isinstance(value, str):
        number = _number(value)
        micros = _iso(value)
        if number is None and micros is not None:
            return micros
    if number is not None and 0 <= number <= _POSITION_MAX // 1000:
        return number * 1000
    raise OptionError(
        f"the option {name} must be milliseconds since 1970 or a time such as "
        f"2026-01-31T12:00:00Z, not {value!r}"
    )


def _number(text: str) -> int | None:
    """Parse a number that has no more digits than the largest position."""
    # `int` raises above 4,300 digits, and takes digits of other scripts.
    if text.isascii() and text.isdigit() and len(text.lstrip("0")) < _DIGITS:
        return int(text.lstrip("0") or "0")
    return None


def _iso(text: str) -> int | None:
    """Parse ISO 8601; without a zone it is UTC. Times before 1970 count as 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return max(0, (since.days * 86_400 + since.seconds) * _MICROS + since.microseconds)


def _object(name: str, value: str) -> dict[str, Any]:
    try:
        # A dict keeps the last of two equal names, and a typing error would be read silently.
        document = json.loads(value, object_pairs_hook=lambda pairs: _unique(name, pairs))
    except json.JSONDecodeError as error:
        raise OptionError(f"the option {name} is no JSON: {error}") from None
    if not isinstance(document, dict) or not document:
        raise OptionError(
            f'the option {name} must be a JSON object by queue, such as {{"orders": 0}}, not '
            f"{value!r}"
        )
    return document


def _unique(name: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise OptionError(f"the option {name} names a queue twice")
    return members
