"""Rows that are made when more of them is needed than what they are found and sorted by.

A page has 100 rows of a list of thousands, and a whole row of a queue takes fifty times as long as
the number of its messages. So a list has these, and whatever serves it asks for `whole` in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any


class LazyRow(Mapping[str, Any]):
    """A row.

    Args:
        quick: makes single columns, each by its dotted path; one inside another column is None
            where the row has none.
        make: makes all columns.
        of: what both are called with.
    """

    __slots__ = ("_make", "_of", "_quick")

    def __init__(
        self, quick: Mapping[str, Callable[..., Any]], make: Callable[..., Any], *of: Any
    ) -> None:
        self._quick = quick
        self._make = make
        self._of = of

    def __getitem__(self, name: str) -> Any:
        """Return a column; all columns are made for one that is not quick."""
        quick = self._quick.get(name)
        return self.whole()[name] if quick is None else quick(*self._of)

    def at(self, column: str) -> Any:
        """Return the value at a dotted path; None if there is none."""
        quick = self._quick.get(column)
        if quick is not None:
            return quick(*self._of)
        name, _, rest = column.partition(".")
        value = self.get(name)
        for name in rest.split(".") if rest else ():
            value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def some(self, paths: Collection[tuple[str, ...]]) -> Mapping[str, Any]:
        """Return at least these columns; all columns are made for one that is not quick."""
        quick = self._quick
        names = {path[0] for path in paths if ".".join(path) not in quick}
        if not all(name in quick for name in names):
            return self.whole()
        made = {name: quick[name](*self._of) for name in names}
        for path in paths:
            if path[0] in names:
                continue
            value = quick[".".join(path)](*self._of)
            if value is not None or len(path) == 1:
                place = made
                for name in path[:-1]:
                    place = place.setdefault(name, {})
                place[path[-1]] = value
        return made

    def __iter__(self) -> Iterator[str]:
        """Return the names of all columns."""
        return iter(self.whole())

    def __len__(self) -> int:
        """Return how many columns there are."""
        return len(self.whole())

    def whole(self) -> dict[str, Any]:
        """Return all columns."""
        made: dict[str, Any] = self._make(*self._of)
        return made
