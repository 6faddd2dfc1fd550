"""Super streams: an exchange and its streams in RabbitMQ's layout, whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.admin.test_jobs import act
from tests.unit.management.control.test_dispatcher import World


@pytest.mark.asyncio
async def test_a_super_stream_has_the_layout_of_rabbitmq() -> None:
    world = World()
    added = await act(
        world, "streams.add-super", name="s", partitions=2, arguments={"x-max-age": "1D"}
    )
    assert added["answer"] == {"vhost": "/", "name": "s", "partitions": ["s-0", "s-1"]}
    vhost = world.vhost
    exchange = vhost.exchanges["s"]
    assert (exchange.KIND, exchange.durable) == ("direct", True)
    assert exchange.arguments == {"x-super-stream": True}
    bound = [
        (each.destination.name, each.routing_key, each.arguments)
        for each in exchange.bindings.values()
    ]
    assert bound == [
        ("s-0", "0", {"x-stream-partition-order": 0}),
        ("s-1", "1", {"x-stream-partition-order": 1}),
    ]
    assert all(vhost.queues[name].kind == "stream" for name in ("s-0", "s-1"))
    assert vhost.queues["s-1"].arguments["x-max-age"] == "1D"


@pytest.mark.asyncio
async def test_a_super_stream_can_be_added_again_and_deleted() -> None:
    world = World()
    for _ in range(2):
        assert (await act(world, "streams.add-super", name="s", partitions=12))["ok"]
    listed = (await act(world, "streams.list-super"))["answer"]
    partitions = [f"s-{number}" for number in range(12)]
    assert listed == [{"vhost": "/", "name": "s", "partitions": partitions}]
    assert (await act(world, "streams.delete-super", name="s"))["answer"] == listed[0]
    assert not [name for name in world.vhost.queues if name.startswith("s-")]
    assert (await act(world, "streams.list-super"))["answer"] == []


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"partitions": 0}, "a super stream has 1 to 256 partitions, not 0"),
        ({"partitions": 257}, "a super stream has 1 to 256 partitions, not 257"),
        ({"arguments": {"x-queue-type": "quorum"}}, "the partitions of a super stream are streams"),
        ({"name": "s" * 254}, "255"),
        ({"name": "amq.direct"}, "amq."),
        ({"name": "taken", "partitions": 3}, "x-queue-type"),
        ({"name": "old", "partitions": 1}, "has 2 partitions already, not 1"),
    ],
)
@pytest.mark.asyncio
async def test_a_super_stream_that_cannot_be_made_is_named_and_nothing_is_left(
    fields: dict[str, Any], sentence: str
) -> None:
    world = World()
    vhost = world.vhost
    vhost.declare_queue("taken-2", durable=True)
    await act(world, "streams.add-super", name="old", partitions=2)
    before = (sorted(vhost.queues), sorted(vhost.exchanges))
    refused = await act(world, "streams.add-super", **({"name": "s"} | fields))
    assert not refused["ok"]
    assert sentence in str(refused)
    assert (sorted(vhost.queues), sorted(vhost.exchanges)) == before


@pytest.mark.asyncio
async def test_only_a_super_stream_is_deleted_as_one() -> None:
    world = World()
    refused = await act(world, "streams.delete-super", name="amq.direct")
    assert "no super stream 'amq.direct' in vhost '/'" in str(refused)
    assert "amq.direct" in world.vhost.exchanges
