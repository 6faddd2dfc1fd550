"""`harebell sql`: run SQL on messages of queues and on tables on disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from harebell.cli.link import DEFAULT_URL, URL_VARIABLE, url_flag
from harebell.cli.piping import sentences
from harebell.cli.verb import Verb, WrongUsage, echo
from harebell.client.url import URL, URLError

_OUTPUTS = ("table", "json", "csv")
_ROWS = 1_000


@click.command(cls=Verb)
@click.argument("statement")
@url_flag
@click.option("--master", metavar="URL", help="Where Spark runs.  [default: this machine]")
@click.option(
    "--output",
    type=click.Choice(_OUTPUTS),
    default=_OUTPUTS[0],
    help="How rows are printed.  [default: table]",
)
@click.option(
    "--rows",
    type=click.IntRange(min=1),
    default=_ROWS,
    metavar="NUMBER",
    help=f"Most rows that are printed.  [default: {_ROWS}]",
)
@click.option(
    "--lake",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Directory that lake('name') begins from.  [default: the working directory]",
)
def sql(
    statement: str, url: str | None, master: str | None, output: str, rows: int, lake: Path
) -> None:
    """Ask queues and tables with SQL, or delete, move and retry messages with it.

    SELECT takes nothing from any queue. Tables are queue('name'), stream('name') and lake('path').
    """
    from harebell.pipeline.errors import PipelineError
    from harebell.pipeline.spec.statements import StatementError
    from harebell.pipeline.sql.queries import route_text, select, settle
    from harebell.pipeline.sql.verbs import SettleStatement, understand

    try:
        understood = understand(statement)
    except StatementError as error:
        raise WrongUsage(str(error)) from None
    except PipelineError as error:
        raise WrongUsage(str(error)) from None
    address = url or os.environ.get(URL_VARIABLE) or DEFAULT_URL
    try:
        broker = URL.parse(address)
    except URLError as error:
        raise WrongUsage(f"{'--url' if url else URL_VARIABLE}: {error}") from None
    with sentences(), session("harebell sql", master) as spark:
        if isinstance(understood, SettleStatement):
            done = settle(spark, understood, broker)
            where = "" if understood.verb == "DELETE" else f" to {route_text(understood.target)}"
            verb = {"DELETE": "deleted", "MOVE": "moved", "RETRY": "published again"}
            echo(
                f"{done.settled} of {done.looked} messages of queue {understood.queue!r} "
                f"{verb[understood.verb]}{where}"
            )
            return
        print_rows(select(spark, understood, address, lake), rows, output)


def session(name: str, master: str | None) -> Any:
    """Return a context manager with a Spark session for one statement."""
    from harebell.pipeline.hosting import session as opened

    return opened(name, {"spark.master": master} if master else {}, short_lived=True)


def print_rows(frame: Any, rows: int, output: str) -> None:
    """Print the rows of a data frame."""
    from harebell.pipeline.sql.shown_rows import first_rows

    found = first_rows(frame, rows + 1, "T" if output == "json" else " ")
    shown = found[:rows]
    if output == "table":
        from harebell.pipeline.sinks.console import table

        for line in table(frame.columns, [tuple(row) for row in shown]):
            echo(line)
    elif output == "json":
        import msgspec

        for row in shown:
            echo(msgspec.json.encode(_plain(row.asDict(recursive=True))).decode())
    else:
        import csv
        import sys

        writer = csv.writer(sys.stdout)
        writer.writerow(frame.columns)
        writer.writerows([[_csv(value) for value in row] for row in shown])
    if len(found) > rows:
        echo(f"... and more: --rows {rows * 10}", err=True)


def _plain(value: Any) -> Any:
    """Convert bytes to text if they are UTF-8."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, bytes | bytearray):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            return bytes(value)  # msgspec writes base64
    return value


def _csv(value: Any) -> Any:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode(errors="replace")
    return value
