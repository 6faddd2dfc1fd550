"""`harebell transactions`: branches of distributed transactions in a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks

_SHOWN = ("vhost", "xid", "state", "messages_published", "messages_settled", "prepared_at")
_COLUMNS = (
    *("vhost", "xid", "state", "user", "sessions"),
    *("messages_published", "messages_settled", "timeout", "prepared_at"),
)
_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost it is in."
)


@click.group(cls=Noun)
def transactions() -> None:
    """Look at the distributed transactions of a running broker, and end them."""


listing(transactions, "transactions.list", "branches", _SHOWN, _COLUMNS)


def _ask(broker: Broker, what: str, xid: str, vhost: str) -> None:
    answer = broker.ask(f"transactions.{what}", xid=xid, vhost=vhost)
    broker.tell(answer, f"transaction {answer['xid']} in vhost '{vhost}' was {answer['done']}")


@transactions.command()
@click.argument("xid")
@_VHOST
@asks
def prepare(broker: Broker, xid: str, vhost: str) -> None:
    """Prepare a branch that no session works on any more."""
    _ask(broker, "prepare", xid, vhost)


@transactions.command()
@click.argument("xid")
@_VHOST
@asks
def commit(broker: Broker, xid: str, vhost: str) -> None:
    """Commit a prepared branch whose transaction manager does not come back."""
    _ask(broker, "commit", xid, vhost)


@transactions.command()
@click.argument("xid")
@_VHOST
@asks
def rollback(broker: Broker, xid: str, vhost: str) -> None:
    """Roll back a prepared branch whose transaction manager does not come back."""
    _ask(broker, "rollback", xid, vhost)


@transactions.command()
@click.argument("xid")
@_VHOST
@asks
def forget(broker: Broker, xid: str, vhost: str) -> None:
    """Forget what was decided about a branch, when nobody will ask for it."""
    _ask(broker, "forget", xid, vhost)
