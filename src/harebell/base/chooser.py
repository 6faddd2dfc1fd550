"""Random choices below the waterline, from a seed.

A system call per message would cost more than the routing, and tests need the same choices from the
same seed. Not for secrets.
"""

from __future__ import annotations

from harebell.base.hashing import MASK, mixed

_STEP = 0x9E3779B97F4A7C15
"""2**64 over the golden ratio: an odd step that visits every state once."""


class Chooser:
    """A sequence of uniform random choices.

    Args:
        seed: the seed of the sequence.
    """

    def __init__(self, seed: bytes = b"") -> None:
        self._state = int.from_bytes(seed, "big") & MASK

    def below(self, end: int) -> int:
        """Return an integer from 0 up to, not including, `end`."""
        self._state = (self._state + _STEP) & MASK
        return (mixed(self._state) * end) >> 64
