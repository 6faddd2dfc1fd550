"""Parse the SQL of a pipeline without Spark.

This finds out whether it is a query, which views it reads, and whether it keeps state between
micro-batches.

Spark's own parser is in Java, and `harebell pipeline check` must be fast on machines without it.
sqlglot parses Spark's dialect in Python. `resolving.py` finds out whether columns exist.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from harebell.base.names import did_you_mean
from harebell.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

_DIALECT = "databricks"
"""Spark's dialect with additions from Databricks, such as `data:field` of a VARIANT."""
_PIPE = "|>"
_PROBE = "SELECT * FROM t WHERE "
_INTERNAL = re.compile(r" (?:but got|for) <.*", re.S)
"""Names of sqlglot's own classes in its error texts."""
_MISSING = "pipelines need sqlglot and Spark: pip install 'harebell[spark]'"


class StatementError(PipelineError):
    """Invalid SQL.

    Args:
        text: the error.
        line: its line in the SQL, counted from 1.
    """

    def __init__(self, text: str, line: int = 1) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class ParsedQuery:
    """A query.

    Args:
        tables: the views and tables that it reads, each once, in their order.
        stateful: why Spark keeps state for it on a stream, "" if it does not.
        limited: whether it ends after a number of rows.
        tree: its syntax; None if sqlglot rewrites it, and its names are not those of the text.
        called: the functions that it calls, each with its line.
    """

    tables: tuple[str, ...]
    stateful: str
    limited: bool = False
    tree: exp.Expr | None = field(default=None, compare=False, repr=False)
    called: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class ParsedExpression:
    """An expression over the columns of a view.

    Args:
        tree: its syntax.
        called: the functions that it calls, each with its line.
    """

    tree: exp.Expr = field(repr=False)
    called: tuple[tuple[str, int], ...]


def query(sql: str) -> ParsedQuery:
    """Parse a query.

    Raises:
        StatementError: it is not one query.
    """
    from sqlglot import exp

    tree, tokens = _parsed(sql)
    if not isinstance(tree, exp.Query | exp.Values):
        raise StatementError(
            f"this is no query but {_kind(tree)}: a step is one SELECT, and sinks write"
        )
    return ParsedQuery(
        tuple(_tables(tree)),
        _stateful(tree),
        bool(tree.args.get("limit")),
        # sqlglot turns |> into subqueries, whose names are its own.
        None if any(each.text == _PIPE for each in tokens) else tree,
        tuple(_called(tree, tokens)),
    )


AGGREGATE = "an aggregate"
"""The most frequent reason for state."""
LIMITED = (
    "LIMIT counts the rows of all micro-batches, and the messages after them would be acknowledged "
    "and written nowhere: leave it out"
)
"""Why a query on a stream has no limit."""


def condition(sql: str, what: str = "a condition") -> ParsedExpression:
    """Parse one SQL expression.

    Args:
        sql: the expression.
        what: its purpose, for the error.

    Raises:
        StatementError: it is not an expression.
    """
    from sqlglot import exp

    # The wrapper adds no line break, so line numbers stay those of the expression.
    tree, tokens = _parsed(_PROBE + sql)
    clauses = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or clauses - {"expressions", "from_", "from", "where"}:
        raise StatementError(f"{sql!r} is more than {what}")
    return ParsedExpression(tree.args["where"].this, tuple(_called(tree, tokens)))


def columns(ddl: str) -> tuple[str, ...]:
    """Return the names of the columns of a schema, written as DDL.

    Raises:
        StatementError: it is not a schema.
    """
    from sqlglot import exp

    wrong = "this is no schema; write columns and types as in `id BIGINT, total DOUBLE`"
    try:
        tree, _ = _parsed(f"CREATE TABLE t ({ddl})")
    except StatementError as error:
        raise StatementError(_mistyped(ddl) or wrong, error.line) from None
    names = [each.name for each in tree.find_all(exp.ColumnDef) if not _nested(each)]
    if not names:
        raise StatementError(wrong)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise StatementError(f"the column {sorted(twice)[0]} stands twice in the schema")
    return tuple(names)


_TYPES = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "STRING"),
    *("BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "ARRAY", "MAP", "STRUCT", "VARIANT"),
    *("INTEGER", "LONG", "SHORT", "BYTE", "REAL", "DEC", "NUMERIC", "VARCHAR", "CHAR", "INTERVAL"),
)
_COLUMN = re.compile(r"(?:^|,)\s*(\w+|`[^`]+`)\s+(\w+)")


