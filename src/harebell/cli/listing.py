"""The action `list` of things that a broker has many facts about: its columns can be chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from harebell.base.names import did_you_mean
from harebell.cli.failure import WrongUsage
from harebell.cli.noun import Broker, asks


def listing(
    group: click.Group, command: str, what: str, shown: Sequence[str], columns: Sequence[str]
) -> None:
    """Give a group its action `list`.

    Args:
        group: the verb.
        command: what the broker is asked.
        what: what is listed.
        shown: the columns without others asked for.
        columns: all of them.
    """
    known = ", ".join(columns)

    @group.command("list", help=f"Print all {what}. Columns: {known}.")
    @click.argument("chosen", nargs=-1, metavar="[COLUMN]...")
    @click.option("--vhost", metavar="NAME", help="Only those of this vhost.")
    @asks
    def list_(broker: Broker, chosen: tuple[str, ...], vhost: str | None) -> None:
        for name in chosen:
            if name not in columns:
                raise WrongUsage(f"{what} have no column {name!r}: {did_you_mean(name, columns)}")
        answer: list[dict[str, Any]] = broker.ask(command, vhost=vhost)
        if chosen:
            answer = [{name: row[name] for name in chosen} for row in answer]
        broker.table(answer, chosen or shown)
