"""Complete arguments with the names of objects of a running broker."""

from __future__ import annotations

from typing import Any

import click

from harebell.admin.catalog import NOUNS
from harebell.cli.which_broker import administered, server_at

_SECONDS = 2.0
"""A broker that does not answer must not hold the shell up for longer."""
_LISTS = {"vhost": "vhosts.list", "user": "users.list", "queue": "queues.list"}
"""The lists that have the names for arguments, by the names of those."""
_ABOUT = {"dead-letters": "queues"}
"""Nouns whose argument "name" is the name of something else."""


def names(noun: str, parameter: str) -> Any:
    """Return a function for click that completes an argument with names of the running broker.

    Args:
        noun: the noun of the command.
        parameter: the name of the argument.
    """
    command = f"{_ABOUT.get(noun, noun)}.list" if parameter == "name" else _LISTS.get(parameter)
    if command is None:
        return None

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        return [each for each in _listed(ctx, command) if each.startswith(incomplete)]

    return complete


def _listed(ctx: click.Context, command: str) -> list[str]:
    """Return the names in a list of the broker; [] without one, as a shell shows no errors."""
    from harebell.base.errors import HarebellError
    from harebell.config import load
    from harebell.management.control.client import ask_command

    noun, _, verb = command.partition(".")
    taken = {each.name for each in NOUNS[noun].commands[verb].parameters}
    # Without what is counted, ten thousand queues are there at once.
    fields: dict[str, Any] = {"disable_stats": True} if command == "queues.list" else {}
    if "vhost" in taken and ctx.params.get("vhost"):
        fields["vhost"] = ctx.params["vhost"]
    try:
        with ctx:  # the broker of `--url` is found in it
            url, data_dir = administered(ctx.params.get("data_dir"))
        if url:
            rows = server_at(url, asks=False).ask(command, fields, _SECONDS)
        else:
            rows = ask_command(load({"data_dir": data_dir}).data_dir, command, fields, _SECONDS)
    except (HarebellError, click.ClickException):
        return []
    names = (str(row.get("name", "")) for row in rows)
    # A shell takes a line break or a space as the end of a name.
    return sorted({name for name in names if name and name.isprintable() and " " not in name})
