"""`harebell trace`: the firehose of a vhost, on or off."""

from __future__ import annotations

import click

from harebell.cli.noun import Broker, Noun, asks

_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is for."
)


@click.group(cls=Noun)
def trace() -> None:
    """Show all messages of a vhost to its exchange amq.rabbitmq.trace, or stop that.

    Every message that is published or delivered is copied there, which costs a good part of the
    speed while it lasts.
    """


def _switch(broker: Broker, vhost: str, *, on: bool) -> None:
    answer = broker.ask("vhosts.set", name=vhost, tracing=on)
    broker.tell(answer, f"tracing of vhost '{vhost}' is {'on' if on else 'off'}")


@trace.command("on")
@_VHOST
@asks
def on_(broker: Broker, vhost: str) -> None:
    """Begin to trace a vhost, also after a restart, until it is told to stop."""
    _switch(broker, vhost, on=True)


@trace.command("off")
@_VHOST
@asks
def off_(broker: Broker, vhost: str) -> None:
    """Stop tracing a vhost."""
    _switch(broker, vhost, on=False)
