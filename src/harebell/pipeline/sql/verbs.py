"""The statements of `harebell sql`: queries over queues and lakes, and three verbs that settle.

    SELECT ... FROM queue('orders') JOIN lake('customers') ...
    DELETE FROM queue('q') WHERE condition
    MOVE   FROM queue('q') TO queue('other') [SET value = expression] WHERE condition
    MOVE   FROM queue('q') TO exchange('e', 'key') [SET routing_key = expression] WHERE condition
    RETRY  FROM queue('dead') [TO ...] [SET ...] WHERE condition

Everything but the tables and the verbs is Spark's SQL and is kept unchanged. Only tokens are
parsed here, so that strings and comments are never taken for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harebell.base.names import did_you_mean
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import Route
from harebell.pipeline.spec.statements import StatementError

VERBS = ("DELETE", "MOVE", "RETRY")
TABLES = ("queue", "stream", "lake")
SET_COLUMNS = ("value", "routing_key")
_CLAUSES = ("FROM", "TO", "SET", "WHERE")


@dataclass(frozen=True)
class TableReference:
    """A table function in a query.

    Args:
        kind: one of `TABLES`.
        name: of the queue or stream, or path of the table.
        view: the view that replaces it.
    """

    kind: str
    name: str
    view: str


@dataclass(frozen=True)
class SelectStatement:
    """A query.

    Args:
        sql: the SQL, with views in place of table functions.
        tables: the table functions behind the views.
    """

    sql: str
    tables: tuple[TableReference, ...]


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


def understand(sql: str) -> SelectStatement | SettleStatement:
    """Parse a statement.

    Raises:
        StatementError: it is invalid.
    """
    words = _words(sql)
    if not words:
        raise StatementError("there is no statement; begin with SELECT, DELETE, MOVE or RETRY")
    first = words[0].text.upper()
    if first in VERBS:
        return _settlement(first, sql, words)
    found = _selection(sql, words)
    try:
        statements.query(found.sql)
    except StatementError as error:
        if words[0].token_type.name == "VAR":
            known = ("SELECT", "WITH", *VERBS)
            raise StatementError(
                f"there is no verb {first}: {did_you_mean(first, known)}"
            ) from None
        raise StatementError(
            str(error).replace(": a step is one SELECT, and sinks write", "")
        ) from None
    return found


def _words(sql: str) -> list[Any]:
    try:
        import sqlglot
        from sqlglot.errors import TokenError
    except ImportError:
        raise StatementError("this needs sqlglot: pip install 'harebell[spark]'") from None
    try:
        words: list[Any] = list(sqlglot.tokenize(sql, read="spark"))
    except TokenError as error:
        raise StatementError(f"this is no SQL: {str(error).splitlines()[0]}") from None
    while words and words[-1].text == ";":
        words.pop()
    return words


# --- queries ------------------------------------------------------------------------------------


def _selection(sql: str, words: list[Any]) -> SelectStatement:
    tables: dict[tuple[str, str], TableReference] = {}
    parts: list[str] = []
    done, at = 0, 0
    end = words[-1].end + 1
    while at < len(words):
        call = _call(words, at)
        if call is None:
            at += 1
            continue
        kind, arguments, after = call
        if kind not in TABLES:
            raise StatementError(
                f"an {kind} keeps no messages that could be read: say FROM queue('name') with a "
                "queue that is bound to it"
            )
        if len(arguments) != 1:
            raise StatementError(f"{kind} takes one name in quotes: {kind}('orders')")
        key = (kind, arguments[0])
        table = tables.setdefault(key, TableReference(*key, f"{kind}_{len(tables) + 1}"))
        parts += [sql[done : words[at].start], table.view]
        done = words[after - 1].end + 1
        at = after
    return SelectStatement("".join([*parts, sql[done:end]]), tuple(tables.values()))


def _call(words: list[Any], at: int) -> tuple[str, list[str], int] | None:
    """Parse a table function at a token: return its name, its arguments, and its end."""
    name = words[at].text.lower()
    if name not in (*TABLES, "exchange") or at + 2 >= len(words) or words[at + 1].text != "(":
        return None
    if at and words[at - 1].text == ".":
        return None
    arguments: list[str] = []
    position = at + 2
    while position < len(words):
        word = words[position]
        if word.token_type.name != "STRING":
            return None
        arguments.append(word.text)
        if position + 1 >= len(words) or words[position + 1].text not in (",", ")"):
            return None
        if words[position + 1].text == ")":
            return name, arguments, position + 2
        position += 2
    return None


# --- the verbs ----------------------------------------------------------------------------------


def _settlement(verb: str, sql: str, words: list[Any]) -> SettleStatement:
    clauses = _clauses(verb, sql, words)
    at = clauses.get("FROM", (0, 0))[0]
    call = _call(words, at) if at else None
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
    found: list[tuple[str, int]] = []
    depth = 0
    for at, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word.text, 0)
        name = word.text.upper()
        if at and depth == 0 and name in _CLAUSES and word.token_type.name != "STRING":
            position = _CLAUSES.index(name)
            if name in (each for each, _ in found):
                raise StatementError(f"{name} stands twice in this {verb}")
            if found and _CLAUSES.index(found[-1][0]) > position:
                raise StatementError(f"{name} must stand before {found[-1][0]}")
            found.append((name, at + 1))
            if name == "WHERE":
                break  # the rest is Spark's
    ends = [*(at - 1 for _, at in found[1:]), len(words)]
    return {name: (at, end) for (name, at), end in zip(found, ends, strict=True)}


def _text(sql: str, words: list[Any], span: tuple[int, int]) -> str:
    first, end = span
    return sql[words[first].start : words[end - 1].end + 1] if first < end else ""


def _target(words: list[Any], span: tuple[int, int]) -> Route:
    call = _call(words, span[0]) if span[0] < span[1] else None
    right = "TO queue('name'), TO exchange('name') or TO exchange('name', 'key')"
    if call is None or call[2] != span[1]:
        raise StatementError(f"say where to: {right}")
    kind, arguments, _ = call
    if kind == "queue" and len(arguments) == 1:
        return Route("", arguments[0])
    if kind == "exchange" and len(arguments) <= 2:
        return Route(arguments[0], arguments[1] if len(arguments) == 2 else None)
    raise StatementError(f"messages cannot be moved to {kind}: {right}")


def _changes(sql: str, words: list[Any], span: tuple[int, int]) -> dict[str, str]:
    """Split `SET a = x, b = y` at the commas outside of brackets."""
    changes: dict[str, str] = {}
    first, depth = span[0], 0
    for at in range(span[0], span[1] + 1):
        last = at == span[1]
        if not last:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(words[at].text, 0)
        if last or (depth == 0 and words[at].text == ","):
            name, expression = _change(sql, words, (first, at))
            if name in changes:
                raise StatementError(f"SET names {name} twice")
            changes[name] = expression
            first = at + 1
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
