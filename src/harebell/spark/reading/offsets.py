"""Parse and format offsets in Spark's checkpoint: how far each queue was read.

    {"orders": {"generation": "5d0c...", "group": "spark-81f2...", "claim": 12,
                "eras": "03b1...:1"},
     "events": {"generation": "77aa...", "position": 250000, "eras": "9c4e...:0 aa07...:90000"}}

A leased queue counts claims: everything up to claim 12 of the group is before this offset.
A stream, and a queue that is read without consuming, has positions. The generation identifies
the log: a queue that was deleted and declared again has another one. The eras
(`harebell.base.eras`) tell whether the numbers before this offset are those that the broker has
given, or those of a history that a restore of its data has ended. Offsets of earlier versions have
none, and neither has one before which there is nothing.

Plain AMQP has neither. A query over one such queue has the offset

    {"position": 250000, "spool": "4f0c2a..."}

Deliveries are numbered in their order of arrival, for the whole life of the query, and `spool`
names the directory with the deliveries before `position`. With several queues this is stored by
queue name.

Spark compares offsets as text, so the order of the keys is part of the format; queues are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harebell.base.eras import is_eras, shared_until
from harebell.base.errors import HarebellError

_NAME = re.compile(r"[0-9a-f]*\Z")
_NUMBERS = 1 << 63
"""No count of a broker reaches this number: counts have at most 63 bits."""


class OffsetError(HarebellError, ValueError):
    """The checkpoint has an offset of another source."""


@dataclass(frozen=True)
class SpoolOffset:
    """An offset over plain AMQP: a number of deliveries.

    Args:
        position: number of deliveries before it.
        spool: directory of the deliveries; "" before the first delivery.
    """

    position: int
    spool: str

    def to_json(self) -> dict[str, Any]:
        """Return the offset as JSON."""
        return {"position": self.position, "spool": self.spool}

    @classmethod
    def of_json(cls, value: Any) -> SpoolOffset:
        """Parse the offset of a checkpoint.

        Raises:
            OffsetError: it was written by another source.
        """
        if isinstance(value, dict) and is_spooled(value):
            position, spool = value["position"], value["spool"]
            # The name becomes part of a path.
            if _count(position) and isinstance(spool, str) and _NAME.match(spool):
                return cls(position, spool)
        raise _foreign(value)


@dataclass(frozen=True)
class LogOffset:
    """An offset in a log: a stream, or a queue that is read without consuming.

    Args:
        generation: identity of the log.
        position: position of the next message.
        eras: of the positions before it; "" if unknown.
    """

    generation: str
    position: int
    eras: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the offset as JSON."""
        value: dict[str, Any] = {"generation": self.generation, "position": self.position}
        return value | ({"eras": self.eras} if self.eras else {})

    def shared(self, eras: str) -> int:
        """Return how far the positions before it are those of a history.

        Args:
            eras: of the history; "" if unknown.
        """
        if not (self.eras and eras):
            return self.position
        return min(self.position, shared_until(self.eras, eras))


@dataclass(frozen=True)
class ClaimOffset:
    """An offset in the claims of a leased queue.

    Args:
        generation: identity of the log.
        group: name of the lease group.
        claim: the last claim before this offset; 0 before the first.
        eras: of the claims before it; "" if unknown.
    """

    generation: str
    group: str
    claim: int
    eras: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the offset as JSON."""
        value: dict[str, Any] = {
            "generation": self.generation,
            "group": self.group,
            "claim": self.claim,
        }
        return value | ({"eras": self.eras} if self.eras else {})

    def shared(self, eras: str, newest: int) -> int:
        """Return the last claim before it that a history has; 0 for none.

        Args:
            eras: of the history; "" if unknown.
            newest: its last claim.
        """
        last = min(self.claim, newest)
        if not (self.eras and eras):
            return last
        # Claims are counted from 1, and `shared_until` returns the first one that differs.
        return max(0, min(last, shared_until(self.eras, eras) - 1))


QueueOffset = SpoolOffset | LogOffset | ClaimOffset
"""How far a query has read one queue."""
Kind = TypeVar("Kind", SpoolOffset, LogOffset, ClaimOffset)


def expected(offset: QueueOffset, kind: type[Kind], queue: str) -> Kind:
    """Return an offset of a checkpoint as one of the kind that a reader has.

    Raises:
        OffsetError: it is of another kind.
    """
    if not isinstance(offset, kind):
        raise OffsetError(
            f"the checkpoint holds the offset {offset.to_json()!r} for queue {queue!r}, "
            "which belongs to a query of another delivery: use a new checkpoint"
        )
    return offset


def is_spooled(value: Any) -> bool:
    """True if it is the offset of one queue over plain AMQP."""
    return (
        isinstance(value, dict)
        and set(value) == {"position", "spool"}
        # Else these are the offsets of two queues with the names `position` and `spool`.
        and (not isinstance(value["position"], dict))
    )


def offsets_json(offsets: Mapping[str, QueueOffset]) -> dict[str, Any]:
    """Format the offset of several queues."""
    return {queue: offsets[queue].to_json() for queue in sorted(offsets)}


def offsets_of(value: Any, only_queue: str = "") -> dict[str, QueueOffset]:
    """Parse the offset of a checkpoint into the offset of each queue.

    Args:
        value: the offset, from JSON.
        only_queue: the queue of an offset that names none: of a query over one queue of plain AMQP.

    Raises:
        OffsetError: it was written by another source.
    """
    if is_spooled(value):
        return {only_queue: SpoolOffset.of_json(value)}
    if not isinstance(value, dict):
        raise _foreign(value)
    return {queue: _offset_of(one, value) for queue, one in value.items()}


def _offset_of(one: Any, whole: Any) -> QueueOffset:
    if isinstance(one, dict):
        eras = one.get("eras", "")
        keys = set(one) - {"eras"} if is_eras(eras) else set(one)
        generation = one.get("generation")
        if keys == {"position", "spool"}:
            return SpoolOffset.of_json(one)
        if isinstance(generation, str):
            if keys == {"generation", "position"} and _count(one["position"]):
                return LogOffset(generation, one["position"], eras)
            named = isinstance(one.get("group"), str) and one["group"]
            if keys == {"generation", "group", "claim"} and named and _count(one["claim"]):
                return ClaimOffset(generation, one["group"], one["claim"], eras)
    raise _foreign(whole)


def _count(value: Any) -> bool:
    # A bool is an int of Python, too, and no count.
    return type(value) is int and 0 <= value < _NUMBERS


def _foreign(value: Any) -> OffsetError:
    return OffsetError(
        f"the checkpoint holds the offset {value!r}, which the harebell source did not "
        "write: does the checkpoint belong to another query?"
    )


START = SpoolOffset(0, "")
"""Where a new query over plain AMQP begins."""
