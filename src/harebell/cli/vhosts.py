"""`harebell vhosts`: the vhosts of a running broker."""

from __future__ import annotations

import click

from harebell.cli.noun import Broker, Noun, asks, closed


@click.group(cls=Noun)
def vhosts() -> None:
    """Manage the vhosts of a running broker."""


@vhosts.command("list")
@asks
def list_(broker: Broker) -> None:
    """Print all vhosts."""
    broker.table(broker.ask("vhosts.list"), ("name", "queues", "exchanges", "messages"))


@vhosts.command()
@click.argument("name")
@asks
def add(broker: Broker, name: str) -> None:
    """Add a vhost, which nobody may open until there are permissions."""
    broker.tell(broker.ask("vhosts.add", name=name), f"vhost '{name}' was added")


@vhosts.command()
@click.argument("name")
@asks
def delete(broker: Broker, name: str) -> None:
    """Delete a vhost with everything in it, and close its connections."""
    answer = broker.ask("vhosts.delete", name=name)
    broker.tell(answer, f"vhost '{name}' was deleted{closed(answer)}")
