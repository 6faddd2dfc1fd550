"""Divide the limit of open files between segments, connections of AMQP and those of HTTP.

RLIMIT_NOFILE counts files and sockets together. Without a fixed part for the store, many
connections could prevent it from opening a segment, and all publishers would be blocked. Without
one for AMQP, anybody who reaches a port for HTTP could keep its clients out.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from typing import NamedTuple

from harebell.server.limits import (
    HTTP_CONNECTIONS,
    HTTP_FILES_SHARE,
    OTHER_FILES,
    STORE_FILES_MIN,
    STORE_FILES_SHARE,
)
from harebell.store.limits import OPEN_FILES

_WITHOUT_LIMIT = 1 << 30


class Shares(NamedTuple):
    """What may be open.

    Args:
        segments: for reading, and again for writing.
        connections: of AMQP.
        http: connections of the HTTP API, and again of the metrics.
    """

    segments: int
    connections: int
    http: int


def max_open() -> int:
    """Return the soft limit of open files of this process."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WITHOUT_LIMIT if soft == resource.RLIM_INFINITY else soft


def ask_for_more() -> None:
    """Raise the soft limit to the hard limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def shares(open_files: int) -> Shares:
    """Return the most segments and connections.

    Args:
        open_files: the limit of open files.
    """
    store = max(STORE_FILES_MIN, min(OPEN_FILES, (open_files - OTHER_FILES) // STORE_FILES_SHARE))
    left = open_files - 2 * store - OTHER_FILES
    http = max(1, min(HTTP_CONNECTIONS, left // HTTP_FILES_SHARE // 2))
    return Shares(store, max(1, left - 2 * http), http)
