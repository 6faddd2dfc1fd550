"""Tune the interpreter's garbage collector for a broker.

Reference counts free nearly everything in a broker, because a connection breaks its
cycles when it ends. A collection still visits every live object. It is kept to small pieces, so
that it does not stop the loop.
"""

from __future__ import annotations

import gc

from harebell.server.limits import (
    COLLECT_MIDDLE_COLLECTIONS,
    COLLECT_OLD_COLLECTIONS,
    COLLECT_YOUNG_OBJECTS,
)


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
