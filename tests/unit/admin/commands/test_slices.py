"""Commands about many consumers or connections do a little of their work in each slice."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from harebell.admin.catalog import find
from harebell.base.slices import at_once
from harebell.management.http.rows import encoded_object, query_of_rows
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import OctetPeer

CONSUMERS = 40
PEERS = 25


def slices_of(site: Site, name: str, /, **fields: Any) -> Generator[Any, None, Any]:
    """The slices of a command."""
    command = find(name)
    assert command is not None
    slices = command.run(site.context, **command.arguments_of(fields))
    assert isinstance(slices, Generator)
    return slices


def with_consumers(site: Site) -> OctetPeer:
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q"))
    for number in range(CONSUMERS):
        peer.ask(m.BasicConsume(queue="q", consumer_tag=f"c{number}"))
    return peer


@pytest.mark.parametrize("command", ["queues.show", "channels.show"])
def test_each_consumer_of_a_row_is_made_and_encoded_in_a_slice_of_its_own(command: str) -> None:
    site = Site()
    peer = with_consumers(site)
    channel = f"{peer.connection.peer.connection_name} (1)"
    name = "q" if command == "queues.show" else channel
    assert sum(1 for _ in slices_of(site, command, name=name)) >= CONSUMERS
    row = at_once(slices_of(site, command, name=name))
    assert sum(1 for _ in encoded_object(row, query_of_rows({}))) >= CONSUMERS
    whole = b"".join(at_once(encoded_object(row, query_of_rows({}))))
    assert msgspec.json.decode(whole) == row
    assert len(row["consumer_details"]) == CONSUMERS
    columns = query_of_rows({"columns": "name,consumer_details"})
    assert msgspec.json.decode(b"".join(at_once(encoded_object(row, columns)))) == {
        "name": row["name"],
        "consumer_details": row["consumer_details"],
    }


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("connections.close-all", {}),
        ("connections.close-of-user", {"user": "guest"}),
        ("users.delete", {"name": "guest"}),
        ("vhosts.delete", {"name": "other"}),
    ],
)
def test_connections_are_closed_in_slices_and_those_that_come_meanwhile_too(
    command: str, fields: dict[str, Any]
) -> None:
    site = Site()
    site.run("users.add", name="ann", password="secret")
    site.run("vhosts.add", name="other")
    site.run("permissions.set", user="guest", vhost="other", configure="", write="", read="")
    vhost = fields.get("name") if command == "vhosts.delete" else "/"
    peers: list[OctetPeer] = []

    def come() -> None:
        peer = site.world.connect()
        peer.log_in({}, vhost=vhost or "/")
        peers.append(peer)

    for _ in range(PEERS):
        come()
    slices = slices_of(site, command, **fields)
    next(slices)
    closed = [peer for peer in peers if peer.methods()]
    assert len(closed) == 1
    if command != "users.delete":
        come()
    answer = at_once(slices)
    assert answer["connections_closed"] == len(peers)
    for peer in peers:
        if peer not in closed:
            (close,) = peer.methods()
            assert isinstance(close, m.ConnectionClose)
            assert close.reply_code == 320
