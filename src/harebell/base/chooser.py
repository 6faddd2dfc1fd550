"""Choosing at random below the waterline: the entropy comes in once, as a seed.

A system call per message would cost more than the routing, and a test wants the same choices again
from the same seed. Nothing here is for secrets.
"""

from __future__ import annotations

from harebell.base.hashing import MASK, mixed

_STEP = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: an odd step that visits every state once."""


class Chooser:
    """An endless row of choices, all equally likely.

    Args:
        seed: where the row begins.
    """

    def __init__(self, seed: bytes = b"") -> None:
        self._state = int.from_bytes(seed, "big") & MASK

    def below(self, end: int) -> int:
        """A whole number from 0 on and less than `end`."""
        self._state = (self._state + _STEP) & MASK
        return (mixed(self._state) * end) >> 64
