"""Durability: when a confirmed message has to be on disk.

fsync            a confirm waits for the sync
interval         the disk is synced at the configured interval
interval:200     the disk is synced every 200 milliseconds
os               the operating system decides when to write
"""

from __future__ import annotations

from typing import NamedTuple

from harebell.base.limits import DURABILITY_INTERVAL_MAX_MS

FSYNC = "fsync"
INTERVAL = "interval"
OS = "os"
_ALLOWED = f"fsync, interval, interval:MILLISECONDS (1 to {DURABILITY_INTERVAL_MAX_MS}), os"


class Durability(NamedTuple):
    """A durability setting.

    Args:
        kind: FSYNC, INTERVAL or OS.
        ms: milliseconds between syncs for INTERVAL; 0 otherwise, or for the configured interval.
    """

    kind: str
    ms: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.ms}" if self.ms else self.kind

    @property
    def waits(self) -> bool:
        """Whether confirms wait for the disk."""
        return self.kind == FSYNC


def parse_durability(text: str) -> Durability:
    """Return the durability of a setting.

    Raises:
        ValueError: it is invalid; the text says what is allowed.
    """
    kind, colon, digits = text.partition(":")
    if kind in (FSYNC, INTERVAL, OS) and not colon:
        return Durability(kind)
    if kind == INTERVAL and digits.isascii() and digits.isdecimal() and len(digits) < 10:
        ms = int(digits)
        if 1 <= ms <= DURABILITY_INTERVAL_MAX_MS:
            return Durability(kind, ms)
    raise ValueError(f"the durability '{text}' is unknown: give one of {_ALLOWED}")
