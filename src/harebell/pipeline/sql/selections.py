"""Tables of queues and lakes in a query: find them in its tokens, and put views in their place.

    FROM queue('orders')          the messages that are there now
    FROM STREAM queue('orders')   all messages, as they come; also STREAM(queue('orders'))
    FROM lake('customers')        a table on disk

Only tokens are parsed here, so that strings and comments are never taken for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harebell.base.names import nearest
from harebell.pipeline.spec.statements import StatementError

TABLES = ("queue", "stream", "lake")
CONTINUOUS = "STREAM"
_BEFORE_TABLES = ("FROM", "JOIN", ",", CONTINUOUS)


@dataclass(frozen=True)
class TableReference:
    """A table function in a query.

    Args:
        kind: one of `TABLES`.
        name: of the queue or stream, or path of the table.
        view: the view that replaces it.
        continuous: whether it is all messages as they come, and not those that are there.
    """

    kind: str
    name: str
    view: str
    continuous: bool = False


@dataclass(frozen=True)
class SelectStatement:
    """A query.

    Args:
        sql: the SQL, with views in place of table functions.
        tables: the table functions behind the views.
        written: the statement as it was written, for errors.
        explains: with EXPLAIN the query alone, whose mistakes Spark tells; "" for any other.
    """

    sql: str
    tables: tuple[TableReference, ...]
    written: str = field(default="", compare=False, repr=False)
    explains: str = ""


def place_in(sql: str, offset: int) -> str:
    """Return the place of a character in a statement: `line 2, column 7`."""
    before = sql[:offset]
    return f"line {before.count(chr(10)) + 1}, column {offset - before.rfind(chr(10))}"


def tokens_of(sql: str) -> list[Any]:
    """Return the tokens of a statement, without semicolons at its end.

    Raises:
        StatementError: a string or comment has no end.
    """
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


def selection(sql: str, tokens: list[Any], first: int = 0) -> SelectStatement:
    """Parse the query that begins at a token.

    Raises:
        StatementError: a table is invalid.
    """
    tables: dict[tuple[str, str, bool], TableReference] = {}
    parts: list[str] = []
    index = first
    done, end = tokens[first].start, tokens[-1].end + 1
    while index < len(tokens):
        reading = _table_at(sql, tokens, index)
        if reading is None:
            index += 1
            continue
        kind, name, continuous, after = reading
        number = len(tables) + 1
        reference = TableReference(kind, name, f"{kind}_{number}", continuous)
        # A queue that is named twice is read once: both see the same messages.
        table = tables.setdefault((kind, name, continuous), reference)
        parts += [sql[done : tokens[index].start], table.view]
        done = tokens[after - 1].end + 1
        index = after
    return SelectStatement("".join([*parts, sql[done:end]]), tuple(tables.values()), sql)


def _table_at(sql: str, tokens: list[Any], index: int) -> tuple[str, str, bool, int] | None:
    """Parse a table at a token: return its kind, its name, whether it is continuous, its end."""
    call, continuous = table_call(tokens, index), False
    if call is None and tokens[index].text.upper() == CONTINUOUS and index + 1 < len(tokens):
        continuous = True
        bracket = tokens[index + 1].text == "("
        call = table_call(tokens, index + 1 + bracket)
        if call is not None and bracket:
            kind, arguments, after = call
            closed = after < len(tokens) and tokens[after].text == ")"
            call = (kind, arguments, after + 1) if closed else None
    if call is None:
        _check_misspelt(sql, tokens, index)
        return None
    kind, arguments, after = call
    place = place_in(sql, tokens[index].start)
    if kind not in TABLES:
        raise StatementError(
            f"{place}: an {kind} keeps no messages that could be read: say FROM queue('name') with "
            "a queue that is bound to it"
        )
    if len(arguments) != 1:
        raise StatementError(f"{place}: {kind} takes one name in quotes: {kind}('orders')")
    if continuous and kind == "lake":
        raise StatementError(
            f"{place}: a lake cannot be followed: say FROM STREAM with queue('name') or "
            "stream('name')"
        )
    return kind, arguments[0], continuous, after


def _check_misspelt(sql: str, tokens: list[Any], index: int) -> None:
    """Refuse `FROM queu('orders')`, with the nearest right name."""
    if (
        not index
        or tokens[index - 1].text.upper() not in _BEFORE_TABLES
        or index + 3 >= len(tokens)
    ):
        return
    signs = (tokens[index + 1].text, tokens[index + 2].token_type.name, tokens[index + 3].text)
    if signs != ("(", "STRING", ")") or tokens[index].token_type.name != "VAR":
        return
    if tokens[index - 1].text == "," and not _in_from(tokens, index):
        return
    name = tokens[index].text
    near = nearest(name.lower(), TABLES)
    if near is not None:
        place = place_in(sql, tokens[index].start)
        raise StatementError(f"{place}: there is no table {name}(): did you mean {near}?")


def _in_from(tokens: list[Any], index: int) -> bool:
    """True if the clause of a token is a FROM."""
    for token in reversed(tokens[:index]):
        word = token.text.upper()
        if word in ("FROM", "SELECT", "WHERE", "BY", "HAVING", "ON"):
            return bool(word == "FROM")
    return False


def table_call(tokens: list[Any], index: int) -> tuple[str, list[str], int] | None:
    """Parse a table function at a token: return its name, its arguments, and its end."""
    if index >= len(tokens):
        return None
    name = tokens[index].text.lower()
    if (
        name not in (*TABLES, "exchange")
        or index + 2 >= len(tokens)
        or tokens[index + 1].text != "("
    ):
        return None
    # `t.queue('x')` is a function of something else.
    if index and tokens[index - 1].text == ".":
        return None
    arguments: list[str] = []
    position = index + 2
    while position < len(tokens):
        word = tokens[position]
        if word.token_type.name != "STRING":
            return None
        arguments.append(word.text)
        if position + 1 >= len(tokens) or tokens[position + 1].text not in (",", ")"):
            return None
        if tokens[position + 1].text == ")":
            return name, arguments, position + 2
        position += 2
    return None
