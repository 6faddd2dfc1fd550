"""Tune the C library's allocator and the interpreter's garbage collector for a broker.

The allocator keeps freed memory up to a limit (`harebell.base.heap`). glibc never returns freed
memory that lies below memory in use; `Trimmer` returns it when the load has ended.

The collector: reference counts free nearly everything in a broker, because a connection breaks its
cycles when it ends. A collection still visits every live object. It is kept to small pieces, so
that it does not stop the loop.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable

from harebell.base.limits import (
    COLLECT_MIDDLE_COLLECTIONS,
    COLLECT_OLD_COLLECTIONS,
    COLLECT_YOUNG_OBJECTS,
    HEAP_KEEP_BYTES,
    HEAP_TRIM_BYTES,
)


class Trimmer:
    """Returns freed memory to the system when the load has ended."""

    def __init__(self) -> None:
        self._peak = 0
        self._last = 0
        self._trim: Callable[[int], int] | None
        try:
            self._trim = ctypes.CDLL(None).malloc_trim
        except (AttributeError, OSError):
            self._trim = None

    def look(self, used: int) -> bool:
        """Call malloc_trim if much memory was freed and usage is stable; True if it was called.

        Args:
            used: bytes of messages in memory.
        """
        self._peak = max(self._peak, used)
        quiet = abs(used - self._last) < HEAP_KEEP_BYTES
        self._last = used
        if self._trim is None or not quiet or self._peak - used < HEAP_TRIM_BYTES:
            return False
        self._peak = used
        self._trim(0)
        return True


def bound_collections() -> None:
    """Exclude all existing objects from collections, and limit the size of a collection.

    Most collections visit only the young generation. The threshold of the oldest generation is so
    high that a broker reaches its memory limit before a full collection.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_YOUNG_OBJECTS, COLLECT_MIDDLE_COLLECTIONS, COLLECT_OLD_COLLECTIONS)


def collect_new() -> None:
    """Collect the objects of a crowded turn now, so that they do not add up.

    The interpreter counts allocations minus deallocations. If a peer replaces many objects by as
    many others, that count stays low, and a much later collection would visit all of them at once.
    """
    gc.collect(1)
