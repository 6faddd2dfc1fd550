"""A line of the log, as the commands of administration show it."""

from __future__ import annotations

from typing import TypedDict


class LogLine(TypedDict):
    """A line of the log."""

    number: int
    time: str
    level: str
    category: str
    pid: str
    text: str
