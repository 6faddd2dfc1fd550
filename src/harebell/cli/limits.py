"""`harebell limits`: how much vhosts and users may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from harebell.cli.noun import Broker, Noun, asks

_COLUMNS = ("vhost", "user", "limit", "value")


def _whose(function: Callable[..., None]) -> Callable[..., None]:
    for flag, help_ in (("--user", "The user they are for."), ("--vhost", "The vhost.")):
        function = click.option(flag, metavar="NAME", help=help_)(function)
    return function


@click.group(cls=Noun)
def limits() -> None:
    """Manage how much vhosts and users may have."""


@limits.command("list")
@_whose
@asks
def list_(broker: Broker, vhost: str | None, user: str | None) -> None:
    """Print all limits that are set, or those of one vhost or user."""
    broker.table(broker.ask("limits.list", vhost=vhost, user=user), _COLUMNS)


@limits.command("set")
@_whose
@click.option("--max-connections", type=int, help="Most connections; -1 for no limit.")
@click.option("--max-queues", type=int, help="Most queues, of a vhost; -1 for no limit.")
@click.option("--max-channels", type=int, help="Most channels, of a user; -1 for no limit.")
@asks
def set_(broker: Broker, **given: Any) -> None:
    """Set limits of a vhost or a user; who is in already stays."""
    broker.table(broker.ask("limits.set", **given), _COLUMNS)


@limits.command()
@_whose
@asks
def clear(broker: Broker, vhost: str | None, user: str | None) -> None:
    """Take all limits from a vhost or a user."""
    answer = broker.ask("limits.clear", vhost=vhost, user=user)
    whose = f"user '{user}'" if vhost is None else f"vhost '{vhost}'"
    broker.tell({"limits": answer}, f"the limits of {whose} were cleared")
