"""Keep freed memory: the setting of the C library's allocator for processes with large buffers.

By default glibc maps and unmaps a buffer of a few hundred KiB or more, which costs a page fault for
each of its pages, every time. Processes that make one such buffer after the other keep the memory:
a broker, and a task of Spark.
"""

from __future__ import annotations

import ctypes
from functools import cache

from harebell.base.limits import HEAP_KEEP_BYTES, HEAP_MAP_BYTES

_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


@cache
def keep_heap(byte_count: int = HEAP_KEEP_BYTES) -> bool:
    """Make malloc keep freed memory up to a limit; False if the C library has no mallopt.

    Args:
        byte_count: the limit. If more is free at the top of the heap, all of that goes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    done = mallopt(_TRIM_THRESHOLD, byte_count) and mallopt(_MMAP_THRESHOLD, HEAP_MAP_BYTES)
    return bool(done)
