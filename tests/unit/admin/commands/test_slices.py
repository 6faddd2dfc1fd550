"""Commands about many consumers or connections do a little of their work in each slice."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from harebell.admin.catalog import find
from harebell.base.slices import at_once
from harebell.management.http.rows import encoded_object, query_of_rows
from harebell.model.vhost import VHost
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, OctetPeer

CONSUMERS = 40
PEERS = 25
PARTS = 100


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


def of_many_parts(site: Site) -> VHost:
    """A vhost with a queue and an exchange for each binding, and bindings of what stays."""
    site.run("vhosts.add", name="other")
    site.run("permissions.set", user="guest", vhost="other", configure="", write="", read="")
    where = site.world.broker.vhosts["other"]
    for number in range(PARTS):
        queue = where.declare_queue(f"q{number}", durable=True)
        where.declare_exchange(f"x{number}", "topic", durable=True)
        where.bind(f"x{number}", queue, "k")
        where.bind("amq.topic", queue, "k")
    return where


def test_a_vhost_of_many_parts_is_deleted_in_slices() -> None:
    site = Site()
    where = of_many_parts(site)
    work = site.world.broker.work
    slices = slices_of(site, "vhosts.delete", name="other")
    counts = []
    while True:
        work.begin(200)
        before = len(where.queues) + len(where.exchanges)
        try:
            next(slices)
        except StopIteration:
            break
        finally:
            work.end()
            counts.append(before - len(where.queues) - len(where.exchanges))
    assert sum(counts) == 2 * PARTS
    assert max(counts) <= 20
    assert "other" not in site.world.broker.vhosts
    assert not where.queues
    assert not list(where.bindings())
    kept = site.world.broker.store.definitions
    assert not [row for kind in ("queue", "exchange", "binding") for row in kept.load(kind)]


def test_no_client_opens_a_vhost_that_is_being_deleted() -> None:
    site = Site()
    of_many_parts(site)
    slices = slices_of(site, "vhosts.delete", name="other")
    site.world.broker.work.begin(200)
    next(slices)
    site.world.broker.work.end()
    peer = site.world.connect()
    peer.give(HEADER_0_9_1)
    peer.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"), channel=0)
    peer.send(m.ConnectionTuneOk(), m.ConnectionOpen("other"), channel=0)
    close = peer.methods()[-1]
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 530
    assert close.reply_text.endswith(
        "access to vhost 'other' refused for user 'guest': it is being deleted"
    )
    at_once(slices)


def test_a_vhost_that_could_not_be_deleted_is_open_again() -> None:
    site = Site()
    where = of_many_parts(site)
    slices = slices_of(site, "vhosts.delete", name="other")
    site.world.broker.work.begin(200)
    next(slices)
    site.world.broker.work.end()
    slices.close()
    assert site.world.broker.vhosts["other"] is where
    site.world.connect().log_in({}, vhost="other")
