"""How many files and sockets the process may have open, and who gets how many.

The system counts both together. Sockets come as peers like, so without a share of its own the store
would have none left when it has to open a file, and everybody would wait.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from harebell.base.limits import OPEN_FILES, OTHER_FILES, STORE_FILES_LEAST, STORE_FILES_SHARE

_WITHOUT_LIMIT = 1 << 30


def most_open() -> int:
    """How many the system lets this process have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WITHOUT_LIMIT if soft == resource.RLIM_INFINITY else soft


def ask_for_more() -> None:
    """Raise the limit as far as this process may by itself."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def shares(most: int) -> tuple[int, int]:
    """Segments open for reading, and as many for writing, and connections.

    Args:
        most: how many there may be of everything.
    """
    store = max(STORE_FILES_LEAST, min(OPEN_FILES, (most - OTHER_FILES) // STORE_FILES_SHARE))
    return store, max(1, most - 2 * store - OTHER_FILES)
