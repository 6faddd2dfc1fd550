"""The rows of a list have the columns that its command declares."""

from __future__ import annotations

import pytest

from harebell.admin.catalog import commands, find
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import publish

LISTS = (
    *("queues.list", "queues.counters", "queues.browse", "jobs.list", "exchanges.list"),
    *("bindings.list", "connections.list", "channels.list", "consumers.list", "leases.list"),
    *("publishers.list", "queries.list", "users.list", "permissions.list", "limits.list"),
    *("topic-permissions.list", "vhosts.list", "policies.list", "operator-policies.list"),
    *("parameters.list", "global-parameters.list", "streams.list-super"),
)
ELSEWHERE = {
    *("stages.list", "transactions.list", "cluster.status", "backups.list", "logs.tail"),
    *("audit.list", "exchanges.delayed", "queues.waiting"),
}
"""Lists of what this broker in memory has not, which have tests of their own."""
CHANGES = {"limits.set", "limits.clear", "streams.add-super", "streams.delete-super"}
"""Changes that answer with rows of a list."""


@pytest.fixture(scope="module")
def site() -> Site:
    """A broker that has something of every kind."""
    site = Site()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q", durable=True))
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.ask(m.QueueDeclare("kept", durable=True))
    peer.give(publish(b"x", key="kept"))
    peer.ask(m.LeaseOpen("kept", "group"))
    peer.ask(m.PublisherDeclare("publisher"))
    peer.ask(m.QueryReport("query", {"state": "running"}))
    policy = {"name": "p", "pattern": ".*", "definition": {"max-length": 10}}
    site.run("policies.set", **policy)
    site.run("operator-policies.set", **policy)
    topic = {"user": "guest", "exchange": "amq.topic", "write": ".*", "read": ".*"}
    site.run("topic-permissions.set", **topic)
    site.run("parameters.set", component="c", name="p", value=1)
    site.run("global-parameters.set", name="g", value=1)
    site.run("limits.set", vhost="/", max_queues=100)
    site.run("streams.add-super", name="super")
    site.run("queues.remove", name="kept", where="priority = 200")
    return site


@pytest.mark.parametrize("name", LISTS)
def test_a_row_has_the_columns_of_its_list(site: Site, name: str) -> None:
    command = find(name)
    assert command is not None
    answer = site.run(name, **({"name": "kept"} if name == "queues.browse" else {}))
    rows = answer if isinstance(answer, list) else [row for some in answer.batches for row in some]
    assert rows
    assert {frozenset(row) for row in rows} == {frozenset(command.columns)}


def test_every_list_is_compared() -> None:
    assert {each.name for each in commands() if each.columns} == {*LISTS, *ELSEWHERE, *CHANGES}
