"""`harebell leases`: groups that claim messages of queues, in a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks

_SHOWN = ("vhost", "queue", "group", "epoch", "claims", "messages", "committed", "lost")
_COLUMNS = (*_SHOWN, "last", "timeout", "holder")


@click.group(cls=Noun)
def leases() -> None:
    """Look at the leases on queues of a running broker, and release them."""


listing(leases, "leases.list", "lease groups", _SHOWN, _COLUMNS)


@leases.command()
@click.argument("queue")
@click.argument("group")
@click.option("--vhost", metavar="NAME", default="/", show_default=True, help="The vhost.")
@click.option("--forget", is_flag=True, help="Forget the group itself, too.")
@asks
def release(broker: Broker, queue: str, group: str, vhost: str, forget: bool) -> None:
    """Give what a group has claimed back to the queue: its claims count as lost."""
    answer = broker.ask("leases.release", queue=queue, group=group, vhost=vhost, forget=forget)
    count = answer["messages"]
    shown = f"{count} message{'' if count == 1 else 's'}"
    done = "released and forgotten" if forget else "released"
    broker.tell(answer, f"group '{group}' of queue '{queue}' was {done}: {shown} went back")
