"""`harebell topic-permissions`: which routing keys users may use with a topic exchange."""

from __future__ import annotations

import click

from harebell.cli.noun import Broker, Noun, asks

_VHOST = click.option(
    "--vhost", metavar="NAME", default="/", show_default=True, help="The vhost they are for."
)


@click.group("topic-permissions", cls=Noun)
def topic_permissions() -> None:
    """Manage which routing keys users may use with a topic exchange."""


@topic_permissions.command("list")
@click.option("--vhost", metavar="NAME", help="Only those in this vhost.")
@click.option("--user", metavar="NAME", help="Only those of this user.")
@asks
def list_(broker: Broker, vhost: str | None, user: str | None) -> None:
    """Print all topic permissions."""
    answer = broker.ask("topic-permissions.list", vhost=vhost, user=user)
    broker.table(answer, ("vhost", "user", "exchange", "write", "read"))


@topic_permissions.command("set")
@click.argument("user")
@click.argument("exchange")
@click.argument("write")
@click.argument("read")
@_VHOST
@asks
def set_(broker: Broker, user: str, exchange: str, write: str, read: str, vhost: str) -> None:
    """Let a user publish and bind with the keys that two patterns match, and no others.

    {username} and {vhost} in a pattern stand for those names.
    """
    answer = broker.ask(
        "topic-permissions.set", user=user, vhost=vhost, exchange=exchange, write=write, read=read
    )
    broker.tell(
        answer,
        f"the topic permissions of user '{user}' for exchange '{exchange}' in vhost '{vhost}' "
        "were set",
    )


@topic_permissions.command()
@click.argument("user")
@click.argument("exchange", required=False)
@_VHOST
@asks
def clear(broker: Broker, user: str, exchange: str | None, vhost: str) -> None:
    """Allow every key again with EXCHANGE, or with all exchanges of the vhost."""
    answer = broker.ask("topic-permissions.clear", user=user, vhost=vhost, exchange=exchange)
    broker.tell(answer, f"topic permissions of user '{user}' in vhost '{vhost}' were cleared")
