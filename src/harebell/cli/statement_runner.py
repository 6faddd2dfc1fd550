"""Run statements of `harebell sql`, one after the other, in one session.

A query is answered by the embedded engine, in this process, as far as it knows what is asked. For
everything else there is a session of Spark, which is, in this order: the one that the program has;
a new one with `--master`; one of the server that `harebell spark start` keeps; a new one on this
machine. It starts with the first statement that needs it. A continuous statement is a pipeline, and
never runs in the server: its table is written by the program that runs it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.cli.cancellable import run_cancellable
from harebell.cli.last_result import kept
from harebell.cli.limits import SPARK_SERVER_IDLE_SECONDS
from harebell.cli.piping import run_all, sentences, short_session
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, WrongUsage, echo
from harebell.cli.which_broker import URL_VARIABLE, in_vhost
from harebell.client.url import URL

if TYPE_CHECKING:
    from harebell.pipeline.sql.embedded.engine import Engine
    from harebell.pipeline.sql.embedded.given_table import GivenTable
    from harebell.pipeline.sql.inserts import ContinuousStatement, InsertStatement
    from harebell.pipeline.sql.queries import Settled
    from harebell.pipeline.sql.selections import SelectStatement
    from harebell.pipeline.sql.verbs import SettleStatement, Statement
    from harebell.spark.runtime.session_server import SessionServer

AUTO, DUCKDB, SPARK = "auto", "duckdb", "spark"
ENGINES = (AUTO, DUCKDB, SPARK)
_LAST = "last"
"""The table that has the rows of the line before."""
_SETTING = ("SET", "USE")
_DONE = {"DELETE": "deleted", "MOVE": "moved", "RETRY": "published again"}


@dataclass(frozen=True)
class RunningOptions:
    """How statements run and how their rows are printed.

    Args:
        address: of the broker, as a URL.
        master: where Spark runs; None for this machine, or its server.
        warm: whether to start a server if none runs.
        output: how rows are printed: table, json or csv.
        rows: most rows that are printed.
        lake: the directory that tables begin from.
        engine: one of `ENGINES`.
    """

    address: str
    master: str | None
    warm: bool
    output: str
    rows: int
    lake: Path
    engine: str = AUTO


class StatementRunner:
    """Run statements; a context manager that ends their session.

    Args:
        options: how.
    """

    def __init__(self, options: RunningOptions) -> None:
        self._options = options
        self._broker = URL.parse(options.address)
        self._held = ExitStack()
        self._spark: Any = None
        self._server: SessionServer | None = None
        self._count = 0
        self._engine: Engine | None = None
        self._configured = False

    def __enter__(self) -> StatementRunner:
        """Do nothing yet."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the session, if it was started here."""
        self._held.close()

    def use(self, vhost: str) -> None:
        """Ask another vhost from now on."""
        self._options = replace(self._options, address=in_vhost(self._options.address, vhost))
        self._broker = URL.parse(self._options.address)
        if self._spark is not None:
            self._name_broker()

    def understood(self, sql: str) -> Statement:
        """Parse a statement.

        Raises:
            WrongUsage: it is invalid.
        """
        from harebell.pipeline.errors import PipelineError
        from harebell.pipeline.sql.verbs import understand

        try:
            return understand(sql)
        except PipelineError as error:
            line = getattr(error, "line", 1)
            raise WrongUsage(f"line {line}: {error}" if line > 1 else str(error)) from None

    def run(self, sql: str) -> None:
        """Run a statement and print its rows.

        Raises:
            KeyboardInterrupt: after Ctrl-C, when the statement has ended.
            ClickException: it is invalid, or failed; the text is one sentence.
        """
        from harebell.pipeline.sql.explained_errors import near_queues_named
        from harebell.pipeline.sql.inserts import ContinuousStatement

        statement = self.understood(sql)
        if self._answered(statement, sql):
            return
        if isinstance(statement, ContinuousStatement):
            self._follow(statement, sql)
            return
        with sentences():
            self.session()
            from harebell.spark.runtime.jvm_end import named_jvm_end

            self._count += 1
            group = f"harebell sql {os.getpid()}-{self._count}"
            with near_queues_named(self._broker), named_jvm_end(self._spark):
                run_cancellable(
                    lambda: self._grouped(statement, group), lambda: self._cancel(group)
                )

    # --- the embedded engine --------------------------------------------------------------------

    def _answered(self, statement: Statement, sql: str) -> bool:
        """Answer a query with the embedded engine; False if it is left to Spark."""
        from harebell.pipeline.sql.embedded.kinds import NeedsSpark
        from harebell.pipeline.sql.explained_errors import near_queues_named
        from harebell.pipeline.sql.selections import SelectStatement
        from harebell.pipeline.sql.verbs import SESSION, SettleStatement

        chosen = self._options.engine
        if chosen == SPARK or (chosen == AUTO and not self._embeds()):
            return False
        first = sql.split(maxsplit=1)[0].upper()
        # From now on the session has settings that queries may depend on.
        self._configured |= first in _SETTING
        known = isinstance(statement, SelectStatement | SettleStatement)
        if not known or first in SESSION:
            if chosen == DUCKDB:
                raise WrongUsage("this is a statement for Spark: leave out --engine")
            return False
        with sentences(), near_queues_named(self._broker):
            try:
                if isinstance(statement, SettleStatement):
                    self._settle_without_spark(statement, sql)
                elif isinstance(statement, SelectStatement):
                    self._ask(statement)
            except NeedsSpark as needed:
                self._say_spark(needed)
                return False
        return True

    def _say_spark(self, needed: Exception) -> None:
        """Say that Spark is asked, and why.

        Raises:
            Failure: it is not to be asked.
        """
        if self._options.engine == DUCKDB:
            raise Failure(f"{needed}: --engine spark does") from None
        echo(f"Spark is asked: {needed}", err=True)

    def _embeds(self) -> bool:
        """Whether queries are for the embedded engine, if nothing is said about it."""
        from importlib.util import find_spec

        options = self._options
        asks_spark = options.master is not None or options.warm
        return not (asks_spark or self._configured) and find_spec("duckdb") is not None

    def _ask(self, query: SelectStatement) -> None:
        from harebell.cli.printed_rows import between, print_first, say_more

        options, engine = self._options, self._embedded()
        given = _rows_before(query)
        made: list[Any] = []

        def work() -> None:
            with Progress("reading messages"):
                made.append(
                    engine.answer(
                        query,
                        self._broker,
                        options.rows,
                        between(options.output),
                        options.lake,
                        given,
                    )
                )

        run_cancellable(work, engine.cancel)
        answer = made[0]
        print_first(answer.columns, answer.rows, options.output)
        say_more(answer.more, options.rows)

    def _embedded(self) -> Engine:
        from harebell.pipeline.sql.embedded.engine import Engine

        if self._engine is None:
            self._engine = self._held.enter_context(Engine())
        return self._engine

    def _settle_without_spark(self, statement: SettleStatement, sql: str) -> None:
        """Let the embedded engine select the messages that a statement settles."""
        from harebell.pipeline.errors import PipelineError
        from harebell.pipeline.sql.embedded.engine import translate_selection
        from harebell.pipeline.sql.embedded.kinds import NeedsSpark
        from harebell.pipeline.sql.queries import selected_by_spark, settle_selected

        engine = self._embedded()
        selecting = translate_selection(statement, sql)
        cancelled: list[bool] = []

        def select(_: SettleStatement, messages: Any) -> list[tuple[Any, ...]]:
            try:
                rows = engine.selected(selecting, messages)
            except NeedsSpark as needed:
                # The same messages: taken again, they would be redelivered.
                self._say_spark(needed)
                rows = selected_by_spark(self.session(), statement, messages)
            if cancelled:
                raise PipelineError("the statement was cancelled")
            return rows

        def cancel() -> None:
            cancelled.append(True)
            engine.cancel()

        run_cancellable(
            lambda: self._settle(statement, partial(settle_selected, select=select)), cancel
        )

    # --- Spark ----------------------------------------------------------------------------------

    def _grouped(
        self, statement: SelectStatement | InsertStatement | SettleStatement, group: str
    ) -> None:
        """Run a statement as a group of jobs, which can be cancelled together."""
        if not self._remote:
            self._spark.sparkContext.setJobGroup(group, "a statement", interruptOnCancel=True)
            # Makes it the active session of this thread, by which Spark finds Python's formats.
            self._spark.createDataFrame([], "nothing INT")
        self._run(statement)

    @property
    def _remote(self) -> bool:
        """Whether the session is one of Spark Connect."""
        return ".connect." in type(self._spark).__module__

    def _cancel(self, group: str) -> None:
        """Cancel a statement, also the jobs that it has not begun yet."""
        if self._remote:
            self._spark.interruptAll()
        else:
            context = self._spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no such method
            context.cancelJobGroupAndFutureJobs(group)

    def _run(self, statement: SelectStatement | InsertStatement | SettleStatement) -> None:
        from harebell.pipeline.sql.inserts import InsertStatement
        from harebell.pipeline.sql.queries import drop_views, insert, select, settle
        from harebell.pipeline.sql.verbs import SettleStatement

        spark, options = self.session(), self._options
        lake = options.lake.absolute()
        if isinstance(statement, SettleStatement):
            self._settle(statement, partial(settle, spark))
        elif isinstance(statement, InsertStatement):
            with Progress("publishing"):
                count = insert(spark, statement, options.address, lake)
            echo(f"{count} messages published to {_to(statement.target)} and confirmed")
        else:
            from harebell.cli.printed_rows import print_rows

            try:
                rows = select(spark, statement, options.address, lake)
                print_rows(rows, options.rows, options.output)
            finally:
                drop_views(spark, statement)

    def _settle(
        self, statement: SettleStatement, settle: Callable[[SettleStatement, URL], Settled]
    ) -> None:
        from harebell.pipeline.sql.queries import route_text

        with Progress(f"looking at queue {statement.queue!r}"):
            done = settle(statement, self._broker)
        where = "" if statement.verb == "DELETE" else f" to {route_text(statement.target)}"
        echo(
            f"{done.settled} of {done.looked} messages of queue {statement.queue!r} "
            f"{_DONE[statement.verb]}{where}"
        )

    def _follow(self, statement: ContinuousStatement, sql: str) -> None:
        """Run a continuous statement until it is stopped."""
        options = self._options
        if self._server is not None:
            self._follow_elsewhere(sql)
            return
        from harebell.pipeline.run.unused_checkpoint import remove_unused
        from harebell.pipeline.sql.explained_errors import near_queues_named
        from harebell.pipeline.sql.targets import check_target

        with sentences(), near_queues_named(self._broker):
            if statement.target is not None:
                check_target(statement.target, self._broker)
            described = statement.described(options.address, options.lake)
            if statement.target is None and not statement.refresh:
                remove_unused(described)
        echo(f"pipeline {described.name}: Ctrl-C ends it after its micro-batch", err=True)
        run_all([described], options.master)

    def _follow_elsewhere(self, sql: str) -> None:
        """Run a continuous statement in a process of its own, with a session of its own."""
        # The address is not an argument: those can be read by every user of the machine.
        surroundings = os.environ | {URL_VARIABLE: self._options.address}
        words = [sys.executable, "-m", "harebell", "sql", sql, "--lake", str(self._options.lake)]
        # A handler, not SIG_IGN, which the other process would inherit: Ctrl-C is for it alone.
        before = signal.signal(signal.SIGINT, lambda *_: None)
        try:
            code = subprocess.run(words, env=surroundings, check=False).returncode  # noqa: S603
        finally:
            signal.signal(signal.SIGINT, before)
        if code:
            raise Failure(f"the statement ended with exit code {code}")

    # --- the session ----------------------------------------------------------------------------

    def session(self) -> Any:
        """Return the session; start it if there is none.

        Raises:
            PipelineError: Spark cannot be started.
        """
        if self._server is not None and not self._lives(self._server):
            self._spark = self._server = None
        if self._spark is None:
            self._spark = self._served() or self._held.enter_context(
                short_session("harebell sql", self._options.master)
            )
            # PySpark's own handler calls the JVM in the middle of another call.
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.default_int_handler)
            self._name_broker()
        return self._spark

    def _name_broker(self) -> None:
        """Make the catalog of the session that of the broker."""
        from harebell.spark.catalog import SETTING

        self._spark.conf.set(f"{SETTING}.url", self._options.address)

    def _served(self) -> Any:
        """Return a session of the server; None if none runs that fits."""
        from harebell.pipeline.errors import PipelineError
        from harebell.pipeline.hosting import active_session
        from harebell.pipeline.run.failures import suppress_tracebacks

        if self._options.master is not None or active_session() is not None:
            return None
        try:
            from harebell.spark.runtime.java import SessionError
            from harebell.spark.runtime.session_server import find_server, start_server
        except ImportError:
            raise PipelineError("this needs Spark: pip install 'harebell[spark]'") from None
        try:
            if self._options.warm:
                with Progress("starting the Spark server"):
                    server, _ = start_server(SPARK_SERVER_IDLE_SECONDS)
            else:
                running = find_server()
                if running is None:
                    return None
                server = running
                if server.differences:
                    echo(f"not used: a Spark server with {server.differences}", err=True)
                    return None
            opened = server.connect()
        except SessionError as error:
            raise PipelineError(str(error)) from None
        self._server = server
        suppress_tracebacks(opened)
        self._held.callback(self._release, opened, server)
        return opened

    def _release(self, session: Any, server: SessionServer) -> None:
        """End a session of a server, which keeps its views until then."""
        if self._lives(server):
            session.stop()

    @staticmethod
    def _lives(server: SessionServer) -> bool:
        from harebell.spark.runtime.session_server import find_server

        running = find_server()
        return running is not None and running.pid == server.pid


def _rows_before(query: SelectStatement) -> dict[str, GivenTable]:
    """Return the rows of the line before in a shell, if a query may ask for them."""
    keeper = kept()
    if keeper is None or keeper.before is None or _LAST not in query.sql.lower():
        return {}
    from harebell.pipeline.sql.embedded.given_table import table_of

    return {_LAST: table_of(*keeper.before)}


def _to(route: Any) -> str:
    return f"queue {route.routing_key!r}" if not route.exchange else f"exchange {route.exchange!r}"
