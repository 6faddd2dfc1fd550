"""The C library's heap: freed buffers are kept for the next turn, and much at once is given back.

A turn's buffers are of a few hundred KiB, and glibc would map and unmap each, which costs a fault
for every page of it, every time. But what many large messages leave behind when they go lies
between what stays, where glibc never looks by itself: it is told to when things are quiet again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from harebell.base.limits import HEAP_KEEP_BYTES, HEAP_MAP_BYTES, HEAP_TRIM_BYTES

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_heap() -> bool:
    """Keep what is freed up to a limit; False where the C library does not know how."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    done = mallopt(_TRIM_THRESHOLD, HEAP_KEEP_BYTES) and mallopt(_MMAP_THRESHOLD, HEAP_MAP_BYTES)
    return bool(done)


class Trimmer:
    """Gives memory back after messages have gone."""

    def __init__(self) -> None:
        self._most = 0
        self._last = 0
        self._trim: Callable[[int], int] | None
        try:
            self._trim = ctypes.CDLL(None).malloc_trim
        except (AttributeError, OSError):
            self._trim = None

    def look(self, used: int) -> bool:
        """Give memory back if much has gone, and nothing goes any more; True when it did.

        Args:
            used: the octets of messages in memory.
        """
        self._most = max(self._most, used)
        quiet = abs(used - self._last) < HEAP_KEEP_BYTES
        self._last = used
        if self._trim is None or not quiet or self._most - used < HEAP_TRIM_BYTES:
            return False
        self._most = used
        self._trim(0)
        return True
