"""`harebell exchanges`: the exchanges of a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks

_SHOWN = ("vhost", "name", "type", "durable", "policy", "messages_delayed")
_COLUMNS = (
    *("vhost", "name", "type", "durable", "auto_delete", "internal", "arguments", "policy"),
    "messages_delayed",
)


@click.group(cls=Noun)
def exchanges() -> None:
    """Look at the exchanges of a running broker, and delete them."""


listing(exchanges, "exchanges.list", "exchanges", _SHOWN, _COLUMNS)


@exchanges.command()
@click.argument("name")
@click.option("--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is in.")
@click.option("--if-unused", is_flag=True, help="Only if nothing is bound to it.")
@asks
def delete(broker: Broker, name: str, vhost: str, if_unused: bool) -> None:
    """Delete an exchange and its bindings."""
    answer = broker.ask("exchanges.delete", name=name, vhost=vhost, if_unused=if_unused)
    broker.tell(answer, f"exchange '{name}' in vhost '{vhost}' was deleted")
