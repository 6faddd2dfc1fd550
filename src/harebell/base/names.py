"""Near misses: the name that was probably meant.

Every place that rejects a name it does not know says which known one is nearest, so that a typing
error costs one look and not a search through the documentation.
"""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 0.6
"""Share of letters in common from which a name counts as a near miss."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`; None when nothing is like it."""
    from difflib import get_close_matches  # here: it takes a while to load, and is for errors only

    found = get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str], quote: str = "") -> str:
    """A clause to end an error with: the nearest known name, or all of them."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {quote}{near}{quote}?"
    return "known are " + ", ".join(f"{quote}{each}{quote}" for each in names)
