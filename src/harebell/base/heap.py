"""Memory of processes with large buffers: what the allocator keeps, and where reads go.

By default glibc maps and unmaps a buffer of a few hundred KiB or more, which costs a page fault for
each of its pages, every time. Processes that make one such buffer after the other keep the memory:
a broker, and a task of Spark.

The kernel copies what a socket has got from pages of its own, with `rep movsb`. On AMD's processors
that takes five times as long where the target is up to 31 bytes ahead of the source, modulo a page
(6.5 us in place of 1.3 for 16 KiB), and a large block of malloc begins 16 bytes behind a page.
"""

from __future__ import annotations

import ctypes
from functools import cache

from harebell.base.limits import HEAP_KEEP_BYTES, HEAP_MAP_BYTES

_PAGE = 4_096
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


def read_buffer(byte_count: int) -> memoryview:
    """Return memory to read sockets into: it begins at a page."""
    memory = bytearray(byte_count + _PAGE)
    begin = -ctypes.addressof(ctypes.c_char.from_buffer(memory)) % _PAGE
    return memoryview(memory)[begin : begin + byte_count]
