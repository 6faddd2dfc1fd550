"""`harebell consume`: print the messages of a queue as they arrive."""

from __future__ import annotations

import click

from harebell.cli.link import channel_to, url_flag, version_flag
from harebell.cli.number_flag import number_flag
from harebell.cli.show import output_flag, show
from harebell.cli.verb import Failure, Verb
from harebell.client.limits import CLIENT_PREFETCH

_PREFETCH_MAX = 65_535


@click.command(cls=Verb)
@url_flag
@version_flag
@click.option("-q", "--queue", required=True, metavar="NAME", help="Queue to consume from.")
@number_flag("--count", "End after that many messages; without it, go on for ever.")
@click.option(
    "--ack/--no-ack",
    default=True,
    help="Acknowledge each message after it was written, or let the broker forget it as it "
    "sends it.  [default: ack]",
)
@number_flag(
    "--prefetch",
    "Most messages sent ahead; 0 is no limit.",
    CLIENT_PREFETCH,
    minimum=0,
    maximum=_PREFETCH_MAX,
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End when no message came for so long.",
)
@output_flag
def consume(
    url: str | None,
    version: str | None,
    queue: str,
    count: int | None,
    ack: bool,
    prefetch: int,
    timeout: float | None,
    output: str,
) -> None:
    """Print messages of a queue as they come.

    With --count, it fails if --timeout passes before there were enough.
    """
    if count is not None and ack and prefetch:
        prefetch = min(prefetch, count)
    seen = 0
    with channel_to(url, version) as channel:
        messages = channel.consume(queue, prefetch=prefetch, no_ack=not ack, timeout=timeout)
        for message in messages:
            show(message, output)
            if ack:
                message.ack()
            seen += 1
            if seen == count:
                break
    if count is not None and seen < count:
        raise Failure(f"{seen} of {count} messages came before {timeout:g} s passed without one")
