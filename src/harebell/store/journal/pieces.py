"""Count the live bytes of each generation of a log in a database.

The rows of such a log are in generations, and a generation is removed as a whole. Before that, its
live bytes are recorded once more in a newer one. A file is watched in pieces of 64 KiB: a piece
belongs to every generation that has bytes of it, until it is recorded again as a whole.

    generation 1    file a: piece 0, piece 1        file b: piece 0
    generation 2            piece 1 (a part)        file b removed
    live in 1       file a: piece 0, piece 1        piece 1 needs the bytes of both generations
"""

from __future__ import annotations

import msgspec

from harebell.store.journal.changes import (
    ALIVE,
    DEFINITION,
    MARK,
    REMOVE,
    RENAME,
    SNAPSHOT,
    TRUNCATE,
    WRITE,
    Change,
)

PIECE_BYTES = 65_536
Piece = tuple[str, int]
"""A path, and the number of a piece in the file."""
DEFINITIONS: Piece = ("", 0)
"""Stands for the database of definitions."""


class LivePieces:
    """The live pieces of each generation.

    Attributes:
        sizes: of all live files, by path.
    """

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self._image = 0
        self._total = 0
        self._files: dict[str, dict[int, set[int]]] = {}
        self._of: dict[int, set[Piece]] = {}
        self._definitions: set[int] = set()

    def note(self, change: Change, generation: int) -> None:
        """Note a change that is in a generation; a directory is empty when it is removed."""
        kind, number, name, data = change
        if kind == WRITE:
            self._written(name, number, len(data), generation)
        elif kind == REMOVE:
            self._gone(name)
        elif kind == TRUNCATE:
            self._truncated(name, number)
        elif kind == RENAME:
            self._renamed(name, str(data, "utf-8"), generation)
        elif kind in (DEFINITION, MARK):
            self._belongs(DEFINITIONS, generation)
        elif kind == SNAPSHOT:
            self._image = len(data)
            self.whole(DEFINITIONS, generation)
        elif kind == ALIVE:
            for path in self.sizes.keys() - msgspec.msgpack.decode(data).keys():
                self._gone(path)

    def whole(self, piece: Piece, generation: int) -> None:
        """Note that a piece was recorded again as a whole."""
        holders = self._holders(piece)
        if holders is not None:
            for each in holders - {generation}:
                self._of[each].discard(piece)
            holders.clear()
        self._belongs(piece, generation)

    def of(self, generation: int) -> set[Piece]:
        """Return the live pieces of a generation."""
        return self._of.get(generation, set())

    def live_bytes(self, generation: int) -> int:
        """Return how many bytes have to be recorded again before a generation can be removed."""
        return sum([self.byte_count(piece) for piece in self.of(generation)])

    def total_bytes(self) -> int:
        """Return the size of everything that lives."""
        return self._total + self._image

    def byte_count(self, piece: Piece) -> int:
        """Return the size of a piece."""
        if piece == DEFINITIONS:
            return self._image
        path, number = piece
        return max(0, min(PIECE_BYTES, self.sizes.get(path, 0) - number * PIECE_BYTES))

    def forget(self, generation: int) -> None:
        """Note that a generation was removed; it has no live pieces."""
        self._of.pop(generation, None)

    def alive(self) -> Change:
        """Return all live files as a change."""
        return Change(ALIVE, 0, "", msgspec.msgpack.encode(self.sizes))

    def _holders(self, piece: Piece) -> set[int] | None:
        if piece == DEFINITIONS:
            return self._definitions
        return self._files.get(piece[0], {}).get(piece[1])

    def _belongs(self, piece: Piece, generation: int) -> None:
        if piece == DEFINITIONS:
            self._definitions.add(generation)
        else:
            self._files.setdefault(piece[0], {}).setdefault(piece[1], set()).add(generation)
        self._of.setdefault(generation, set()).add(piece)

    def _written(self, path: str, offset: int, size: int, generation: int) -> None:
        self._resize(path, max(self.sizes.get(path, 0), offset + size))
        for number in range(offset // PIECE_BYTES, (offset + size - 1) // PIECE_BYTES + 1):
            self._belongs((path, number), generation)

    def _resize(self, path: str, size: int) -> None:
        self._total += size - self.sizes.get(path, 0)
        self.sizes[path] = size

    def _gone(self, path: str) -> None:
        self._total -= self.sizes.pop(path, 0)
        for number, holders in self._files.pop(path, {}).items():
            for each in holders:
                self._of[each].discard((path, number))

    def _truncated(self, path: str, size: int) -> None:
        self._resize(path, size)
        pieces = self._files.get(path, {})
        # A piece that is cut in its middle stays: it has bytes before the end.
        for number in [each for each in pieces if each * PIECE_BYTES >= size]:
            for holder in pieces.pop(number):
                self._of[holder].discard((path, number))

    def _renamed(self, old: str, new: str, generation: int) -> None:
        self._gone(new)
        if old not in self.sizes:
            return
        self.sizes[new] = self.sizes.pop(old)
        pieces = self._files.pop(old, {})
        self._files[new] = pieces
        for number, holders in pieces.items():
            for each in holders:
                self._of[each].discard((old, number))
                self._of[each].add((new, number))
            # Without this generation the bytes would have the old name.
            self._belongs((new, number), generation)
