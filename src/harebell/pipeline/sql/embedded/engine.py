"""Run queries with DuckDB: in this process, over the queues of a broker, within limits.

Nothing of DuckDB that leaves the process can be reached: statements are translated from a closed
list of what SQL has, and its access to files, network and extensions is off for good besides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.client import blocking
from harebell.client.errors import AMQPError, NotFound
from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.limits import SQL_BATCH_ROWS, SQL_MEMORY_BYTES, SQL_THREADS
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.relations import Relation, type_named
from harebell.pipeline.spec.resolving import Resolver, unknown_functions
from harebell.pipeline.sql.embedded.given_table import GivenTable
from harebell.pipeline.sql.embedded.kinds import DECIMAL, ELSEWHERE, MESSAGE, Kind, NeedsSpark
from harebell.pipeline.sql.embedded.lake_table import open_lake
from harebell.pipeline.sql.embedded.macros import FUNCTIONS, INVALID, MACROS
from harebell.pipeline.sql.embedded.queue_stream import QueueStream
from harebell.pipeline.sql.embedded.shown_values import rows_of
from harebell.pipeline.sql.embedded.translation import Columns, Translated, Translation
from harebell.pipeline.sql.queue_snapshot import OFFSET
from harebell.pipeline.sql.selections import (
    SelectStatement,
    TableReference,
    place_in,
    tokens_of,
)
from harebell.pipeline.sql.verbs import SettleStatement

if TYPE_CHECKING:
    import pyarrow as pa

_BULK = "bulk"
_LAKE = "lake"
_TAKEN = "taken_messages"
_CHANGED = {"value": "BINARY", "routing_key": "STRING"}
"""The columns that SET changes, and their types."""
_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    # Nothing is written to disk: a query that needs more memory is refused.
    "temp_directory": "",
    "python_enable_replacements": "false",
    "preserve_insertion_order": "true",
}
_QUOTED = re.compile(r"'([^']+)'")
_DECORATION = re.compile(r"^[\w ]*Error: |\s*\n.*", re.S)


@dataclass(frozen=True)
class Answer:
    """The first rows of a query.

    Args:
        columns: their names.
        rows: as Python values, times as texts.
        more: whether there are more rows.
        read: number of messages that brokers have sent for it.
    """

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    more: bool
    read: int


class Engine:
    """DuckDB without tables of its own; a context manager that closes it.

    Args:
        memory: most bytes that a query holds.
        threads: that it uses.

    Raises:
        PipelineError: DuckDB is not installed.
    """

    def __init__(self, memory: int = SQL_MEMORY_BYTES, threads: int = SQL_THREADS) -> None:
        try:
            import duckdb
            import duckdb.func
            import pyarrow as pa  # noqa: F401 - looked for now, and used later
        except ImportError:
            raise PipelineError(
                "the embedded engine needs DuckDB: pip install 'harebell[sql]'"
            ) from None
        self._memory = memory
        limits = {"memory_limit": f"{memory}B", "threads": str(threads)}
        self._database = duckdb.connect(":memory:", config={**_SETTINGS, **limits})
        self._database.execute("SET TimeZone = 'UTC'")
        for name, (function, kinds) in FUNCTIONS.items():
            self._database.create_function(
                name,
                function,
                kinds,
                "VARCHAR",
                null_handling=duckdb.func.FunctionNullHandling.SPECIAL,
            )
        for head, body in MACROS.items():
            self._database.execute(f"CREATE MACRO {head} AS {body}")
        self._database.execute("SET lock_configuration = true")

    def __enter__(self) -> Engine:
        """Return the engine."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self._database.close()

    def cancel(self) -> None:
        """End the query that runs; from another thread."""
        self._database.interrupt()

    def answer(
        self,
        query: SelectStatement,
        url: URL,
        rows: int,
        between: str = " ",
        lake: Path | None = None,
        given: Mapping[str, GivenTable] | None = None,
    ) -> Answer:
        """Return the first rows of a query.

        Args:
            query: with views in place of its queues.
            url: of the broker.
            rows: most rows.
            between: separator of the date and the time of day.
            lake: where paths of `lake()` begin; None if there is none.
            given: further tables, by their names.

        Raises:
            NeedsSpark: it has something that only Spark does.
            PipelineError: it is wrong, or failed; the text is one sentence.
        """
        tables = {**(given or {}), **_lakes(query, lake)}
        translated = translate(query, {name: each.columns for name, each in tables.items()})
        with self._tables(tables), self._streams(query, translated, url) as streams:
            try:
                made, more = self._first_rows(translated.sql, rows, between)
            except PipelineError:
                for stream in streams:
                    if stream.failure is not None:
                        raise PipelineError(str(stream.failure)) from None
                raise
            return Answer(translated.columns, made, more, sum(each.rows for each in streams))

    def selected(self, selecting: Translated, messages: pa.Table) -> list[tuple[Any, ...]]:
        """Return what a statement selects of messages, in their order.

        Args:
            selecting: the statement, from `translate_selection`.
            messages: with all columns of messages.

        Raises:
            NeedsSpark: a value is converted in Spark's own way.
            PipelineError: it failed; the text is one sentence.
        """
        import duckdb

        self._database.register(_TAKEN, messages)
        try:
            return self._database.sql(selecting.sql).fetchall()
        except duckdb.Error as error:
            raise explained(error, self._memory) from None
        finally:
            self._hide(_TAKEN)

    def _first_rows(self, sql: str, rows: int, between: str) -> tuple[list[tuple[Any, ...]], bool]:
        import duckdb

        made: list[tuple[Any, ...]] = []
        try:
            reader = self._database.sql(sql).to_arrow_reader(SQL_BATCH_ROWS)
            for batch in reader:
                made += rows_of(batch.slice(0, rows + 1 - len(made)), between)
                if len(made) > rows:
                    break
        except duckdb.Error as error:
            raise explained(error, self._memory) from None
        except OSError as error:
            # What fails in the middle of Arrow's stream.
            raise explained(error, self._memory) from None
        return made[:rows], len(made) > rows

    @contextmanager
    def _tables(self, tables: Mapping[str, GivenTable]) -> Iterator[None]:
        """Make tables that come from no queue views."""
        for view, each in tables.items():
            self._database.register(view, each.data)
        try:
            yield
        finally:
            for view in tables:
                self._database.unregister(view)

    @contextmanager
    def _streams(
        self, query: SelectStatement, translated: Translated, url: URL
    ) -> Iterator[Sequence[QueueStream]]:
        """Open the queues of a query as views."""
        tables = [table for table in query.tables if table.kind != _LAKE]
        if not tables:
            yield ()
            return
        try:
            with blocking.connect(url) as connection:
                if _BULK not in connection.extensions:
                    raise NeedsSpark("brokers other than Harebell")
                streams = []
                try:
                    for table in tables:
                        wanted = translated.wanted[table.view]
                        stream = QueueStream(connection, table.name, wanted)
                        streams.append(stream)
                        self._show(table.view, stream, kept=wanted.uses > 1)
                    yield streams
                finally:
                    for table in tables[: len(streams)]:
                        self._hide(table.view)
        except NotFound as error:
            raise PipelineError(_missing(error, query)) from None
        except AMQPError as error:
            raise PipelineError(str(error)) from None

    def _show(self, view: str, stream: QueueStream, *, kept: bool) -> None:
        """Make a stream a table; in memory, if it is read at several places."""
        import duckdb

        self._database.register(f"{view}_stream" if kept else view, stream)
        if kept:
            try:
                self._database.execute(f'CREATE TEMP TABLE "{view}" AS FROM "{view}_stream"')
            except duckdb.Error as error:
                if stream.failure is not None:
                    raise stream.failure from None
                raise explained(error, self._memory) from None
            finally:
                self._database.unregister(f"{view}_stream")

    def _hide(self, view: str) -> None:
        self._database.unregister(view)
        self._database.execute(f'DROP TABLE IF EXISTS "{view}"')


