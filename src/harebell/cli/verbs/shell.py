"""`harebell shell`: every command and SQL at one prompt, in one process."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harebell import __version__
from harebell.cli.broker_options import takes_broker
from harebell.cli.lake_flag import lake_flag
from harebell.cli.number_flag import number_flag
from harebell.cli.verb import Verb, echo
from harebell.cli.which_broker import amqp_url, given_url

if TYPE_CHECKING:
    from harebell.cli.statement_runner import StatementRunner

_ROWS = 1_000
_HELP = """Command lines without the word harebell: queues list, queues show NAME; --help has all.
Statements of SQL, which end with a semicolon: SELECT count(*) FROM queue('NAME');"""


@click.command(cls=Verb)
@takes_broker
@click.option(
    "--engine",
    type=click.Choice(["auto", "duckdb", "spark"]),
    default="auto",
    show_default=True,
    help="What answers questions in SQL, as in `harebell sql`.",
)
@number_flag("--rows", "Most rows of a question that are printed.", _ROWS)
@lake_flag
@click.pass_context
def shell(
    ctx: click.Context,
    data_dir: str | None,
    config_file: str | None,
    engine: str,
    rows: int,
    lake: Path,
) -> None:
    """Run command lines and SQL at one prompt.

    Commands stand without the word harebell, statements end with a semicolon. Tab completes
    commands, options and names. Lines that are piped in run until one fails.
    """
    from harebell.cli.last_result import LastResult
    from harebell.cli.shell.command_lines import CommandLines
    from harebell.cli.shell.history import History
    from harebell.cli.shell.prompt import Prompt
    from harebell.config import CONFIG_VARIABLE

    last = LastResult()
    last.of(ctx)
    if config_file is not None:
        os.environ[CONFIG_VARIABLE] = config_file
    url = data_dir or given_url()
    with ExitStack() as held:

        def runner() -> StatementRunner:
            from harebell.cli.statement_runner import RunningOptions, StatementRunner

            options = RunningOptions(
                amqp_url(url or None), None, False, "table", rows, lake, engine
            )
            return held.enter_context(StatementRunner(options))

        prompt = Prompt(runner, CommandLines(url, last), History("shell_history"), last, _HELP)
        if sys.stdin is None:
            return
        if sys.stdin.isatty():
            echo(f"Harebell {__version__}. \\help says what can be typed, Tab completes it.")
            prompt.talk()
            return
        script = sys.stdin.buffer
        # What a command reads must not be the rest of the script.
        sys.stdin = held.enter_context(Path(os.devnull).open(encoding="utf-8"))
        prompt.run(script)
