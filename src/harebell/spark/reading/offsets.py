"""Offsets in Spark's checkpoint: how far a query has read each of its queues.

    {"orders": {"generation": "5d0c...", "group": "spark-81f2...", "claim": 12},
     "events": {"generation": "77aa...", "position": 250000}}

A queue that is leased counts claims: everything up to claim 12 of the group is before this offset.
A stream, and a queue that is only looked at, has positions. The generation says which log they
belong to: a queue that was deleted and declared again has another one.

Plain AMQP has neither. A query over one such queue has the offset

    {"position": 250000, "spool": "4f0c2a..."}

where the deliveries are numbered as they come, for the whole life of the query, and `spool` names
the folder that holds those before `position`. Over several queues this stands under their names.

Spark compares offsets as text, so the order of the keys is part of the format; queues are sorted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harebell.base.errors import HarebellError

_NAME = re.compile(r"[0-9a-f]*\Z")


class OffsetError(HarebellError, ValueError):
    """The checkpoint holds an offset of another source."""


@dataclass(frozen=True)
class SpoolOffset:
    """An offset over plain AMQP: a count of deliveries.

    Args:
        position: how many deliveries come before it.
        spool: the folder they lie in; "" before the first delivery.
    """

    position: int
    spool: str

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"position": self.position, "spool": self.spool}

    @classmethod
    def of_json(cls, value: Any) -> SpoolOffset:
        """From the checkpoint.

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
        generation: which log.
        position: of the next message.
    """

    generation: str
    position: int

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"generation": self.generation, "position": self.position}


@dataclass(frozen=True)
class ClaimOffset:
    """An offset in the claims of a leased queue.

    Args:
        generation: which log.
        group: who claims.
        claim: the last claim before this offset; 0 before the first.
    """

    generation: str
    group: str
    claim: int

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {"generation": self.generation, "group": self.group, "claim": self.claim}


QueueOffset = SpoolOffset | LogOffset | ClaimOffset
"""How far a query has read one queue."""


def is_spooled(value: Any) -> bool:
    """Whether this is the offset of one queue over plain AMQP."""
    return (
        isinstance(value, dict)
        and set(value) == {"position", "spool"}
        and (not isinstance(value["position"], dict))
    )


def offsets_json(points: Mapping[str, QueueOffset]) -> dict[str, Any]:
    """The offset of several queues."""
    return {queue: points[queue].to_json() for queue in sorted(points)}


def offsets_of(value: Any) -> dict[str, QueueOffset]:
    """Parse the offset of a checkpoint: the offset of each queue.

    Raises:
        OffsetError: it was written by another source.
    """
    if not isinstance(value, dict):
        raise _foreign(value)
    return {queue: _point(one, value) for queue, one in value.items()}


def _point(one: Any, whole: Any) -> QueueOffset:
    if isinstance(one, dict):
        keys = set(one)
        generation = one.get("generation")
        if keys == {"position", "spool"}:
            return SpoolOffset.of_json(one)
        if isinstance(generation, str):
            if keys == {"generation", "position"} and _count(one["position"]):
                return LogOffset(generation, one["position"])
            named = isinstance(one.get("group"), str) and one["group"]
            if keys == {"generation", "group", "claim"} and named and _count(one["claim"]):
                return ClaimOffset(generation, one["group"], one["claim"])
    raise _foreign(whole)


def _count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _foreign(value: Any) -> OffsetError:
    return OffsetError(
        f"the checkpoint holds the offset {value!r}, which the harebell source did not "
        "write: does the checkpoint belong to another query?"
    )


START = SpoolOffset(0, "")
"""Where a new query over plain AMQP begins."""
