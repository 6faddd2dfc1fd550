"""The shell of `harebell sql`: a prompt for statements, which share one session.

Ctrl-C empties the line, or cancels the statement that runs; Ctrl-D ends the shell. Lines are
edited and remembered by the module `readline` of Python.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harebell import __version__
from harebell.cli.limits import SQL_HISTORY_LINES
from harebell.cli.verb import echo

if TYPE_CHECKING:
    from harebell.cli.statement_runner import StatementRunner

_PROMPT, _GOES_ON = "harebell> ", "      ... "
_LEAVE = ("exit", "quit", "\\q")
_ASK = ("help", "?", "\\h")
_HELP = """Statements end with a semicolon:
  SELECT ... FROM queue('orders') | stream('s') | lake('path')
  INSERT INTO exchange('e') | exchange('e', 'key') | queue('q') SELECT ...
  CREATE [OR REFRESH] STREAMING TABLE name AS SELECT ... FROM STREAM queue('orders')
  DELETE | MOVE | RETRY FROM queue('q') [TO ...] [SET ...] WHERE ...
  SHOW ..., DESCRIBE ..., EXPLAIN ..., SET ..., USE ...
Ctrl-C cancels a statement; exit or Ctrl-D ends the shell. docs/guides/sql.md has the rest."""


def run_shell(runner: StatementRunner) -> None:
    """Read statements from the terminal and run them until the user leaves."""
    echo(f"Harebell {__version__}. End statements with ; and ask help; for more.")
    with _history():
        text = ""
        while True:
            try:
                line = input(_GOES_ON if text else _PROMPT)
                word = line.strip().rstrip(";").lower()
                if not text and word in _LEAVE:
                    return
                if not text and word in _ASK:
                    echo(_HELP)
                else:
                    text = _run_complete(runner, f"{text}{line}\n")
            except EOFError:
                echo()
                return
            except KeyboardInterrupt:
                # At the prompt, or between the end of a statement and the prompt.
                echo()
                text = ""


def _run_complete(runner: StatementRunner, text: str) -> str:
    """Run the statements of a text if it is complete; return the text that waits for more."""
    from harebell.pipeline.sql.splitting import complete, split

    if not text.strip():
        return ""
    if not complete(text):
        return text
    for statement in split(text):
        begun = time.monotonic()
        try:
            runner.run(statement.sql)
        except KeyboardInterrupt:
            echo("\ncancelled", err=True)
            break
        except click.ClickException as error:
            echo(f"Error: {error.format_message()}", err=True)
            break
        echo(f"({time.monotonic() - begun:.1f} s)", err=True)
    return ""


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


@contextmanager
def _history() -> Iterator[None]:
    """Read and keep the lines of earlier shells, where Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    file = history_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            readline.read_history_file(file)
        else:
            file.touch(mode=0o600)  # statements may have names and values of messages
    except OSError:
        yield  # a home that cannot be written is no reason to refuse statements
        return
    readline.set_history_length(SQL_HISTORY_LINES)
    try:
        yield
    finally:
        readline.write_history_file(file)


def history_file() -> Path:
    """Return the file of the lines that were typed: below XDG_STATE_HOME, else ~/.local/state."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "harebell" / "sql_history"
