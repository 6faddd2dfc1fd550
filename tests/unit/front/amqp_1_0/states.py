"""What a test sees of connections of AMQP 1.0: their output, the states of links, all counters."""

from __future__ import annotations

from typing import Any

from harebell.base.slices import at_once
from tests.unit.front.amqp_0_9_1.world import World
from tests.unit.front.amqp_1_0.peer import LinkPeer


def seen_of(world: World, peers: list[LinkPeer]) -> list[Any]:
    """The octets that peers got since the last time, and what the broker has counted."""
    vhost = world.broker.vhosts["/"]
    queues = [
        (name, each.counters.values(), each.arrivals(), each.ready_count(), each.unacked)
        for name, each in vhost.queues.items()
    ]
    exchanges = [(each.name, each.published, each.routed) for each in vhost.exchanges.values()]
    connections = [peer.connection for peer in peers]
    arrivals = [
        (each.sizes().counts, each.routed, each.wanting_confirm, each.byte_count)
        for each in (connection.arrivals for connection in connections)
    ]
    sessions = [session_state(each) for one in connections for each in one.channels.values()]
    sums = {key: each.counters.values() for key, each in at_once(world.registry.sums()).items()}
    outputs = [connection.take_output(world.now) for connection in connections]
    return [outputs, queues, exchanges, arrivals, sessions, sums]


def session_state(session: Any) -> tuple[Any, ...]:
    """The windows, numbers and counters of a session, and the credit of its links."""
    links = [
        (handle, each.name, each.credit, each.delivery_count)
        for handle, each in session.links.items()
    ]
    publishers = [
        (each.at_exchange.values(), each.due, each.held)
        for each in session.links.values()
        if hasattr(each, "at_exchange")
    ]
    consumers = [(each.tag, each.details.values()) for each in session.consumers.values()]
    windows = (session.window, session.remote_window, session.incoming_id, session.outgoing_id)
    return (session.counters.values(), windows, session.next_tag, links, publishers, consumers)
