"""A verb that has actions, such as `harebell users add`, and how those ask the running broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click

from harebell.base.limits import CONTROL_COMMAND_SECONDS
from harebell.base.names import did_you_mean
from harebell.base.printable import printable
from harebell.cli.echo import echo
from harebell.cli.failure import Failure, NotConnected, WrongUsage
from harebell.cli.verb import Verb
from harebell.server.config import CONFIG_VARIABLE, ConfigError, load
from harebell.server.config.settings import BY_NAME
from harebell.server.control.client import ControlError, NotRunning, ask_command

_GAP = "  "


_SAME = (
    {"declare", "add", "create", "make", "new", "set"},
    {"delete", "clear", "remove", "rm", "drop"},
    {"list", "ls", "show"},
)
"""Words that people use for one another; where several are actions, the first by name counts."""


class Noun(click.Group):
    """A group of actions, which answers a wrong one with the nearest right one.

    Args:
        *args: as for a group of click.
        also: what people call actions of this noun elsewhere.
        **options: as for a group of click.
    """

    command_class = Verb

    def __init__(self, *args: Any, also: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self._also = also or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The action asked for, or the nearest one in an error."""
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            meant = self.meant(args[0])
            near = did_you_mean(args[0] if meant is None else meant, self.commands)
            raise click.UsageError(f"No action {args[0]!r}: {near}", ctx)
        return super().resolve_command(ctx, args)

    def meant(self, name: str) -> str | None:
        """The action that has another name here, such as `add` for `create`; None for none."""
        if name in self.commands:
            return name
        if name in self._also:
            return self._also[name]
        for words in _SAME:
            if name in words:
                return next((each for each in sorted(self.commands) if each in words), None)
        return None


class Broker:
    """The running broker that an action is about, and how the answer is printed.

    Args:
        data_dir: its data directory, if given.
        config_file: its configuration file, if given.
        as_json: print answers as JSON.
    """

    def __init__(self, data_dir: str | None, config_file: str | None, as_json: bool) -> None:
        self._data_dir = data_dir
        self._config_file = config_file
        self._as_json = as_json

    def ask(self, command: str, *, patience: float = CONTROL_COMMAND_SECONDS, **fields: Any) -> Any:
        """What the broker answers to a command; fields that are None are left out."""
        given = {name: value for name, value in fields.items() if value is not None}
        try:
            config = load({"data_dir": self._data_dir}, config_file=self._config_file)
            return ask_command(config.data_dir, command, given, patience)
        except ConfigError as error:
            raise WrongUsage(str(error)) from None
        except NotRunning as error:
            raise NotConnected(str(error)) from None
        except ControlError as error:
            raise Failure(str(error)) from None

    def tell(self, answer: dict[str, Any], sentence: str) -> None:
        """Print what was done."""
        self._print(answer) if self._as_json else echo(sentence)

    def table(self, answer: list[dict[str, Any]], columns: Iterable[str]) -> None:
        """Print rows, in columns that are as wide as they need."""
        if self._as_json:
            self._print(answer)
            return
        names = list(columns)
        lines = [names, *([_cell(row[name]) for name in names] for row in answer)]
        widths = [max(len(line[n]) for line in lines) for n in range(len(names))]
        for line in lines:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            echo(_GAP.join(cells).rstrip())

    def _print(self, answer: Any) -> None:
        import msgspec

        echo(msgspec.json.encode(answer).decode())


def _cell(value: Any) -> str:
    """A value in a table: lists of texts with commas, no line breaks."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ",".join(value)
    elif isinstance(value, dict | list) or value is None:
        import msgspec

        return msgspec.json.encode(value).decode()
    return printable(str(value).replace("\n", "\\n"))


def closed(answer: dict[str, Any]) -> str:
    """A clause about connections that were closed, if any."""
    count = answer["connections_closed"]
    return f", {count} connection{'' if count == 1 else 's'} closed" if count else ""


def asks(function: Callable[..., None]) -> Callable[..., None]:
    """Give an action the flags for finding the broker; it gets a `Broker` as `broker`."""

    def run(data_dir: str | None, config_file: str | None, as_json: bool, **fields: Any) -> None:
        function(broker=Broker(data_dir, config_file, as_json), **fields)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
    flags = (
        click.option(
            "--data-dir",
            metavar="DIRECTORY",
            help=f"Data directory of the broker. [{BY_NAME['data_dir'].variable}]",
        ),
        click.option(
            "--config",
            "config_file",
            metavar="FILE",
            help=f"Configuration file of the broker. [{CONFIG_VARIABLE}]",
        ),
        click.option("--json", "as_json", is_flag=True, help="Print one line of JSON."),
    )
    for flag in reversed(flags):
        flag(run)
    return run
