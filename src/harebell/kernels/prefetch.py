"""Prefetch the messages of a backlog into the CPU cache.

A long queue is larger than the cache. Without prefetching, a loop over its messages waits for main
memory at each of them. `prefetch.pyx` beside this file issues the prefetch instructions. Python
cannot, so this twin does nothing.
"""

from __future__ import annotations

from typing import Any


def prefetch_after(messages: list[Any], index: int) -> int:
    """Prefetch the messages that follow an index.

    Args:
        messages: objects of the class Message, and None.
        index: of the message that is read now.
    """
    return 0
