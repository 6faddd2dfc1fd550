"""What names mean in a SELECT: its tables and their columns."""

from __future__ import annotations

from dataclasses import dataclass, field

from harebell.pipeline.sql.embedded.kinds import Kind, NeedsSpark
from harebell.pipeline.sql.embedded.typed import Typed


@dataclass
class Source:
    """A table in a FROM.

    Args:
        columns: its columns and their types.
        view: the queue that it is; "" for any other table.
    """

    columns: list[tuple[str, Kind]]
    view: str = ""

    def kind_of(self, name: str) -> Kind | None:
        """Return the type of a column, whose name may have other capitals; None for none."""
        for each, kind in self.columns:
            if each.lower() == name.lower():
                return kind
        return None


@dataclass
class Scope:
    """What names mean in a SELECT.

    Args:
        outer: the scope around it.
        sources: by alias in small letters.
        hidden: aliases that `*` and names leave out: the right sides of semi and anti joins.
        aliases: its own columns, by name in small letters.
        twice: names that several of its own columns have.
        own_first: whether names are looked up among its own columns first, as in ORDER BY.
        within: whether what is ordered by is more than a name.
    """

    outer: Scope | None = None
    sources: dict[str, Source] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    aliases: dict[str, Typed] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    own_first: bool = False
    within: bool = False

    def name(self, columns: list[tuple[str, Typed]]) -> None:
        """Note its own columns."""
        for name, made in columns:
            if name.lower() in self.aliases:
                self.twice.add(name.lower())
            self.aliases[name.lower()] = made

    def place(self, path: list[str]) -> tuple[str, Source, list[str]] | None:
        """Return the table of a path of names, and the names behind it.

        Raises:
            NeedsSpark: several tables have such a column.
        """
        first = path[0].lower()
        source = self.sources.get(first)
        if len(path) > 1 and source is not None and source.kind_of(path[1]) is not None:
            return first, source, path[1:]
        owners = [
            (alias, each)
            for alias, each in self.sources.items()
            if alias not in self.hidden and each.kind_of(path[0]) is not None
        ]
        if len(owners) > 1:
            raise NeedsSpark(f"the column {path[0]}, which several tables have")
        return (*owners[0], path) if owners else None
