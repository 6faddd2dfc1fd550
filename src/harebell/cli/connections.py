"""`harebell connections`: who is connected to a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks

_SHOWN = ("name", "user", "vhost", "state", "channels")
_COLUMNS = (
    *("name", "user", "vhost", "state", "channels", "protocol", "peer_host", "peer_port"),
    *("host", "port", "ssl", "timeout", "frame_max", "channel_max", "client_properties"),
    "connected_seconds",
)
_REASON = click.option("--reason", metavar="TEXT", help="What the client is told.")


@click.group(cls=Noun)
def connections() -> None:
    """Look at the connections to a running broker, and close them."""


listing(connections, "connections.list", "connections", _SHOWN, _COLUMNS)


@connections.command()
@click.argument("name")
@_REASON
@asks
def close(broker: Broker, name: str, reason: str | None) -> None:
    """Close the connection NAME, as `list` shows it, with 320 CONNECTION_FORCED."""
    answer = broker.ask("connections.close", name=name, reason=reason)
    broker.tell(answer, f"connection '{name}' was closed")


@connections.command("close-all")
@click.option("--vhost", metavar="NAME", help="Only those to this vhost.")
@click.option("--user", metavar="NAME", help="Only those of this user.")
@_REASON
@asks
def close_all(broker: Broker, vhost: str | None, user: str | None, reason: str | None) -> None:
    """Close all connections, or those to a vhost or of a user."""
    answer = broker.ask("connections.close-all", vhost=vhost, user=user, reason=reason)
    count = answer["connections_closed"]
    broker.tell(answer, f"{count} connection{'' if count == 1 else 's'} closed")
