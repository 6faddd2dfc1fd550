"""`harebell queues`: the queues of a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks
from harebell.cli.properties import argument_flag, headers_of

_SHOWN = ("vhost", "name", "type", "messages", "consumers", "durability", "policy")
_COLUMNS = (
    *("vhost", "name", "type", "durable", "auto_delete", "exclusive", "owner", "arguments"),
    *("policy", "operator_policy", "effective_policy_definition"),
    *("messages_ready", "messages_unacknowledged", "messages_delayed", "messages_leased"),
    "messages",
    "consumers",
    *("durability", "state"),
)
_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is in."
)


@click.group(cls=Noun)
def queues() -> None:
    """Look at the queues of a running broker, declare, purge and delete them."""


listing(queues, "queues.list", "queues", _SHOWN, _COLUMNS)


def _messages(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'}"


@queues.command()
@click.argument("name")
@_VHOST
@click.option(
    "--type",
    "kind",
    type=click.Choice(["classic", "quorum", "stream"]),
    help="Its type.  [default: as the vhost says, else classic]",
)
@click.option(
    "--durable/--transient",
    default=True,
    help="Whether it survives a restart.  [default: durable]",
)
@click.option("--auto-delete", is_flag=True, help="It goes with its last consumer.")
@argument_flag
@asks
def declare(
    broker: Broker,
    name: str,
    vhost: str,
    kind: str | None,
    durable: bool,
    auto_delete: bool,
    arguments: tuple[str, ...],
) -> None:
    """Make a queue, or see that there is one like that."""
    answer = broker.ask(
        "queues.declare",
        name=name,
        vhost=vhost,
        type=kind,
        durable=durable,
        auto_delete=auto_delete,
        arguments=headers_of(arguments, "argument"),
    )
    done = "was declared" if answer["made"] else "is there already, and like that"
    broker.tell(answer, f"queue '{name}' in vhost '{vhost}' {done}")


@queues.command()
@click.argument("name")
@_VHOST
@asks
def purge(broker: Broker, name: str, vhost: str) -> None:
    """Drop all messages of a queue that are ready, or wait to be tried again."""
    answer = broker.ask("queues.purge", name=name, vhost=vhost)
    dropped = _messages(answer["messages"])
    broker.tell(answer, f"queue '{name}' in vhost '{vhost}' was purged of {dropped}")


@queues.command()
@click.argument("name")
@_VHOST
@asks
def retry(broker: Broker, name: str, vhost: str) -> None:
    """Deliver again now what waits to be tried again."""
    answer = broker.ask("queues.retry", name=name, vhost=vhost)
    count = _messages(answer["messages"])
    broker.tell(answer, f"queue '{name}' in vhost '{vhost}' delivers {count} again now")


@queues.command()
@click.argument("name")
@_VHOST
@click.option("--if-empty", is_flag=True, help="Only if it has no messages.")
@click.option("--if-unused", is_flag=True, help="Only if nobody consumes it.")
@asks
def delete(broker: Broker, name: str, vhost: str, if_empty: bool, if_unused: bool) -> None:
    """Delete a queue with all its messages."""
    answer = broker.ask(
        "queues.delete", name=name, vhost=vhost, if_empty=if_empty, if_unused=if_unused
    )
    dropped = _messages(answer["messages"])
    broker.tell(answer, f"queue '{name}' in vhost '{vhost}' was deleted with {dropped}")
