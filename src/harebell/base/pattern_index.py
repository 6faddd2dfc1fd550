"""An index of patterns: find those that may match a name without a search for each.

Most patterns match only names that have a certain text: `^orders-.*-7$` needs `orders-` at the
start and `-7` at the end. Each pattern is filed under one such text, that with the fewest others.
A name is looked up by its own texts of the lengths that are filed. What is found is searched for
as before, and a pattern that needs no text is searched for in every name.

    clauses of ^orders-.*(eu|us)-7$    (START orders-) (eu or us) (-7 END)
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from re import _constants  # type: ignore[attr-defined]
from typing import Any, Generic, NamedTuple, TypeVar

from harebell.base.limits import NAME_BYTES, PATTERN_LITERAL_CHARACTERS, PATTERN_LITERALS
from harebell.base.patterns import tree_of

Clause = tuple[str, ...]
"""Texts of which a name needs one."""
Rank = tuple[int, str]
"""The place of a pattern among all: it is unique, and the lowest goes first."""
T = TypeVar("T")

_START, _END = "\0", "\n"
"""What stands for the start and the end of a name: `$` is found before a line feed, too."""
_EDGE_CHARACTERS = NAME_BYTES + len(_START + _END)
_LOOKUPS_PER_UNIT = 16
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_STARTS = (_constants.AT_BEGINNING, _constants.AT_BEGINNING_STRING)
_ENDS = (_constants.AT_END, _constants.AT_END_STRING)
_LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)
_ranked = itemgetter(0)


def clauses_of(pattern: str) -> tuple[Clause, ...]:
    """Return what a name must have for a pattern to be found in it: a text of each clause.

    Raises:
        PatternRefused: it is invalid, or costs too much.
    """
    tree = tree_of(pattern)
    reader = _Reader()
    reader.read(tree, tree.state.flags)
    return tuple(sorted(reader.ended(), key=_selects, reverse=True)[:PATTERN_LITERALS])


def fits(clauses: Iterable[Clause], name: str) -> bool:
    """True if a name has a text of each clause."""
    text = f"{_START}{name}{_END}"
    return all(any(each in text for each in clause) for clause in clauses)


def _selects(clause: Clause) -> int:
    return min(map(len, clause))


class _Reader:
    """Collects the clauses of a part of a pattern."""

    def __init__(self) -> None:
        self._clauses: list[Clause] = []
        # Characters that follow each other in every name that matches.
        self._run = ""

    def ended(self) -> list[Clause]:
        """Return the clauses of what was read."""
        run, self._run = self._run, ""
        if run.startswith(_START):
            parts = [run[:_EDGE_CHARACTERS]]
        elif run.endswith(_END):
            parts = [run[-_EDGE_CHARACTERS:]]
        else:
            size = PATTERN_LITERAL_CHARACTERS
            parts = [run[at : at + size] for at in range(0, len(run), size)]
        # Every name has a start and an end.
        self._clauses += [(part,) for part in parts if part not in (_START, _END)]
        return self._clauses

    def read(self, tree: Any, flags: int) -> None:
        """Read a part; what takes no character, such as a look-ahead, does not end a run."""
        for kind, value in tree:
            if kind is _constants.LITERAL and not flags & re.IGNORECASE:
                if chr(value) in (_START, _END):
                    self.ended()
                else:
                    self._run += chr(value)
            elif kind is _constants.AT and value in _STARTS and not flags & re.MULTILINE:
                self.ended()
                self._run = _START
            elif kind is _constants.AT and value in _ENDS:
                self._run += _END
                self.ended()
            elif kind is _constants.SUBPATTERN:
                self.read(value[3], flags | value[1])
            elif kind is _constants.ATOMIC_GROUP:
                self.read(value, flags)
            elif kind not in (*_LOOKS, _constants.AT):
                self.ended()
                if kind is _constants.BRANCH:
                    self._read_choices(value[1], flags)
                elif kind in _REPEATS and value[0]:
                    self.read(value[2], flags)
                    self.ended()

    def _read_choices(self, choices: list[Any], flags: int) -> None:
        texts: list[str] = []
        for choice in choices:
            reader = _Reader()
            reader.read(choice, flags)
            clause = max(reader.ended(), key=_selects, default=())
            texts += clause
            if not clause or len(texts) > PATTERN_LITERALS:
                return
        self._clauses.append(tuple(texts))


class _Filed(NamedTuple, Generic[T]):
    """A pattern in the index: its rank, and what it stands for."""

    rank: Rank
    item: T


class PatternIndex(Generic[T]):
    """Items by the patterns of names that they are for.

    Attributes:
        units: work units of all searches until now.
    """

    def __init__(self) -> None:
        self.units = 0
        # By text, sorted by rank; those that need no text by "".
        self._filed: dict[str, list[_Filed[T]]] = {}
        self._texts: dict[Rank, Clause] = {}
        # How many texts are filed of each length: at the start, at the end and elsewhere.
        self._heads: Counter[int] = Counter()
        self._tails: Counter[int] = Counter()
        self._inner: Counter[int] = Counter()

    def add(self, rank: Rank, clauses: tuple[Clause, ...], item: T) -> None:
        """Add an item.

        Args:
            rank: its place among all.
            clauses: of its pattern.
            item: what is found.
        """
        filed = self._filed
        texts = min(
            clauses or (("",),),
            key=lambda clause: (
                sum(len(filed.get(each, ())) for each in clause),
                -_selects(clause),
            ),
        )
        self._texts[rank] = texts = tuple(dict.fromkeys(texts))
        for text in texts:
            if text not in filed:
                filed[text] = []
                self._lengths(text)[len(text)] += 1
            insort(filed[text], _Filed(rank, item), key=_ranked)

    def remove(self, rank: Rank) -> None:
        """Remove the item with a rank, if there is one."""
        for text in self._texts.pop(rank, ()):
            under = self._filed[text]
            del under[bisect_left(under, rank, key=_ranked)]
            if not under:
                del self._filed[text]
                lengths = self._lengths(text)
                lengths[len(text)] -= 1
                if not lengths[len(text)]:
                    del lengths[len(text)]

    def _lengths(self, text: str) -> Counter[int]:
        if text.startswith(_START):
            return self._heads
        return self._tails if text.endswith(_END) else self._inner

    def found(self, name: str, *more: tuple[Rank, T]) -> Iterator[tuple[Rank, T]]:
        """Yield the items whose patterns may match a name, the lowest rank first.

        Args:
            name: what is looked up.
            more: further items.
        """
        text = f"{_START}{name}{_END}"
        texts = {text[:length] for length in self._heads}
        inner = [length for length in self._inner if length]
        if _END in name:
            # A `$` may be found before each of them.
            inner += self._tails
        else:
            texts.update(text[-length:] for length in self._tails)
        for length in inner:
            texts.update(text[at : at + length] for at in range(len(text) - length + 1))
        self.units += len(texts) // _LOOKUPS_PER_UNIT
        filed = self._filed
        under = [filed[each] for each in ("", *texts) if each in filed]
        last: T | None = None
        for rank, item in merge(*under, more, key=_ranked):
            if item is not last:
                self.units += 1
                yield rank, item
                last = item
