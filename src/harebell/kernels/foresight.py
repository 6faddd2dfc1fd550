"""Messages of a backlog, brought near before they are wanted.

A long queue is larger than the processor's cache: whoever takes one message after another from it
waits for memory at each, unless the next ones are asked for meanwhile. `foresight.pyx` beside this
file does that; here there is nothing to be gained.
"""

from __future__ import annotations

from typing import Any


def foresee(messages: list[Any], index: int) -> int:
    """The messages that follow an index are likely to be wanted next.

    Args:
        messages: objects of the class Message, and None.
        index: of the one that is wanted now.
    """
    return 0