def _mistyped(ddl: str) -> str | None:
    """Return the error text for the first unknown type."""
    for _, kind in _COLUMN.findall(ddl):
        if kind.upper() not in _TYPES:
            return f"there is no type {kind.upper()}: {did_you_mean(kind.upper(), _TYPES)}"
    return None


def _nested(column: exp.Expr) -> bool:
    from sqlglot import exp

    return column.find_ancestor(exp.DataType) is not None


def _parsed(sql: str) -> tuple[exp.Expr, list[Token]]:
    """Return the only statement of a text, and the tokens of the text."""
    try:
        from sqlglot.dialects.dialect import Dialect
        from sqlglot.errors import ParseError, TokenError
    except ImportError:
        raise PipelineError(_MISSING) from None
    # sqlglot warns about statements that it does not parse; they are refused here.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    try:
        dialect = Dialect.get_or_raise(_DIALECT)
        tokens = _windows_called(dialect.tokenize(sql))
        trees = [each for each in dialect.parser().parse(tokens, sql) if each is not None]
    except ParseError as error:
        first = error.errors[0]
        near = str(first.get("highlight") or "").strip()
        what = _INTERNAL.sub("", str(first.get("description") or "it cannot be read")).rstrip(". ")
        where = f" near {near!r}" if near else ""
        raise StatementError(
            f"this is no SQL{where}: {what}", int(first.get("line") or 1)
        ) from None
    except TokenError as error:
        raise StatementError(f"this is no SQL: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise StatementError("this is nested too deeply") from None
    if len(trees) != 1:
        many = "nothing" if not trees else f"{len(trees)} statements"
        raise StatementError(f"this is {many}; write one")
    return trees[0], tokens


def _called(tree: exp.Expr, tokens: list[Token]) -> Iterator[tuple[str, int]]:
    """Yield the names of functions, as they are written, with their lines.

    sqlglot's tree has other names for functions that it knows.
    """
    from sqlglot import TokenType, exp

    aliases = {each.name.lower() for each in tree.find_all(exp.TableAlias)}
    before = None
    for token, following in pairwise(tokens):
        # The name of a function is the word before a bracket; `a.b(` is a method or a path.
        called = following.token_type is TokenType.L_PAREN and token.token_type is TokenType.VAR
        qualified = before is not None and before.token_type is TokenType.DOT
        if called and not qualified and token.text.lower() not in aliases:
            yield token.text, token.line
        before = token


def _windows_called(tokens: list[Token]) -> list[Token]:
    """Distinguish the function `window(...)` from the clause `WINDOW name AS (...)`.

    sqlglot takes the function for the clause if it is first in GROUP BY.
    """
    from sqlglot import TokenType

    for token, following in pairwise(tokens):
        if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            token.token_type = TokenType.VAR
    return tokens


def _kind(tree: exp.Expr) -> str:
    word = str(tree.this) if tree.key == "command" else tree.key
    return word.split()[0].upper()


def _tables(tree: exp.Expr) -> list[str]:
    from sqlglot import exp

    own = {each.alias_or_name.lower() for each in tree.find_all(exp.CTE)}
    tables: list[str] = []
    # sqlglot finds nodes level by level; sort them in the order of the text.
    for table in tree.find_all(exp.Table, bfs=False):
        if table.args.get("db") or not isinstance(table.this, exp.Identifier):
            continue
        if table.name.lower() not in own and table.name not in tables:
            tables.append(table.name)
    return tables


def _stateful(tree: exp.Expr) -> str:
    from sqlglot import exp

    for each in tree.find_all(exp.Group, exp.AggFunc, exp.Distinct, exp.Join):
        if isinstance(each, exp.Join):
            if _stands_alone(each):
                return "a join"
        elif isinstance(each, exp.Distinct):
            return "DISTINCT"
        elif isinstance(each, exp.Group) or _aggregates(each):
            return AGGREGATE
    return ""


def _stands_alone(join: exp.Join) -> bool:
    """True if a join is one of views, not of a row with its own array."""
    from sqlglot import exp

    return isinstance(join.this, exp.Table | exp.Subquery)


_OF_ROWS = ("first", "last", "any_value")


def _aggregates(function: exp.Expr) -> bool:
    """True if a function aggregates rows: not over a window, nor over an array."""
    from sqlglot import exp

    return not isinstance(function.parent, exp.Window) and function.key not in _OF_ROWS
