"""The statements of `harebell sql`: at a prompt, where they share one session, or piped in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from harebell import __version__
from harebell.cli.last_result import LastResult
from harebell.cli.shell.history import History
from harebell.cli.shell.prompt import Prompt
from harebell.cli.verb import echo

if TYPE_CHECKING:
    from harebell.cli.statement_runner import StatementRunner

_HELP = """Statements end with a semicolon:
  SELECT ... FROM queue('orders') | stream('s') | lake('path')
  INSERT INTO exchange('e') | exchange('e', 'key') | queue('q') SELECT ...
  CREATE [OR REFRESH] STREAMING TABLE name AS SELECT ... FROM STREAM queue('orders')
  DELETE | MOVE | RETRY FROM queue('q') [TO ...] [SET ...] WHERE ...
  SHOW ..., DESCRIBE ..., EXPLAIN ..., SET ..., USE ...
docs/guides/sql.md has the rest."""


def run_shell(runner: StatementRunner) -> None:
    """Read statements from the terminal and run them until the user leaves."""
    last = LastResult()
    last.of(click.get_current_context())
    echo(f"Harebell {__version__}. End statements with ; and ask help; for more.")
    Prompt(lambda: runner, None, History("sql_history"), last, _HELP, timing=True).talk()


def run_piped(runner: StatementRunner, text: str) -> None:
    """Run the statements of a text; the first that fails ends it, and its line is told.

    Raises:
        ClickException: a statement is invalid or failed.
    """
    from harebell.pipeline.sql.splitting import split

    statements = list(split(text))
    # All are parsed before the first runs: a mistake at the end should not leave half done.
    for statement in statements:
        with _placed(statement.line):
            runner.understood(statement.sql)
    for statement in statements:
        with _placed(statement.line):
            runner.run(statement.sql)


@contextmanager
def _placed(line: int) -> Iterator[None]:
    """Say in errors where the statement begins."""
    try:
        yield
    except click.ClickException as error:
        raise type(error)(f"the statement in line {line}: {error.message}") from None
