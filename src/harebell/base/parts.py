"""Import code that was not needed at the start, a part in each turn of the event loop.

A part is what the import of one module brings with it: at most a few milliseconds. What is missing
in a list of parts is imported all the same, when it is used.
"""

from __future__ import annotations

import sys
from importlib import import_module


def import_next(parts: tuple[str, ...]) -> bool:
    """Import the first part that is missing; False if none is."""
    for name in parts:
        if name not in sys.modules:
            import_module(name)
            return True
    return False
