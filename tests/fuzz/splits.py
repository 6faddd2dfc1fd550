"""Cutting octets into reads."""

from __future__ import annotations

import random


def singly(data: bytes) -> list[bytes]:
    """Octet by octet."""
    return [data[at : at + 1] for at in range(len(data))]


def anyhow(data: bytes, seed: int) -> list[bytes]:
    """In pieces of random sizes, mostly small."""
    rng = random.Random(seed)
    parts = []
    at = 0
    while at < len(data):
        size = rng.choice((1, 2, 3, 7, 8, 9, 50, 1000))
        parts.append(data[at : at + size])
        at += size
    return parts
