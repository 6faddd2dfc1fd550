"""The command `harebell`: import the verb that is used, run it, and set the exit code.

Only that verb is imported, because imports such as an event loop, TLS or JSON delay the start, and
scripts may run `harebell status` every few seconds.
"""

from __future__ import annotations

import platform
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import click

from harebell import __version__
from harebell.admin.catalog import NOUNS
from harebell.base import impl
from harebell.base.names import did_you_mean
from harebell.cli.commit import commit
from harebell.cli.limits import EXIT_INTERRUPTED
from harebell.cli.which_broker import url_option

VERBS = {
    "serve": "Run a broker.",
    "demo": "Send a month of flights through a broker, and draw what they say.",
    "publish": "Publish messages and wait for the confirms.",
    "consume": "Print messages of a queue as they come.",
    "get": "Take messages from a queue, if there are any.",
    "explain": "Say what would happen to a message, without publishing it.",
    "dump": "Print every frame between clients and a broker, decoded.",
    "status": "Show what a running broker is doing.",
    "health": "Check a running broker, for probes.",
    "top": "Show queues and connections of a running broker live.",
    **{noun.name: noun.summary.partition("\n")[0] for noun in NOUNS.values()},
    "shell": "Run command lines and SQL at one prompt.",
    "pipeline": "Run pipelines: queues through SQL into exchanges, tables and files.",
    "sql": "Ask queues and tables with SQL, or publish, delete, move and retry messages with it.",
    "lake": "Look after the Delta and Iceberg tables that pipelines write.",
    "spark": "See whether Spark can run here, make it start faster, and keep a session running.",
    "backup": "Back a running broker up to TARGET, as it is at one commit.",
    "restore": "Restore a backup from SOURCE to a data directory.",
    "store": "Look into the data directory of a broker that does not run.",
    "doctor": "Say what is wrong with this machine, and how to correct it.",
    "completion": "Print the script that completes commands in bash, zsh or fish.",
    "compat": "Install RabbitMQ's command-line tools for this broker.",
}

ACTED_ON = ("queues", "exchanges", "bindings")
"""Nouns whose actions are suggested for an unknown verb."""

_HELP = f"""Harebell: an AMQP broker, its client and its command line.

\b
Exit codes: 0 done, 1 failed, 2 wrong command line or configuration,
3 a data directory is damaged, 4 no broker to connect to, 130 ended by Ctrl-C.

Harebell {__version__}; the documentation of every verb is in docs/reference/cli.md.
"""


class Verbs(click.Group):
    """The group of verbs; it has their names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all verbs in the order of the help text."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one verb."""
        if cmd_name not in VERBS:
            return None
        if cmd_name in NOUNS:
            from harebell.cli.nouns import group_of

            return group_of(NOUNS[cmd_name])
        module = cmd_name.replace("-", "_")
        command = getattr(import_module(f"harebell.cli.verbs.{module}"), module)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb; Ctrl-C ends it with exit code 130, without click's `Aborted!`."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an error names the nearest one."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            raise click.UsageError(f"No verb {args[0]!r}: {self._meant(ctx, args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> str:
        """Return a suggestion for an unknown verb: actions of nouns, or the nearest verb."""
        places = []
        for verb in ACTED_ON:
            noun: Any = self.get_command(ctx, verb)
            action = noun.meant(name)
            if action is not None:
                places.append(f"{verb} {action}")
        if places:
            return f"did you mean {' or '.join(places)}?"
        return did_you_mean(name, VERBS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs for `--help`, without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


def version_line() -> str:
    """Return the output of `--version`."""
    loop = "uvloop" if find_spec("uvloop") is not None else "asyncio"
    built = commit()
    return (
        f"harebell {__version__} ({impl.chosen()} implementation, "
        f"Python {platform.python_version()}, event loop {loop}"
        f"{f', commit {built}' if built else ''})"
    )


def _print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(version_line())
        ctx.exit()


@click.group(cls=Verbs, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, the implementation in use, Python, the event loop and the commit.",
)
def harebell() -> None:
    """Everything stands in the verbs."""


harebell.params += [
    url_option("The broker of any verb, as its own --url.", expose_value=False),
    url_option("The older word for it.", "--server", hidden=True, expose_value=False),
]
