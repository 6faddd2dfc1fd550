"""Hashes that are the same after restarts, on all platforms and in all versions of Python.

The `hash` of Python is salted per process; routing must not depend on that.
"""

from __future__ import annotations

import hashlib

MASK = (1 << 64) - 1
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mixed(number: int) -> int:
    """Return 64 bits that depend on all bits of the input (the finalizer of SplitMix64)."""
    number = ((number ^ (number >> 30)) * _FIRST) & MASK
    number = ((number ^ (number >> 27)) * _SECOND) & MASK
    return number ^ (number >> 31)


def hashed(text: str) -> int:
    """Return a 64-bit hash of a text."""
    data = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")
