"""Offsets in Spark's checkpoint: how far a query has come in its own count of deliveries.

    {"position": 250000, "spool": "4f0c2a..."}

AMQP has no offsets, so the deliveries are numbered as they come, for the whole life of the query.
`spool` names the folder that holds the deliveries before `position`, written by the process that
received them. Spark compares offsets as text, so the order of the keys is part of the format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from harebell.base.errors import HarebellError

_NAME = re.compile(r"[0-9a-f]*\Z")


class OffsetError(HarebellError, ValueError):
    """The checkpoint holds an offset that is not ours."""


@dataclass(frozen=True)
class Offset:
    """A point in the count of deliveries.

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
    def of_json(cls, value: Any) -> Offset:
        """From the checkpoint.

        Raises:
            OffsetError: it was written by another source.
        """
        position = value.get("position") if isinstance(value, dict) else None
        spool = value.get("spool") if isinstance(value, dict) else None
        well = type(position) is int and position >= 0 and isinstance(spool, str)
        # The name becomes part of a path.
        if not well or not _NAME.match(str(spool)):
            raise OffsetError(
                f"the checkpoint holds the offset {value!r}, which the harebell source did not "
                "write: does the checkpoint belong to another query?"
            )
        return cls(int(str(position)), str(spool))


START = Offset(0, "")
"""Where a new query begins."""