def _lakes(query: SelectStatement, root: Path | None) -> dict[str, GivenTable]:
    """Open the tables on disk that a query names, by their views."""
    found = {}
    for table in query.tables:
        if table.kind == _LAKE:
            if root is None:
                raise NeedsSpark("lake()")
            found[table.view] = open_lake(table.name, root)
    return found


def translate(query: SelectStatement, given: Mapping[str, Columns] | None = None) -> Translated:
    """Translate a query to DuckDB.

    Args:
        query: with views in place of its tables.
        given: the columns of tables that come from no queue, by their views.

    Raises:
        NeedsSpark: it has something that only Spark does.
        PipelineError: it names a column that does not exist.
    """
    if query.explains:
        raise NeedsSpark("EXPLAIN")
    try:
        return _translated(query, given or {})
    except RecursionError:
        raise PipelineError("this is nested too deeply") from None


def translate_selection(settlement: SettleStatement, written: str) -> Translated:
    """Translate the WHERE and the SET of a statement to a query over the messages.

    Args:
        settlement: the statement.
        written: as it was written, for errors.

    Raises:
        NeedsSpark: it has something that only Spark does.
        PipelineError: it names a column that does not exist.
    """
    made = [
        f"CAST({settlement.changes.get(name, 'NULL')} AS {kind}) AS new_{name}"
        for name, kind in _CHANGED.items()
    ]
    selected = f"{', '.join([OFFSET, *made])} FROM {_TAKEN} WHERE {settlement.where}"
    table = TableReference("queue", settlement.queue, _TAKEN)
    query = SelectStatement(f"SELECT {selected}\nORDER BY {OFFSET}", (table,), written)
    translated = translate(query)
    if translated.wanted[_TAKEN].uses > 1:
        raise NeedsSpark(f"the table {_TAKEN}")
    return translated


