"""Statements that write: INSERT publishes, CREATE STREAMING TABLE stores.

    INSERT INTO exchange('e') SELECT ...            each row with its column routing_key
    INSERT INTO exchange('e', 'key') SELECT ...     one routing key for all
    INSERT INTO queue('q') SELECT ...               through the default exchange
    CREATE [OR REFRESH] STREAMING TABLE name AS SELECT ... FROM STREAM queue('q')

With FROM STREAM the statement is continuous: it is a pipeline, with a checkpoint, that runs until
it is stopped. Without it the messages that are there are read once, and none is taken.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harebell.pipeline.sinks.exchange import EXPRESSION
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import Description, Route, Sink, Source, Step, Trigger
from harebell.pipeline.spec.statements import StatementError
from harebell.pipeline.spec.values import named, quoted
from harebell.pipeline.sql.selections import (
    SelectStatement,
    TableReference,
    place_in,
    selection,
    table_call,
)

INSERTS, CREATES = "INSERT", "CREATE"
_TARGETS = "INSERT INTO exchange('name'), exchange('name', 'key') or queue('name')"
_CREATION = "CREATE STREAMING TABLE name AS SELECT ... FROM STREAM queue('orders')"
_NAME = re.compile(r"\w[\w.-]{0,79}")
_HOME = "_pipelines"
_ROWS = "rows"


@dataclass(frozen=True)
class InsertStatement:
    """Publish the rows of a query, once.

    Args:
        target: where.
        query: the rows.
    """

    target: Route
    query: SelectStatement


@dataclass(frozen=True)
class ContinuousStatement:
    """Write the rows of a query for as long as it runs.

    Args:
        query: the rows.
        target: where they are published; None for a table.
        table: the table that they are stored in; "" for a target.
        refresh: whether the table may exist.
    """

    query: SelectStatement
    target: Route | None = None
    table: str = ""
    refresh: bool = False

    @property
    def name(self) -> str:
        """The name of the pipeline."""
        if self.target is None:
            return self.table
        sources = "-".join(table.name for table in self.query.tables)
        target = self.target.exchange or self.target.routing_key or ""
        return named(f"insert-{target}-from-{sources}")

    def described(self, url: str, lake: Path) -> Description:
        """Return it as a pipeline.

        Args:
            url: of the broker.
            lake: the directory of tables, and of checkpoints.

        Raises:
            StatementError: the table exists already.
        """
        lake = lake.resolve()
        directory = lake / self.table if self.target is None else lake
        if self.target is None:
            if (directory / "_delta_log").is_dir() and not self.refresh:
                raise StatementError(
                    f"the table {self.table} exists in {lake}: CREATE OR REFRESH STREAMING TABLE "
                    f"{self.table} goes on where it stopped"
                )
            options = {"compactEvery": "20"}
            sink = Sink("table", "delta", _ROWS, str(directory), "", options)
        else:
            sink = _sink(self.target)
        stateful = statements.query(self.query.sql).stateful
        return Description(
            name=self.name,
            file=None,
            directory=directory,
            sources=tuple(_source(table, url) for table in self.query.tables),
            steps=(Step(_ROWS, sql=self.query.sql, stateful=bool(stateful)),),
            sinks=(sink,),
            trigger=Trigger("asap"),
            checkpoint=directory / _HOME / self.name,
        )


def _source(table: TableReference, url: str) -> Source:
    options = {"url": url, "queue": table.name, "startingOffsets": "earliest"}
    return Source(table.view, options)


def _sink(target: Route) -> Sink:
    return Sink("messages", "exchange", _ROWS, target.exchange, "", key_options(target))


def key_options(target: Route) -> dict[str, str]:
    """Return the sink's option for the routing key of a target."""
    return {} if target.routing_key is None else {EXPRESSION: quoted(target.routing_key)}


def route_named(kind: str, arguments: list[str]) -> Route | None:
    """Return the route that `queue('name')` or `exchange('name', 'key')` names; None for others."""
    if kind == "queue" and len(arguments) == 1:
        return Route("", arguments[0])
    if kind == "exchange" and len(arguments) <= 2:
        return Route(arguments[0], arguments[1] if len(arguments) == 2 else None)
    return None


def insertion(sql: str, tokens: list[Any]) -> InsertStatement | ContinuousStatement:
    """Parse an INSERT.

    Raises:
        StatementError: it is invalid.
    """
    index = 1
    if len(tokens) > index and tokens[index].text.upper() == "INTO":
        index += 1
    call = table_call(tokens, index)
    place = place_in(sql, tokens[min(index, len(tokens) - 1)].start)
    if call is None:
        raise StatementError(f"{place}: say where to publish: {_TARGETS}")
    kind, arguments, after = call
    target = route_named(kind, arguments)
    if target is None:
        raise StatementError(f"{place}: {kind} cannot be written: {_TARGETS}")
    query = _query(sql, tokens, after, "INSERT INTO exchange('name') SELECT ...")
    if _follows(query):
        _check_endless(query)
        return ContinuousStatement(query, target)
    return InsertStatement(target, query)


def creation(sql: str, tokens: list[Any]) -> ContinuousStatement:
    """Parse a CREATE STREAMING TABLE.

    Raises:
        StatementError: it is invalid.
    """
    words = [token.text.upper() for token in tokens]
    refresh = words[1:3] == ["OR", "REFRESH"]
    index = 3 if refresh else 1
    if words[index : index + 2] != ["STREAMING", "TABLE"]:
        raise StatementError(f"the one thing to create here is a streaming table: {_CREATION}")
    index += 2
    name = tokens[index].text if len(tokens) > index else ""
    if not _NAME.fullmatch(name):
        raise StatementError(f"{name!r} is no name of a table, which is a directory: {_CREATION}")
    if words[index + 1 : index + 2] != ["AS"]:
        raise StatementError(f"say what the table {name} is made of: {_CREATION}")
    query = _query(sql, tokens, index + 2, _CREATION)
    if not _follows(query):
        raise StatementError(
            f"a streaming table follows a queue: {_CREATION}; for what is there now, SELECT it"
        )
    _check_endless(query)
    return ContinuousStatement(query, None, name, refresh)


def _check_endless(query: SelectStatement) -> None:
    """Check that a query can go on for ever.

    Raises:
        StatementError: it aggregates, or ends.
    """
    parsed = statements.query(query.sql)
    if parsed.limited:
        raise StatementError(statements.LIMITED)
    if parsed.stateful == statements.AGGREGATE:
        raise StatementError(
            "an aggregate over messages that keep coming needs a watermark, which a statement "
            "cannot have: use a pipeline file with watermark, or leave STREAM out for what is "
            "there now"
        )


def _query(sql: str, tokens: list[Any], first: int, form: str) -> SelectStatement:
    if first >= len(tokens):
        raise StatementError(f"the query is missing: {form}")
    query = selection(sql, tokens, first)
    try:
        statements.query(query.sql)
    except StatementError as error:
        text = str(error).replace(": a step is one SELECT, and sinks write", f": {form}")
        raise StatementError(text) from None
    return query


def _follows(query: SelectStatement) -> bool:
    """True if the tables of a query are continuous.

    Raises:
        StatementError: only some are.
    """
    read_once = [table for table in query.tables if not table.continuous]
    if len(read_once) == len(query.tables):
        return False
    if read_once:
        table = read_once[0]
        raise StatementError(
            f"{table.kind}({table.name!r}) is read once and the others continuously: say "
            "STREAM before each, or before none"
        )
    return True
