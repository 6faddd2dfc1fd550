"""`harebell sql`: run SQL on messages of queues and on tables on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harebell.cli.formats import takes_format
from harebell.cli.lake_flag import lake_flag
from harebell.cli.link import url_flag
from harebell.cli.number_flag import number_flag
from harebell.cli.piping import master_flag
from harebell.cli.verb import Verb, WrongUsage
from harebell.cli.which_broker import amqp_url

_ROWS = 1_000


@click.command(cls=Verb)
@click.argument("statement", required=False)
@url_flag
@master_flag
@click.option(
    "--warm", is_flag=True, help="Start a Spark server for this and later calls, if none runs."
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "duckdb", "spark"]),
    default="auto",
    show_default=True,
    help="What answers queries; auto asks Spark for what DuckDB does not know.",
)
@takes_format(
    "table", "csv", help_text="How rows are printed.", json_help="Print a line of JSON per row."
)
@number_flag("--rows", "Most rows that are printed.", _ROWS)
@lake_flag
def sql(
    statement: str | None,
    url: str | None,
    master: str | None,
    warm: bool,
    engine: str,
    output: str,
    rows: int,
    lake: Path,
) -> None:
    """Ask queues and tables with SQL, or publish, delete, move and retry messages with it.

    SELECT takes nothing from any queue. Tables are queue('name'), stream('name') and lake('path').
    Without a statement this is a shell; statements that are piped in run one after the other.
    """
    from harebell.cli.sql_shell import run_piped, run_shell
    from harebell.cli.statement_runner import RunningOptions, StatementRunner

    if warm and master is not None:
        raise WrongUsage("--warm is for this machine: leave out --master")
    if engine == "duckdb" and (warm or master is not None):
        raise WrongUsage("--master and --warm are for Spark: leave them out, or --engine duckdb")
    options = RunningOptions(amqp_url(url), master, warm, output, rows, lake, engine)
    with StatementRunner(options) as runner:
        if statement is not None:
            runner.run(statement)
        elif sys.stdin is not None and sys.stdin.isatty():
            run_shell(runner)
        else:
            run_piped(runner, _piped())


def _piped() -> str:
    """Return the text of standard input; "" if it is closed."""
    try:
        return "" if sys.stdin is None else sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise WrongUsage("standard input is not UTF-8") from None
