"""A text of many MB in pieces: nothing puts it together, or makes it wider, in one turn."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.base.slices import consumed


class LongText:
    """A long text.

    Args:
        pieces: its characters, in their order.
    """

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces
        self.length = sum(map(len, pieces))

    def __str__(self) -> str:
        """Return the whole text."""
        return "".join(self._pieces)

    def taken(self) -> Iterator[str]:
        """Yield the pieces, and keep none of them."""
        return consumed(self._pieces)
