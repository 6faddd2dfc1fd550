"""`harebell audit export`: all acts that a search finds, a line of JSON each, page by page."""

from __future__ import annotations

from typing import Any

import click

from harebell.admin.catalog import AUDIT
from harebell.admin.limits import AUDIT_ROWS
from harebell.cli.broker_options import broker_options
from harebell.cli.nouns import RunningBroker
from harebell.cli.verb import Verb, echo_json

_OF_PAGES = ("limit", "before")


def _export(data_dir: str | None, config_file: str | None, as_json: bool, **given: Any) -> None:
    broker = RunningBroker(data_dir, config_file, as_json)
    wanted = {name: value for name, value in given.items() if value is not None}
    before = 0
    while True:
        rows = broker.ask("audit.list", {**wanted, "limit": AUDIT_ROWS, "before": before})
        if not rows:
            return
        for row in reversed(rows):
            echo_json(row)
        before = rows[0]["number"]


def _options() -> list[click.Parameter]:
    """Return the options of `harebell audit list`, but for those of a page."""
    return [
        click.Option(
            ["--" + each.name.replace("_", "-"), each.name],
            metavar=each.argument.metavar,
            type=click.Choice(each.argument.choices) if each.argument.choices else str,
            help=each.argument.help,
        )
        for each in AUDIT.commands["list"].parameters
        if each.name not in _OF_PAGES
    ]


ACTIONS = (
    Verb(
        "export",
        callback=_export,
        params=[*_options(), *broker_options()],
        help="Print every act that is found, the last one first: a line of JSON each.",
    ),
)
