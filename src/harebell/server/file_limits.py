"""Divide the limit of open files between segments and connections.

RLIMIT_NOFILE counts files and sockets together. Without a fixed part for the store, many
connections could prevent it from opening a segment, and all publishers would be blocked.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from harebell.base.limits import OPEN_FILES, OTHER_FILES, STORE_FILES_MIN, STORE_FILES_SHARE

_WITHOUT_LIMIT = 1 << 30


def max_open() -> int:
    """Return the soft limit of open files of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WITHOUT_LIMIT if soft == resource.RLIM_INFINITY else soft


def ask_for_more() -> None:
    """Raise the soft limit to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def shares(open_files: int) -> tuple[int, int]:
    """Return the most segments (for reading, and again for writing) and the most connections.

    Args:
        open_files: the limit of open files.
    """
    store = max(STORE_FILES_MIN, min(OPEN_FILES, (open_files - OTHER_FILES) // STORE_FILES_SHARE))
    return store, max(1, open_files - 2 * store - OTHER_FILES)
