"""What counts towards the limits of a cluster, on its way from one owner to another.

    owner that counts                             owner that asks
                                             <--  1 byte: the caller sends first
    size(4) JSON: all that there is          -->
    size(4) JSON: what has changed           -->

A record has the numbers of vhosts, queues and exchanges, and those users whose numbers of open
connections and channels are others than before.
"""

from __future__ import annotations

import msgspec

from harebell.base.limits import CLUSTER_USAGE_BYTES

SERVICE = "usage"
"""The service at the cluster port that sends it."""
SIZE_BYTES = 4
BEGIN = b"\0"


class Usage(msgspec.Struct, frozen=True):
    """What one owner has.

    Args:
        vhosts: how many.
        queues: of all its vhosts.
        exchanges: of all its vhosts.
        users: the open connections and channels of users who have a limit, by name.
    """

    vhosts: int = 0
    queues: int = 0
    exchanges: int = 0
    users: dict[str, tuple[int, int]] = {}


def encoded(usage: Usage) -> bytes:
    """Return a record with its size."""
    content = msgspec.json.encode(usage)
    return len(content).to_bytes(SIZE_BYTES) + content


def size_of(data: bytes) -> int:
    """Return the size of the record that follows.

    Raises:
        ValueError: no broker sends such a record.
    """
    size = int.from_bytes(data)
    if size > CLUSTER_USAGE_BYTES:
        raise ValueError(f"a record of {size} bytes about what is in use")
    return size


def decoded(data: bytes) -> Usage:
    """Return a record.

    Raises:
        ValueError: it is none.
    """
    try:
        return msgspec.json.decode(data, type=Usage)
    except msgspec.MsgspecError as error:
        raise ValueError(f"a damaged record about what is in use: {error}") from None