def _translated(query: SelectStatement, given: Mapping[str, Columns]) -> Translated:
    written = _with_quotes(query.sql)
    try:
        parsed = statements.query(written)
    except statements.StatementError:
        # `understand` has found it to be a statement of Spark's session.
        raise NeedsSpark(query.sql.split(maxsplit=1)[0].upper()) from None
    if parsed.tree is None:
        raise NeedsSpark("|>")
    queues = [table.view for table in query.tables if table.view not in given]
    views = {**dict.fromkeys(queues, tuple(MESSAGE.items())), **given}
    resolver = Resolver(
        {
            view: Relation(tuple((name, type_named(_ddl(kind))) for name, kind in columns))
            for view, columns in views.items()
        }
    )
    resolver.columns_of(parsed.tree)
    for mistake in (*resolver.mistakes, *unknown_functions(parsed.called)):
        place = _place(query.written or query.sql, mistake.text, mistake.line)
        raise PipelineError(f"{place}: {mistake.text}")
    return Translation(views, queues, written).translated(parsed.tree)


def _with_quotes(sql: str) -> str:
    """Return the SQL with a backslash for each doubled quote: sqlglot sees two texts there."""
    tokens = tokens_of(sql)
    for one, other in reversed(list(pairwise(tokens))):
        texts = one.token_type.name == other.token_type.name == "STRING"
        if texts and one.end + 1 == other.start and sql[one.end] == sql[other.start]:
            sql = f"{sql[: one.end]}\\{sql[other.start :]}"
    return sql


def _ddl(kind: Kind) -> str:
    if kind.fields:
        return f"STRUCT<{', '.join(f'{name}: {_ddl(each)}' for name, each in kind.fields)}>"
    if kind.inner is not None:
        return f"MAP<STRING, {_ddl(kind.inner)}>"
    return f"DECIMAL({kind.scale[0]}, {kind.scale[1]})" if kind.name == DECIMAL else kind.name


def _place(sql: str, text: str, line: int) -> str:
    """Return the place of the name that an error has in quotes."""
    name = _QUOTED.search(text)
    begin = 0
    for _ in range(line - 1):
        begin = sql.find("\n", begin) + 1
    found = re.compile(rf"\b{re.escape(name[1])}\b").search(sql, begin) if name else None
    return place_in(sql, found.start()) if found else f"line {line}"


def _missing(error: AMQPError, query: SelectStatement) -> str:
    for table in query.tables:
        if not table.name or f"'{table.name}'" in str(error):
            return f"there is no queue {table.name!r}"
    return str(error)


def explained(error: Exception, memory: int) -> PipelineError:
    """Return an error of DuckDB as one sentence.

    Args:
        error: of a query.
        memory: most bytes that it may hold.
    """
    import duckdb

    text = str(error)
    if ELSEWHERE in text:
        return NeedsSpark(text.split(ELSEWHERE, 1)[1].split("\n")[0].strip())
    if INVALID in text:
        return PipelineError(text.split(INVALID, 1)[1].split("\n")[0][:200].strip())
    if isinstance(error, duckdb.InterruptException):
        return PipelineError("the query was cancelled")
    if isinstance(error, duckdb.OutOfMemoryException):
        return PipelineError(
            f"the query needs more than {memory // 1_048_576} MiB of memory: let it read or keep "
            "less"
        )
    said = _DECORATION.sub("", text)
    if said.startswith("Division by zero"):
        return PipelineError("division by zero")
    if (
        isinstance(error, duckdb.BinderException | duckdb.ParserException)
        and "GROUP BY" not in said
    ):
        return NeedsSpark(f"this: {said[:200]}")
    return PipelineError(said[:300])
