"""`harebell permissions`: what users may do in a vhost."""

from __future__ import annotations

import click

from harebell.cli.noun import Broker, Noun, asks

_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost they are for."
)


@click.group(cls=Noun)
def permissions() -> None:
    """Manage what users may do in a vhost."""


@permissions.command("list")
@click.option("--vhost", metavar="NAME", help="Only those in this vhost.")
@click.option("--user", metavar="NAME", help="Only those of this user.")
@asks
def list_(broker: Broker, vhost: str | None, user: str | None) -> None:
    """Print all permissions."""
    answer = broker.ask("permissions.list", vhost=vhost, user=user)
    broker.table(answer, ("vhost", "user", "configure", "write", "read"))


@permissions.command("set")
@click.argument("user")
@click.argument("configure")
@click.argument("write")
@click.argument("read")
@_VHOST
@asks
def set_(broker: Broker, user: str, configure: str, write: str, read: str, vhost: str) -> None:
    """Let a user do what three patterns say, at once."""
    answer = broker.ask(
        "permissions.set", user=user, vhost=vhost, configure=configure, write=write, read=read
    )
    broker.tell(answer, f"the permissions of user '{user}' in vhost '{vhost}' were set")


@permissions.command()
@click.argument("user")
@_VHOST
@asks
def clear(broker: Broker, user: str, vhost: str) -> None:
    """Close a vhost to a user."""
    answer = broker.ask("permissions.clear", user=user, vhost=vhost)
    broker.tell(answer, f"the permissions of user '{user}' in vhost '{vhost}' were cleared")
