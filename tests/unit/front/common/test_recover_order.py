"""What several consumers of a channel had goes back consumer by consumer, as with RabbitMQ."""

from __future__ import annotations

import pytest

from harebell.front.common.recover_order import by_consumer
from harebell.front.common.unacked import Unacked
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish
from tests.unit.model.things import Taker, queue


def test_groups_stand_by_queue_and_by_tag_after_what_was_asked_for() -> None:
    first, second = queue("a"), queue("b")
    w, x = Taker(first, "w"), Taker(first, "x")
    other = Taker(second, "c")
    held = [(second, other), (first, x), (first, w), (first, None), (first, x), (second, None)]
    entries = [Unacked(of, by, at, at + 1) for at, (of, by) in enumerate(held)]
    tags = [[entry.tag for entry in group] for group in by_consumer(entries)]
    assert tags == [[4], [3], [2, 5], [6], [1]]
    assert by_consumer([]) == []
    assert by_consumer(entries[:1]) == [entries[:1]]


def delivered(peer: OctetPeer) -> list[tuple[str, int]]:
    """Consumer tags and delivery tags of what came."""
    return [
        (method.consumer_tag, method.delivery_tag)
        for method in peer.methods()
        if isinstance(method, m.BasicDeliver)
    ]


@pytest.mark.parametrize(
    "back", [m.BasicRecover(True), m.BasicRecoverAsync(True), m.BasicNack(0, True, True)]
)
def test_the_queue_is_served_after_each_consumer(back: m.Method) -> None:
    peer = World().peer()
    peer.ask(m.QueueDeclare("q"))
    for tag in ("x", "w"):
        peer.ask(m.BasicConsume("q", consumer_tag=tag))
    peer.give(publish(b"one", "q") + publish(b"two", "q"))
    assert delivered(peer) == [("x", 1), ("w", 2)]
    peer.send(back)
    bodies = [payload for kind, _, payload in peer.frames() if kind == 3]
    # The one of "w" goes first, to "x" whose turn it is.
    assert bodies == [b"two", b"one"]
