"""The options that say which broker of this machine a verb is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from harebell.server.config import CONFIG_VARIABLE
from harebell.server.config.settings import BY_NAME

C = TypeVar("C", bound=Callable[..., Any])

_OPTIONS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (
        ("--data-dir",),
        {
            "metavar": "DIRECTORY",
            "help": f"Data directory of the broker. [{BY_NAME['data_dir'].variable}]",
        },
    ),
    (
        ("--config", "config_file"),
        {"metavar": "FILE", "help": f"Configuration file of the broker. [{CONFIG_VARIABLE}]"},
    ),
)


def takes_broker(command: C) -> C:
    """Add the options `--data-dir` and `--config` to a command."""
    for names, attributes in reversed(_OPTIONS):
        command = click.option(*names, **attributes)(command)
    return command


def broker_options() -> list[click.Parameter]:
    """Return the options `--data-dir`, `--config` and `--json`."""
    found: list[click.Parameter] = [
        click.Option(list(names), **attributes) for names, attributes in _OPTIONS
    ]
    found.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one line of JSON."))
    return found
