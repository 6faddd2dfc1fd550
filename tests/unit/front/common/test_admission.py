"""One connection or channel too many is refused, in RabbitMQ's words."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.limits import NEGOTIATION_FAILURES
from harebell.model.settings.vhost_limits import COMPONENT, NAME
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, OctetPeer, World


def refused_connection(world: World) -> Any:
    """What a further connection is told at connection.open."""
    peer = world.connect()
    peer.give(HEADER_0_9_1)
    peer.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"), channel=0)
    peer.send(m.ConnectionTuneOk(), m.ConnectionOpen("/"), channel=0)
    return peer.methods()[-1]


def refused_channel(peer: OctetPeer, number: int) -> Any:
    peer.send(m.ChannelOpen(), channel=number)
    return peer.methods()[-1]


def user(world: World) -> Any:
    return world.users.get("guest")


def vhost_limit(world: World, **limits: int) -> None:
    named = {key.replace("_", "-"): value for key, value in limits.items()}
    world.broker.vhosts["/"].parameters.put(COMPONENT, NAME, named)


def by_vhost(world: World) -> None:
    vhost_limit(world, max_connections=1)


def by_user(world: World) -> None:
    user(world).max_connections = 1


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (
            by_vhost,
            "access to vhost '/' refused for user 'guest': connection limit (1) is reached",
        ),
        (by_user, "connection refused for user 'guest': user connection limit (1) is reached"),
    ],
)
def test_a_limit_of_connections_is_held_until_one_goes(limit: Any, text: str) -> None:
    world = World()
    limit(world)
    first = world.peer()
    refused = refused_connection(world)
    assert refused == m.ConnectionClose(530, f"NOT_ALLOWED - {text}", 10, 40)
    first.send(m.ConnectionClose(), channel=0)
    assert refused_connection(world) == m.ConnectionOpenOk()


def test_clients_that_wait_for_their_turn_do_not_block_their_address() -> None:
    world = World()
    by_user(world)
    first = world.peer()
    for _ in range(NEGOTIATION_FAILURES + 1):
        assert refused_connection(world).reply_code == 530
    first.send(m.ConnectionClose(), channel=0)
    assert refused_connection(world) == m.ConnectionOpenOk()


def test_the_brokers_own_limit_of_connections_comes_first() -> None:
    world = World(connection_max=1)
    vhost_limit(world, max_connections=0)
    assert "connection limit (0) is reached" in refused_connection(world).reply_text
    vhost_limit(world)
    world.peer()
    vhost_limit(world, max_connections=0)
    assert refused_connection(world).reply_text == (
        "NOT_ALLOWED - connection refused: node connection limit (1) is reached"
    )


def test_connections_stay_when_a_limit_is_lowered() -> None:
    world = World()
    peer = world.peer()
    vhost_limit(world, max_connections=0, max_queues=0)
    user(world).max_connections = 0
    assert isinstance(peer.ask(m.BasicQos()), m.BasicQosOk)


def test_connections_to_other_vhosts_and_of_other_users_do_not_count() -> None:
    world = World()
    world.users.add("ann", "ann", vhosts=("/", "v"))
    world.broker.add_vhost("v")
    vhost_limit(world, max_connections=1)
    user(world).max_connections = 1
    other = world.connect()
    other.give(HEADER_0_9_1)
    other.send(m.ConnectionStartOk({}, "PLAIN", b"\0ann\0ann", "en_US"), channel=0)
    other.send(m.ConnectionTuneOk(), m.ConnectionOpen("v"), channel=0)
    assert other.methods()[-1] == m.ConnectionOpenOk()
    assert refused_connection(world) == m.ConnectionOpenOk()


def test_a_users_channels_are_counted_over_all_connections() -> None:
    world = World()
    user(world).max_channels = 2
    first, second = world.peer(), world.peer()
    refused = refused_channel(second, 2)
    assert refused == m.ConnectionClose(
        530,
        "NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed "
        "user limit of (2)",
        20,
        10,
    )
    assert refused_channel(first, 2) == m.ChannelOpenOk(), "the channels of the other are gone"


def test_the_brokers_own_limit_of_channels_is_over_all_connections() -> None:
    world = World(channel_max_per_node=2)
    world.peer()
    assert refused_channel(world.peer(), 2).reply_text == (
        "NOT_ALLOWED - number of channels opened on node 'harebell@localhost' has reached the "
        "maximum allowed limit of (2)"
    )


def test_a_queue_above_the_limit_of_its_vhost_is_refused_and_an_old_one_is_not() -> None:
    world = World()
    vhost_limit(world, max_queues=1)
    peer = world.peer()
    assert isinstance(peer.ask(m.QueueDeclare("a")), m.QueueDeclareOk)
    assert isinstance(peer.ask(m.QueueDeclare("a")), m.QueueDeclareOk)
    assert peer.ask(m.QueueDeclare("b", exclusive=True)) == m.ChannelClose(
        406,
        "PRECONDITION_FAILED - cannot declare queue 'b': queue limit in vhost '/' (1) is reached",
        50,
        10,
    )


def test_a_channel_has_no_more_consumers_than_may_be() -> None:
    peer = World(consumer_max_per_channel=2).peer()
    peer.ask(m.QueueDeclare("q"))
    for tag in ("a", "b"):
        peer.ask(m.BasicConsume("q", consumer_tag=tag))
    peer.ask(m.BasicCancel("a"))
    peer.ask(m.BasicConsume("q", consumer_tag="c"))
    # RabbitMQ does not even look for the queue.
    refused = peer.ask(m.BasicConsume("missing", consumer_tag="d"))
    text = "NOT_ALLOWED - reached maximum (2) of consumers per channel"
    assert refused == m.ConnectionClose(530, text, 60, 20)


def test_a_tag_that_is_taken_is_told_before_the_limit_of_consumers() -> None:
    peer = World(consumer_max_per_channel=1).peer()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.BasicConsume("q", consumer_tag="a"))
    refused = peer.ask(m.BasicConsume("q", consumer_tag="a"))
    assert refused.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 'a'"
