"""The statements of `harebell sql`: queries over queues and lakes, and verbs that change queues.

    SELECT ... FROM queue('orders') JOIN lake('customers') ...
    INSERT INTO ..., CREATE STREAMING TABLE ...      see `inserts`
    SHOW, DESCRIBE, EXPLAIN, SET, USE                Spark's own, unchanged
    DELETE FROM queue('q') WHERE condition
    MOVE   FROM queue('q') TO queue('other') [SET value = expression] WHERE condition
    MOVE   FROM queue('q') TO exchange('e', 'key') [SET routing_key = expression] WHERE condition
    RETRY  FROM queue('dead') [TO ...] [SET ...] WHERE condition

Everything but the tables and the verbs is Spark's SQL and is kept unchanged. Only tokens are
parsed here, so that strings and comments are never taken for anything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from harebell.base.names import did_you_mean
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import Route
from harebell.pipeline.spec.statements import StatementError
from harebell.pipeline.sql.inserts import (
    CREATES,
    INSERTS,
    ContinuousStatement,
    InsertStatement,
    creation,
    insertion,
    route_named,
)
from harebell.pipeline.sql.selections import SelectStatement, selection, table_call, tokens_of

VERBS = ("DELETE", "MOVE", "RETRY")
SESSION = ("SHOW", "DESCRIBE", "DESC", "EXPLAIN", "SET", "USE")
"""First words of statements of Spark that look at the session or set it."""
_EXPLAIN = "EXPLAIN"
_EXPLAINS = re.compile(r"EXPLAIN\b(\s+(EXTENDED|CODEGEN|COST|FORMATTED)\b)?", re.I)
SET_COLUMNS = ("value", "routing_key")
_CLAUSES = ("FROM", "TO", "SET", "WHERE")


@dataclass(frozen=True)
class SettleStatement:
    """A statement with a verb.

    Args:
        verb: one of `VERBS`.
        queue: the queue of the messages.
        where: an SQL condition that selects messages.
        target: the route; None for DELETE, and for RETRY to the original queues.
        changes: SQL expressions by column.
    """

    verb: str
    queue: str
    where: str
    target: Route | None = None
    changes: dict[str, str] = field(default_factory=dict)


Statement = SelectStatement | InsertStatement | ContinuousStatement | SettleStatement


def understand(sql: str) -> Statement:
    """Parse a statement.

    Raises:
        StatementError: it is invalid.
    """
    words = tokens_of(sql)
    if not words:
        raise StatementError(
            "there is no statement; begin with SELECT, INSERT, DELETE, MOVE or RETRY"
        )
    first = words[0].text.upper()
    if first in VERBS:
        return _settlement(first, sql, words)
    if first == INSERTS:
        return insertion(sql, words)
    if first == CREATES:
        return creation(sql, words)
    if first == _EXPLAIN:
        return _explanation(sql, words)
    statement = selection(sql, words)
    if first in SESSION:
        return statement
    try:
        statements.query(statement.sql)
    except StatementError as error:
        if words[0].token_type.name == "VAR":
            known = ("SELECT", "WITH", INSERTS, CREATES, *VERBS, *SESSION)
            raise StatementError(
                f"there is no verb {first}: {did_you_mean(first, known)}"
            ) from None
        raise StatementError(
            str(error).replace(": a step is one SELECT, and sinks write", "")
        ) from None
    following = [each for each in statement.tables if each.continuous]
    if following:
        raise StatementError(
            f"a SELECT ends, and {following[0].kind}({following[0].name!r}) with STREAM does not: "
            "begin with INSERT INTO exchange('name') or CREATE STREAMING TABLE name AS"
        )
    return statement


def _explanation(sql: str, words: list[Any]) -> SelectStatement:
    """Parse EXPLAIN, of which sqlglot makes one token: what follows is a query of its own."""
    begin = words[0].start
    head = _EXPLAINS.match(sql, begin)
    words = tokens_of(" " * head.end() + sql[head.end() :]) if head is not None else []
    if head is None or not words:
        raise StatementError("say what to explain: EXPLAIN SELECT ... FROM queue('orders')")
    statement = selection(sql, words)
    try:
        statements.query(statement.sql)
    except StatementError as error:
        raise StatementError(f"EXPLAIN is for a SELECT: {error}") from None
    following = [each for each in statement.tables if each.continuous]
    if following:
        raise StatementError("EXPLAIN is for a SELECT that ends: leave out STREAM")
    return SelectStatement(
        sql[begin : words[0].start] + statement.sql, statement.tables, sql, statement.sql
    )


# --- the verbs ----------------------------------------------------------------------------------


def _settlement(verb: str, sql: str, words: list[Any]) -> SettleStatement:
    clauses = _clauses(verb, sql, words)
    first = clauses.get("FROM", (0, 0))[0]
    call = table_call(words, first) if first else None
    if call is None or call[0] != "queue" or len(call[1]) != 1:
        raise StatementError(f"say whose messages: {verb} FROM queue('orders') WHERE ...")
    if call[2] != clauses["FROM"][1]:
        raise StatementError(
            f"there is something behind queue({call[1][0]!r}) that is no clause: "
            f"{words[call[2]].text!r}"
        )
    if "WHERE" not in clauses:
        raise StatementError(
            f"{verb} needs a WHERE, so that nothing is settled by mistake: WHERE true is all"
        )
    if verb == "DELETE" and {"TO", "SET"} & set(clauses):
        raise StatementError("DELETE has neither TO nor SET: that is MOVE")
    if verb == "MOVE" and "TO" not in clauses:
        raise StatementError("say where to: MOVE FROM queue('a') TO queue('b') WHERE ...")
    where = _text(sql, words, clauses["WHERE"])
    statements.condition(where)
    target = _target(words, clauses["TO"]) if "TO" in clauses else None
    changes = _changes(sql, words, clauses["SET"]) if "SET" in clauses else {}
    return SettleStatement(verb, call[1][0], where, target, changes)


def _clauses(verb: str, sql: str, words: list[Any]) -> dict[str, tuple[int, int]]:
    """Return the first token of each clause after its name, and the end of its tokens."""
    places: list[tuple[str, int]] = []
    depth = 0
    for index, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word.text, 0)
        name = word.text.upper()
        if index and depth == 0 and name in _CLAUSES and word.token_type.name != "STRING":
            position = _CLAUSES.index(name)
            if name in (each for each, _ in places):
                raise StatementError(f"{name} stands twice in this {verb}")
            if places and _CLAUSES.index(places[-1][0]) > position:
                raise StatementError(f"{name} must stand before {places[-1][0]}")
            places.append((name, index + 1))
            if name == "WHERE":
                # A condition of Spark's SQL, in which these words may be anything.
                break
    ends = [*(first - 1 for _, first in places[1:]), len(words)]
    return {name: (first, end) for (name, first), end in zip(places, ends, strict=True)}


def _text(sql: str, words: list[Any], span: tuple[int, int]) -> str:
    first, end = span
    return sql[words[first].start : words[end - 1].end + 1] if first < end else ""


def _target(words: list[Any], span: tuple[int, int]) -> Route:
    call = table_call(words, span[0]) if span[0] < span[1] else None
    right = "TO queue('name'), TO exchange('name') or TO exchange('name', 'key')"
    if call is None or call[2] != span[1]:
        raise StatementError(f"say where to: {right}")
    route = route_named(call[0], call[1])
    if route is None:
        raise StatementError(f"messages cannot be moved to {call[0]}: {right}")
    return route


def _changes(sql: str, words: list[Any], span: tuple[int, int]) -> dict[str, str]:
    """Split `SET a = x, b = y` at the commas outside of brackets."""
    changes: dict[str, str] = {}
    first, depth = span[0], 0
    for index in range(span[0], span[1] + 1):
        last = index == span[1]
        if not last:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(words[index].text, 0)
        if last or (depth == 0 and words[index].text == ","):
            name, expression = _change(sql, words, (first, index))
            if name in changes:
                raise StatementError(f"SET names {name} twice")
            changes[name] = expression
            first = index + 1
    return changes


def _change(sql: str, words: list[Any], span: tuple[int, int]) -> tuple[str, str]:
    first, end = span
    if end - first < 3 or words[first + 1].text != "=":
        raise StatementError("SET is a list of column = expression")
    name = words[first].text.lower()
    if name not in SET_COLUMNS:
        raise StatementError(
            f"SET cannot change {name}, only {' and '.join(SET_COLUMNS)} of a message"
        )
    expression = _text(sql, words, (first + 2, end))
    statements.condition(expression, "an expression")
    return name, expression
