"""How the collector of cyclic garbage works in a broker: in pieces that do not stop the loop.

Nearly everything in a broker goes by its reference count: a connection that ends breaks its cycles.
What is left for the collector is little, but it looks at everything that lives to find it.
"""

from __future__ import annotations

import gc

from harebell.base.limits import (
    COLLECT_MIDDLE_COLLECTIONS,
    COLLECT_OLD_COLLECTIONS,
    COLLECT_YOUNG_OBJECTS,
)

__all__ = ["bound_collections", "collect_new"]


def bound_collections() -> None:
    """Leave out what lives now, and bound what one collection looks at.

    A collection looks at the young objects, every so often at those that lived on, and at all of
    them after so many that a broker reaches its memory limit first.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_YOUNG_OBJECTS, COLLECT_MIDDLE_COLLECTIONS, COLLECT_OLD_COLLECTIONS)


def collect_new() -> None:
    """Look at what a crowded turn has made, so that no collection has to look at that of many.

    The interpreter counts what is made less what goes. A peer that replaces many things by as many
    others would have it look at all of them at once, much later.
    """
    gc.collect(1)
