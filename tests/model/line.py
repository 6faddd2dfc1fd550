"""A connection in memory that stays the same object when its version becomes known.

An arrival is followed by the connection of the version it asked for. Who has no shell that could
change over holds a line, which passes everything on to whichever of the two it is.
"""

from __future__ import annotations

from typing import Any, cast

from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_ports import Transport


class Line:
    """Stands for an arrival, and then for what follows it."""

    link: BaseConnection

    def __init__(self, arrival: BaseConnection) -> None:
        object.__setattr__(self, "link", arrival)
        arrival.transport = cast(Transport, self)

    def succeed(self, successor: BaseConnection) -> None:
        """The version is known."""
        object.__setattr__(self, "link", successor)
        successor.transport = None

    def flush(self) -> None:
        """Nobody writes for a line: its holder takes the output."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.link, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.link, name, value)
