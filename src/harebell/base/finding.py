"""What an examination of a machine found, and how to correct it."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, NOTE, BAD = "ok", "note", "bad"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Args:
        name: what was checked.
        state: `ok`, `note` (works, but could be better) or `bad` (does not work).
        text: what was found, and how to correct it.
    """

    name: str
    state: str
    text: str
