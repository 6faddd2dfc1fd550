"""Hashes that stay the same over restarts, platforms and versions of Python.

Python's own `hash` is salted per process; a message's queue must not depend on that.
"""

from __future__ import annotations

import hashlib

MASK = (1 << 64) - 1
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def mixed(number: int) -> int:
    """64 bits, each of which depends on all bits of the 64 given (the finalizer of SplitMix64)."""
    number = ((number ^ (number >> 30)) * _FIRST) & MASK
    number = ((number ^ (number >> 27)) * _SECOND) & MASK
    return number ^ (number >> 31)


def hashed(text: str) -> int:
    """64 bits for a text."""
    octets = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.blake2b(octets, digest_size=8).digest(), "big")
