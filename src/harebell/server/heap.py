"""The C library's heap: freed buffers are kept for the next turn instead of given back.

A turn's buffers are of a few hundred KiB, and glibc would map and unmap each, which costs a fault
for every page of it, every time.
"""

from __future__ import annotations

import ctypes

from harebell.base.limits import HEAP_KEEP_BYTES, HEAP_MAP_BYTES

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
