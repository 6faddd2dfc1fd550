"""Shared by all verbs: errors for unknown flags, printing, and exit codes.

A verb that fails prints one sentence on standard error and exits with one of these codes:

| code | means |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | the command line or the configuration is wrong (click's own code for it) |
| 3 | a data directory is damaged (`harebell store`) |
| 4 | there is no broker to connect to, or it refused the connection |
| 74 | the disk failed (`limits.EXIT_DISK`, which a running broker gives itself) |
"""

from __future__ import annotations

from typing import Any

import click

from harebell.base.names import did_you_mean
from harebell.base.printable import printable
from harebell.server.limits import EXIT_DISK

FAILED = 1
WRONG_USAGE = 2
DAMAGED = 3
NOT_CONNECTED = 4
_KEPT = "\n\t"


def echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print text.

    Args:
        text: lines; line breaks in names were escaped before.
        nl: append a line break.
        err: write to standard error.
    """
    click.echo(printable(text, _KEPT), nl=nl, err=err)


def echo_json(value: Any) -> None:
    """Print a value as a line of JSON."""
    import msgspec

    echo(msgspec.json.encode(value).decode())


class Verb(click.Command):
    """A command; the error for an unknown flag names the nearest one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the error for an unknown flag names the nearest one."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flags = [
                flag
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option) and not parameter.hidden
                for flag in (*parameter.opts, *parameter.secondary_opts)
                if flag.startswith("--")
            ]
            name = error.option_name
            raise click.UsageError(f"No option {name}: {did_you_mean(name, flags)}", ctx) from None


class _Sentence(click.ClickException):
    """An error for the user; control characters in its text are escaped."""

    def format_message(self) -> str:
        return printable(self.message, "\n")


class Failure(_Sentence):
    """The verb failed."""

    exit_code = FAILED


class DiskFailed(_Sentence):
    """The broker's disk refused a read or a sync."""

    exit_code = EXIT_DISK


class WrongUsage(_Sentence):
    """The command line or the configuration is invalid."""

    exit_code = WRONG_USAGE


class NotConnected(_Sentence):
    """There is no broker to connect to, or it refused the connection."""

    exit_code = NOT_CONNECTED
