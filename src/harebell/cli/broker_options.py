"""The options that say which broker a verb of administration is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from harebell.cli.formats import json_options
from harebell.cli.which_broker import URL_VARIABLE, url_option
from harebell.config import CONFIG_VARIABLE
from harebell.config.settings import BY_NAME

C = TypeVar("C", bound=Callable[..., Any])

_HELP = (
    "The broker: https://USER@HOST:15671, amqp://USER@HOST or a data directory.  [default: the one "
    f"of this machine; {URL_VARIABLE}]"
)


def local_options(*, hidden: bool = False) -> list[click.Option]:
    """Return the options `--data-dir` and `--config`, which find a broker of this machine."""
    variable = BY_NAME["data_dir"].variable
    return [
        click.Option(
            ["--data-dir"],
            metavar="DIRECTORY",
            help=f"Data directory of the broker. [{variable}]",
            hidden=hidden,
        ),
        click.Option(
            ["--config", "config_file"],
            metavar="FILE",
            help=f"Configuration file of the broker. [{CONFIG_VARIABLE}]",
            hidden=hidden,
        ),
    ]


def takes_broker(command: C) -> C:
    """Add the options of `broker_options` to a command, but for `--json`."""
    return _with(command, [url_option(_HELP, expose_value=False), *local_options(hidden=True)])


def takes_data_dir(command: C) -> C:
    """Add the options `--data-dir` and `--config` to a command."""
    return _with(command, local_options())


def _with(command: C, options: list[click.Option]) -> C:
    known: list[click.Parameter] = getattr(command, "__click_params__", [])
    command.__click_params__ = [*known, *reversed(options)]  # type: ignore[attr-defined]
    return command


def broker_options() -> list[click.Parameter]:
    """Return the options `--url` and `--json`, and the older `--data-dir` and `--config`."""
    return [
        url_option(_HELP, expose_value=False),
        *local_options(hidden=True),
        *json_options(),
    ]
