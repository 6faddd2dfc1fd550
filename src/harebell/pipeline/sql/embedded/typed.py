"""Expressions of DuckDB with their types, and what is read of the nodes that they come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harebell.pipeline.sql.embedded.kinds import Kind, NeedsSpark

if TYPE_CHECKING:
    from sqlglot import exp

UNKNOWN = "\0"
"""In a label: Spark has another, which is not known here."""
_FLAGS = {"big_int", "safe", "coalesce", "ignore_nulls", "only_json_types", "requires_json"}
"""Arguments of sqlglot that say nothing about what was written."""


@dataclass(frozen=True)
class Typed:
    """An expression of DuckDB.

    Args:
        sql: its text.
        kind: its type.
        label: the name that Spark gives to a column of it.
    """

    sql: str
    kind: Kind
    label: str


def quoted(text: str) -> str:
    """Return a text as a literal."""
    if "\0" in text:
        raise NeedsSpark("a text with the character 0")
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'


def parts(node: exp.Expr, *names: str, flags: Iterable[str] = ()) -> list[Any]:
    """Return arguments of a node, which has no others.

    Raises:
        NeedsSpark: it has others.
    """
    known = {*names, *flags, *_FLAGS}
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in known:
            raise NeedsSpark(f"{called(node)} with {name.strip('_').replace('_', ' ')}")
    return [node.args.get(name) for name in names]


def called(node: exp.Expr) -> str:
    """Return what a node is, in an error."""
    from sqlglot import exp

    if isinstance(node, exp.Func):
        text = node.sql("databricks")
        name = text.split("(", 1)[0].strip().lower()
        return f"{name}()" if "(" in text and name.isidentifier() else text[:40]
    return node.key.upper()


def column_name(node: exp.Expr) -> str:
    """Return the name of a column, or of the field of one; "" for anything else."""
    last = node.args["expression"] if node.key == "dot" else node
    return str(last.name) if node.key in ("column", "dot") else ""
