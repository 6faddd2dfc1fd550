"""The connection of a verb to a broker: the flag `--url`, and errors as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, NotConnected
from harebell.cli.which_broker import DEFAULT_URL, URL_VARIABLE, amqp_url
from harebell.client.blocking import Channel, connect
from harebell.client.errors import AMQPError, ConnectionFailed
from harebell.client.url import URL, VERSIONS


def url_flag(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a verb with `--url`."""
    return click.option(
        "--url",
        metavar="URL",
        help="Broker to connect to, amqp:// or amqps://, or the data directory of one of this "
        f"machine. [default: {DEFAULT_URL}; {URL_VARIABLE}]",
    )(command)


def version_flag(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a verb with `--amqp`."""
    return click.option(
        "--amqp",
        "version",
        type=click.Choice(VERSIONS),
        help="Version of AMQP to speak.  [default: what --url says, or 0-9-1]",
    )(command)


@contextmanager
def channel_to(url: str | None, version: str | None = None) -> Iterator[Channel]:
    """Open a channel for a verb; errors of the client become sentences and exit codes.

    Args:
        url: the value of `--url`; None for the environment or the default.
        version: the value of `--amqp`; None for the version in the URL.
    """
    target = URL.of(amqp_url(url), version)
    try:
        with Progress("connecting"):
            connection = connect(target)
    except ConnectionFailed as error:
        why = str(error).removeprefix(f"cannot connect to {target.address}: ")
        raise NotConnected(f"cannot connect to {target.address}: {why}") from None
    except AMQPError as error:
        raise NotConnected(f"{target.address} refused: {error}") from None
    try:
        with connection:
            yield connection.channel()
    except AMQPError as error:
        raise Failure(str(error)) from None
