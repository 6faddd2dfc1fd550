"""How soon the disk has to have what is confirmed: a word, as users write it.

fsync            a confirm waits until the disk has it
interval         the disk is synced every so often, at the interval of the setting
interval:200     the same, every 200 milliseconds
os               it is left to the system when to write
"""

from __future__ import annotations

from typing import NamedTuple

from harebell.base.limits import DURABILITY_INTERVAL_MAX_MS

FSYNC = "fsync"
INTERVAL = "interval"
OS = "os"
_ALLOWED = f"fsync, interval, interval:MILLISECONDS (1 to {DURABILITY_INTERVAL_MAX_MS}), os"


class Durability(NamedTuple):
    """A durability.

    Args:
        kind: FSYNC, INTERVAL or OS.
        ms: milliseconds between syncs for INTERVAL; 0 otherwise, or when the word gave none.
    """

    kind: str
    ms: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.ms}" if self.ms else self.kind

    @property
    def waits(self) -> bool:
        """Whether a confirm waits for the disk."""
        return self.kind == FSYNC


def parse_durability(text: str) -> Durability:
    """The durability that a word means.

    Raises:
        ValueError: it means none; the text says what is allowed.
    """
    kind, colon, digits = text.partition(":")
    if kind in (FSYNC, INTERVAL, OS) and not colon:
        return Durability(kind)
    if kind == INTERVAL and digits.isascii() and digits.isdecimal() and len(digits) < 10:
        ms = int(digits)
        if 1 <= ms <= DURABILITY_INTERVAL_MAX_MS:
            return Durability(kind, ms)
    raise ValueError(f"the durability '{text}' is unknown: give one of {_ALLOWED}")
