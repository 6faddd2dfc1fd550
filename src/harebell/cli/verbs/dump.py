"""`harebell dump`: a proxy between clients and a broker that prints the frames.

All bytes are forwarded unchanged, even if they cannot be decoded, and before they are printed. So
decoding never affects the connection.
"""

from __future__ import annotations

import asyncio
import sys

import click

from harebell.cli.dump_lines import Look
from harebell.cli.dump_proxy import CannotListen, Proxy, Say, Show
from harebell.cli.formats import takes_json
from harebell.cli.number_flag import number_flag
from harebell.cli.verb import Failure, Verb, WrongUsage, echo
from harebell.wire.dissect import Event

_BROKER = "127.0.0.1:5672"
_PORT_MAX = 65_535


@click.command(cls=Verb)
@click.option(
    "--port",
    type=click.IntRange(0, _PORT_MAX),
    required=True,
    metavar="PORT",
    help="Port that clients connect to; 0 takes a free one.",
)
@click.option(
    "--to",
    "target",
    default=_BROKER,
    show_default=True,
    metavar="HOST:PORT",
    help="The broker that everything is passed on to.",
)
@click.option(
    "--bind",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address that clients connect to.",
)
@click.option("--raw", is_flag=True, help="Print the octets of every frame, too.")
@number_flag("--bodies", "Print that much of every message body.", 0, minimum=0, metavar="OCTETS")
@takes_json("Print an object of JSON per line.")
@number_flag(
    "--connections", "End when that many connections are over; without it, go on until Ctrl-C."
)
def dump(
    port: int,
    target: str,
    bind: str,
    raw: bool,
    bodies: int,
    as_json: bool,
    connections: int | None,
) -> None:
    """Print every frame between clients and a broker, decoded.

    Clients connect to --port, and what they send is passed on to --to. Every AMQP from 0-8 to 1.0
    is read. Passwords and other secrets are masked; message bodies are not shown without --bodies.
    Connections with TLS pass, but cannot be read.
    """
    broker = _address(target)
    look = Look(raw=raw, bodies=bodies)

    def show(number: int, event: Event) -> None:
        lines = [look.json(number, event)] if as_json else look.lines(number, event)
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def say(text: str) -> None:
        echo(text, err=True)

    try:
        asyncio.run(_passing_on(broker, show, say, connections, bind, port))
    except CannotListen as error:
        raise Failure(str(error)) from None


async def _passing_on(
    broker: tuple[str, int], show: Show, say: Say, connections: int | None, bind: str, port: int
) -> None:
    await Proxy(broker, show, say, connections).run(bind, port)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) <= _PORT_MAX:
        raise WrongUsage(f"--to {text}: write HOST:PORT, for example {_BROKER}")
    return host.removeprefix("[").removesuffix("]"), int(port)
