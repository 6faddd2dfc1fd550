"""`harebell exchanges`: the exchanges of a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks
from harebell.cli.properties import argument_flag, headers_of

_SHOWN = ("vhost", "name", "type", "durable", "policy", "messages_delayed")
_COLUMNS = (
    *("vhost", "name", "type", "durable", "auto_delete", "internal", "arguments", "policy"),
    "messages_delayed",
)


@click.group(cls=Noun)
def exchanges() -> None:
    """Look at the exchanges of a running broker, declare and delete them."""


listing(exchanges, "exchanges.list", "exchanges", _SHOWN, _COLUMNS)


@exchanges.command()
@click.argument("name")
@click.option("--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is in.")
@click.option(
    "--type",
    "kind",
    default="direct",
    show_default=True,
    metavar="NAME",
    help="Its type: direct, fanout, topic, headers or one of docs/protocols/compatibility.md.",
)
@click.option(
    "--durable/--transient",
    default=True,
    help="Whether it survives a restart.  [default: durable]",
)
@click.option("--auto-delete", is_flag=True, help="It goes with its last binding.")
@click.option("--internal", is_flag=True, help="Only other exchanges may send to it.")
@argument_flag
@asks
def declare(
    broker: Broker, name: str, vhost: str, kind: str, arguments: tuple[str, ...], **flags: bool
) -> None:
    """Make an exchange, or see that there is one like that."""
    answer = broker.ask(
        "exchanges.declare",
        name=name,
        vhost=vhost,
        type=kind,
        arguments=headers_of(arguments, "argument"),
        **flags,
    )
    done = "was declared" if answer["made"] else "is there already, and like that"
    broker.tell(answer, f"exchange '{name}' in vhost '{vhost}' {done}")


@exchanges.command()
@click.argument("name")
@click.option("--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is in.")
@click.option("--if-unused", is_flag=True, help="Only if nothing is bound to it.")
@asks
def delete(broker: Broker, name: str, vhost: str, if_unused: bool) -> None:
    """Delete an exchange and its bindings."""
    answer = broker.ask("exchanges.delete", name=name, vhost=vhost, if_unused=if_unused)
    broker.tell(answer, f"exchange '{name}' in vhost '{vhost}' was deleted")
