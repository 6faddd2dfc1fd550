"""Make verbs with actions, such as `harebell users add`, from `harebell.admin.catalog`.

An action sends a command to the broker on a data directory, and prints the answer. Arguments, help
and messages come from the description of the command. The actions of `definitions`, which read and
write files, are in `harebell.cli.verbs.definitions`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

import click

from harebell.admin.catalog import Noun
from harebell.admin.command import REQUIRED, Command, Form, Parameter
from harebell.base.names import did_you_mean
from harebell.base.printable import printable
from harebell.cli.broker_options import broker_options
from harebell.cli.completed_names import names
from harebell.cli.last_result import keep_dicts
from harebell.cli.limits import JOB_LOOK_SECONDS, LAST_RESULT_ROWS
from harebell.cli.progress import Progress
from harebell.cli.selection import Selection, checked, selecting_options, text_of
from harebell.cli.verb import Failure, NotConnected, Verb, WrongUsage, echo
from harebell.cli.which_broker import administered, forget_servers, server_at
from harebell.config import ConfigError, load
from harebell.management.control.client import (
    CommandError,
    ControlError,
    NotRunning,
    ask_command,
    ask_overview,
    ask_rows,
)
from harebell.server.limits import CONTROL_COMMAND_SECONDS

if TYPE_CHECKING:
    from harebell.management.control.remote import Remote

_GAP = "  "
_SYNONYMS = (
    {"declare", "add", "create", "make", "new", "set"},
    {"delete", "clear", "remove", "rm", "drop"},
    {"list", "ls", "show"},
)
"""Synonyms of action names; if several are actions of a noun, the first by name is used."""
_BEGIN_JOBS = (
    *("queues.move", "queues.copy", "queues.remove", "queues.retry", "queues.discard"),
    *("dead-letters.retry", "dead-letters.discard", "dead-letters.undo", "jobs.undo"),
)
_DONE = "done"


class NounGroup(click.Group):
    """A group of actions; the error for an unknown action names the nearest one.

    Args:
        *args: passed to `click.Group`.
        also: synonyms for actions of this noun.
        **options: passed to `click.Group`.
    """

    command_class = Verb

    def __init__(self, *args: Any, also: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._also = also or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the action; an error names the nearest one."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            meant = self.meant(args[0])
            near = did_you_mean(args[0] if meant is None else meant, self.commands)
            raise click.UsageError(f"No action {args[0]!r}: {near}", ctx)
        return super().resolve_command(ctx, args)

    def meant(self, name: str) -> str | None:
        """Return the action for a synonym, such as `add` for `create`; None if there is none."""
        if name in self.commands:
            return name
        if name in self._also:
            return self._also[name]
        for words in _SYNONYMS:
            if name in words:
                return next((each for each in sorted(self.commands) if each in words), None)
        return None


class RunningBroker:
    """Sends commands to the running broker, and prints answers.

    Args:
        data_dir: the data directory of the broker, if given.
        config_file: the configuration file of the broker, if given.
        as_json: print answers as JSON.
    """

    def __init__(self, data_dir: str | None, config_file: str | None, as_json: bool) -> None:
        self._data_dir = data_dir
        self._config_file = config_file
        self.as_json = as_json

    def ask(
        self,
        command: str,
        given: Mapping[str, Any],
        patience: float = CONTROL_COMMAND_SECONDS,
        *,
        waiting: str = "",
    ) -> Any:
        """Run a command in the broker and return its answer.

        Args:
            command: its name, such as "queues.list".
            given: its arguments.
            patience: seconds after which the broker is given up.
            waiting: what a terminal shows while the answer takes long; "" for nothing.
        """
        with _as_failures():
            remote = self._remote()
            with Progress(waiting) if waiting else nullcontext():
                if remote is not None:
                    return remote.ask(command, given, patience, _warn)
                return ask_command(self._where(), command, given, patience, _warn)

    def ask_rows(self, command: str, given: Mapping[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """Run a command with a stream of rows in the broker, and yield its rows in batches."""
        with _as_failures():
            remote = self._remote()
            batches = (
                ask_rows(self._where(), command, given)
                if remote is None
                else remote.ask_rows(command, given)
            )
            with Progress(command.replace(".", " ")):
                first = next(batches, None)
            if first is not None:
                yield first
                yield from batches

    def overview(self, lag: float = 0.0) -> dict[str, Any]:
        """Return the figures of `harebell status`.

        Args:
            lag: seconds for which the broker measures its event loop first.
        """
        with _as_failures():
            remote = self._remote()
            if remote is not None and lag:
                raise WrongUsage("--lag measures a broker of this machine: leave --url out")
            with Progress("status"):
                if remote is None:
                    return ask_overview(self._where(), lag=lag)
                figures: dict[str, Any] = remote.ask("service.figures", {})
                return figures

    def _remote(self) -> Remote | None:
        """Return the broker of another machine; None for the one of a data directory."""
        url, _ = administered(self._data_dir)
        return server_at(url) if url else None

    def _where(self) -> Path:
        _, data_dir = administered(self._data_dir)
        return load({"data_dir": data_dir}, config_file=self._config_file).data_dir

    def print_done(self, answer: Any, sentence: str) -> None:
        """Print the answer as JSON, or the sentence."""
        echo(_json(answer) if self.as_json else sentence)

    def print_object(self, answer: dict[str, Any]) -> None:
        """Print an object as JSON, or a line for each of its members."""
        keep_dicts(list(answer), [answer], partial(self.print_object, answer))
        if self.as_json:
            echo(_json(answer))
            return
        width = max((len(name) for name in answer), default=0)
        for name, value in answer.items():
            echo(f"{name.ljust(width)}{_GAP}{_cell(value)}".rstrip())

    def print_table(self, answer: list[dict[str, Any]], columns: Iterable[str]) -> None:
        """Print rows as JSON, or as a table with columns of the necessary width."""
        columns = tuple(columns)
        keep_dicts(columns, answer, partial(self.print_table, answer, columns))
        if self.as_json:
            echo(_json(answer))
            return
        _Table(columns).print(answer)

    def print_rows(self, batches: Iterator[list[dict[str, Any]]], columns: Iterable[str]) -> None:
        """Print rows as they come: a line of JSON each, or a table."""
        table = _Table(columns)
        first: list[dict[str, Any]] = []
        for rows in batches:
            first += rows[: LAST_RESULT_ROWS - len(first)]
            if self.as_json:
                for row in rows:
                    echo(_json(row))
            elif rows:
                table.print(rows)
        if not self.as_json:
            table.print([])
        keep_dicts(table.names, first, partial(self.print_table, first, table.names))


class _Table:
    """A table that is printed in parts; the first part decides the least widths.

    Args:
        columns: the names of the columns to print.
    """

    def __init__(self, columns: Iterable[str]) -> None:
        self.names = list(columns)
        self._widths = [0 for _ in self.names]
        self._begun = False

    def print(self, rows: list[dict[str, Any]]) -> None:
        """Print rows, below the names of the columns."""
        lines = [[_cell(row.get(name, "")) for name in self.names] for row in rows]
        if not self._begun:
            self._begun = True
            lines.insert(0, self.names)
        for at, width in enumerate(self._widths):
            self._widths[at] = max([width, *(len(line[at]) for line in lines)])
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, self._widths, strict=True))
            echo(_GAP.join(cells).rstrip())


def _warn(sentence: str) -> None:
    echo(f"warning: {sentence}", err=True)


@contextmanager
def _as_failures() -> Iterator[None]:
    """Make errors of the control socket those of the command line."""
    try:
        yield
    except ConfigError as error:
        raise WrongUsage(str(error)) from None
    except NotRunning as error:
        forget_servers()
        raise NotConnected(str(error)) from None
    except CommandError as error:
        raise WrongUsage(error.reason) if error.wrong else Failure(str(error)) from None
    except ControlError as error:
        raise Failure(str(error)) from None


def _json(answer: Any) -> str:
    from harebell.management.json_rows import encode

    return encode(answer).decode()


def _cell(value: Any) -> str:
    """Format a value for a table: commas in lists of texts, no line breaks."""
    text = "null" if value is None else text_of(value)
    return printable(text.replace("\n", "\\n"))


# --- actions, from the descriptions of commands ---------------------------------------------------


def group_of(noun: Noun) -> NounGroup:
    """Return the verb of a noun, with one action per command."""
    group = NounGroup(noun.name, help=noun.summary, also=noun.also)
    for command in noun.commands.values():
        if command.hidden:
            continue
        group.add_command(_by_hand(command) or action_of(command))
    for action in _further(noun):
        group.add_command(action)
    return group


def _further(noun: Noun) -> tuple[click.Command, ...]:
    """Return the actions of a noun that are no command of the broker."""
    if noun.name == "config":
        from harebell.cli.verbs import config

        return config.ACTIONS
    if noun.name == "audit":
        from harebell.cli.verbs import audit

        return audit.ACTIONS
    if noun.name == "dead-letters":
        from harebell.cli.verbs import dead_letters

        return dead_letters.ACTIONS
    return ()


def _by_hand(command: Command) -> click.Command | None:
    """Return the action of a command that reads or writes a file; None for other commands."""
    if command.noun.name != "definitions":
        return None
    from harebell.cli.verbs.definitions import ACTIONS

    return ACTIONS[command.verb]


def action_of(command: Command) -> Verb:
    """Return the action for a command."""
    parameters = command.parameters

    def run(data_dir: str | None, config_file: str | None, as_json: bool, **raw: Any) -> None:
        broker = RunningBroker(data_dir, config_file, as_json)
        columns = tuple(checked(command, each) for each in raw.pop("chosen", ())) or command.shown
        selection = Selection(command)
        if command.chooses:
            selection = Selection(command, raw.pop("where"), raw.pop("sort"))
        given = {
            each.name: _value(each, raw[each.keyword])
            for each in parameters
            if raw[each.keyword] is not None or each.argument.form is Form.SECRET
        }
        if command.streams:
            broker.print_rows(selection.of(broker.ask_rows(command.name, given)), columns)
            return
        answer = broker.ask(command.name, given, waiting=f"{command.noun.name} {command.verb}")
        if command.done and isinstance(answer, list):
            broker.print_done({command.noun.name: answer}, command.sentence(given, answer))
        elif command.done:
            broker.print_done(answer, command.sentence(given, answer))
            if command.name in _BEGIN_JOBS and sys.stderr.isatty() and not as_json:
                follow_job(broker, answer["id"])
        else:
            if isinstance(answer, dict):
                broker.print_object(answer)
                return
            answer = [row for rows in selection.of(iter([answer])) for row in rows]
            if columns != command.shown:
                answer = [{name: row[name] for name in columns} for row in answer]
            broker.print_table(answer, columns)

    options = [_click_parameter(each, command.noun.name) for each in parameters]
    if command.chooses:
        options.insert(0, click.Argument(["chosen"], nargs=-1, metavar="[COLUMN]..."))
        options += selecting_options()
    return Verb(
        command.verb, callback=run, params=[*options, *broker_options()], help=command.summary
    )


def follow_job(broker: RunningBroker, number: int) -> None:
    """Show on a terminal how far a job is, until it ends; Ctrl-C leaves it running.

    Raises:
        Failure: the job has failed, or was cancelled.
    """
    try:
        with Progress(f"job {number}") as progress:
            while not (job := broker.ask("jobs.show", {"id": number}))["ended"]:
                progress.at(job["examined"], job["messages"])
                time.sleep(JOB_LOOK_SECONDS)
    except KeyboardInterrupt:
        echo(f"job {number} goes on: `harebell jobs cancel {number}` ends it", err=True)
        raise
    text = f"job {number} is {job['state']}: {job['done']:,} of {job['selected']:,} messages"
    if job["state"] != _DONE:
        raise Failure(f"{text}; {job['problem']}" if job["problem"] else text)
    echo(text)


def _click_parameter(parameter: Parameter, noun: str) -> click.Parameter:
    """Return the argument or option of click for an argument of a command of a noun."""
    completed = names(noun, parameter.name)
    argument, keyword = parameter.argument, parameter.keyword
    form = argument.form
    if not argument.help:
        required = parameter.default is REQUIRED and form is not Form.SECRET
        if form is Form.WORDS:
            return click.Argument([keyword], nargs=-1, metavar=argument.metavar)
        return click.Argument(
            [keyword],
            type=_click_type(parameter),
            required=required,
            metavar=argument.metavar,
            shell_complete=completed,
        )
    flag = "--" + parameter.name.replace("_", "-")
    if form is Form.TABLE:
        return click.Option(
            ["-a", "--argument", keyword],
            multiple=True,
            metavar="NAME=VALUE",
            help=argument.help,
        )
    if parameter.type is bool:
        if argument.off is not None:
            flag += f"/--{argument.off}"
        return click.Option(
            [flag, keyword], is_flag=True, default=parameter.default, help=argument.help
        )
    default = parameter.default if parameter.default not in (None, "") else None
    if form is Form.WORDS:
        default = None
    return click.Option(
        [flag, keyword] if argument.short is None else [f"-{argument.short}", flag, keyword],
        type=_click_type(parameter),
        metavar=argument.metavar,
        default=default,
        show_default=default is not None,
        help=argument.help,
        shell_complete=completed,
    )


def _click_type(parameter: Parameter) -> Any:
    if parameter.argument.choices:
        return click.Choice(parameter.argument.choices)
    plain = [each for each in get_args(parameter.type) if each is not NoneType]
    return int if parameter.type is int or plain == [int] else str


def _value(parameter: Parameter, raw: Any) -> Any:
    """Parse the value of an argument from the command line."""
    match parameter.argument.form:
        case Form.SECRET:
            return _secret(raw)
        case Form.TABLE:
            from harebell.cli.properties import headers_of

            return headers_of(raw, "argument")
        case Form.JSON:
            return _json_value(parameter, raw)
        case Form.WORDS:
            texts = [raw] if isinstance(raw, str) else raw
            return [word.strip() for text in texts for word in text.split(",") if word.strip()]
        case _:
            return raw


def _secret(text: str | None) -> str:
    """Return the given password, or read it from the terminal or standard input."""
    if text is not None:
        return text
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    line = sys.stdin.readline()
    if not line:
        raise WrongUsage("there is no password: write it, or give a line of it as input")
    return line.rstrip("\r\n")


def _json_value(parameter: Parameter, text: str) -> Any:
    import msgspec

    is_table = get_origin(parameter.type) is dict
    try:
        return msgspec.json.decode(text, type=parameter.type if is_table else Any)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        what = "a JSON object" if is_table else "JSON"
        raise WrongUsage(
            f"the {parameter.name} {text!r} is not {what} ({error}): write one such as "
            f"{parameter.argument.example}"
        ) from None
