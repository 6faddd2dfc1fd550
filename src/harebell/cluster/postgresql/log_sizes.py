"""How many bytes the generations of a log have, and how many of them are still needed.

Rows are compressed, and what lives is known before compression only. So the stored bytes of what
lives are an estimate: they are taken to be compressed as well as everything else.
"""

from __future__ import annotations


class LogSizes:
    """The sizes of generations, in bytes as stored and before compression.

    Attributes:
        stored: bytes of all generations as stored.
    """

    def __init__(self) -> None:
        self.stored = 0
        self._plain = 0
        self._of: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._of)

    def generations(self) -> list[int]:
        """Return the numbers of the generations."""
        return list(self._of)

    def begin(self, generation: int) -> None:
        """Note a generation, which may be known already."""
        self._of.setdefault(generation, (0, 0))

    def add(self, generation: int, stored: int, plain: int) -> None:
        """Note that rows were appended.

        Args:
            generation: they are in it.
            stored: their bytes.
            plain: their bytes before compression.
        """
        before = self._of[generation]
        self._of[generation] = before[0] + stored, before[1] + plain
        self.stored += stored
        self._plain += plain

    def remove(self, generation: int) -> None:
        """Forget a generation, which was dropped."""
        stored, plain = self._of.pop(generation)
        self.stored -= stored
        self._plain -= plain

    def of(self, generation: int) -> int:
        """Return the stored bytes of a generation."""
        return self._of[generation][0]

    def compressed(self, plain: int) -> int:
        """Estimate how many stored bytes some have that live.

        Args:
            plain: how many they are before compression.
        """
        return plain * self.stored // self._plain if self._plain else plain

    def dead(self, generation: int, live: int) -> float:
        """Estimate how many stored bytes of a generation are dead.

        Args:
            generation: its number.
            live: how many of its bytes before compression live.
        """
        stored, plain = self._of[generation]
        return stored * (1 - live / plain) if plain else 0.0
