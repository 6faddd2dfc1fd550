"""The columns of a view and their types, as far as they are known without Spark.

A type is one of sqlglot's; None is a type that is not known. A relation is open if it may have
columns that are not known: that of a Python step, for example. Nothing is wrong about an unknown
column of an open relation, or about a field of an unknown type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    Type = exp.DataType | None

_PLAIN = "_"


@dataclass(frozen=True)
class Relation:
    """The columns of a view, table or subquery.

    Args:
        columns: names and types, in their order.
        is_open: whether there may be other columns.
        generated: whether columns have names that Spark makes of expressions: `count(1)`.
    """

    columns: tuple[tuple[str, Type], ...] = ()
    is_open: bool = False
    generated: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the known columns."""
        return [name for name, _ in self.columns]

    def may_have(self, name: str) -> bool:
        """Return whether a column of this name is known, or possible."""
        if self.is_open or name.lower() in (each.lower() for each in self.names):
            return True
        # Spark makes such names of expressions: `count(1)` is no plain word.
        return self.generated and not name.replace(_PLAIN, "").isalnum()

    def type_of(self, name: str) -> Type:
        """Return the type of a column; None if it is not known."""
        for each, kind in self.columns:
            if each.lower() == name.lower():
                return kind
        return None

    def renamed(self, names: Iterable[str]) -> Relation:
        """Return the same columns under other names; open if these are more or fewer."""
        given = tuple(names)
        if self.is_open or len(given) != len(self.columns):
            return Relation(tuple((name, None) for name in given), self.is_open)
        return Relation(tuple(zip(given, (kind for _, kind in self.columns), strict=True)))


OPEN = Relation(is_open=True)


def relation_of(ddl: str) -> Relation:
    """Return the relation of a schema, written as DDL; open if sqlglot cannot parse it."""
    from sqlglot import exp

    kind = type_named(f"STRUCT<{ddl}>")
    if kind is None or not kind.is_type(exp.DataType.Type.STRUCT):
        return OPEN
    columns = tuple(fields_of(kind))
    return Relation(columns) if len(columns) == len(kind.expressions) else OPEN


def type_named(text: str) -> Type:
    """Return the type that a text of Spark names; None if sqlglot does not know it."""
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        return exp.DataType.build(text, dialect="spark")
    except (SqlglotError, ValueError):
        return None


def fields_of(kind: exp.DataType) -> Iterator[tuple[str, Type]]:
    """Yield the fields of a struct."""
    from sqlglot import exp

    for each in kind.expressions:
        if isinstance(each, exp.ColumnDef):
            yield each.name, each.kind


def shown(kind: exp.DataType) -> str:
    """Return a type as Spark writes it."""
    return kind.sql(dialect="spark")
