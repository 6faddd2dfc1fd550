"""Suggestions for misspelt names.

An error about an unknown name suggests the most similar known one.
"""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = 0.6
"""Similarity from which a name is suggested."""
_FEW = 60
"""So many names are listed where none is similar."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most like `name`; None if none is similar."""
    from difflib import get_close_matches  # here: slow to import, only for errors

    matches = get_close_matches(name, list(known), n=1, cutoff=_ALIKE)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str], quote: str = "") -> str:
    """Return a clause to end an error with: the most similar known name, or all if they are few."""
    names = list(known)
    near = nearest(name, names)
    if near is not None:
        return f"did you mean {quote}{near}{quote}?"
    if not names:
        return "none is known"
    if len(names) > _FEW:
        return f"it is none of the {len(names)} that are known"
    return "known are " + ", ".join(f"{quote}{each}{quote}" for each in names)
