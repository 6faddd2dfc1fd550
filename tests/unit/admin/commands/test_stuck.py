"""A channel that holds deliveries while nothing happens on it for a minute is stuck."""

from __future__ import annotations

from typing import Any

from harebell.admin.limits import STUCK_SECONDS
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import OctetPeer, publish


def _holding(site: Site) -> OctetPeer:
    """A consumer with a delivery that it does not acknowledge."""
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.give(publish(b"x"))
    site.look()
    return peer


def _stuck(site: Site) -> tuple[Any, Any]:
    (channel,) = site.run("channels.list")
    (consumer,) = site.run("consumers.list")
    return channel["stuck_seconds"], consumer["stuck_seconds"]


def test_a_consumer_that_holds_a_delivery_is_stuck_after_a_minute() -> None:
    site = Site()
    peer = _holding(site)
    assert _stuck(site) == (None, None)
    site.look(STUCK_SECONDS)
    channel, consumer = _stuck(site)
    assert channel == consumer >= STUCK_SECONDS
    peer.give(publish(b"y"))
    assert _stuck(site) == (None, None)


def test_a_consumer_that_holds_nothing_is_not_stuck() -> None:
    site = Site()
    peer = _holding(site)
    peer.send(m.BasicAck(1))
    site.look()
    site.look(STUCK_SECONDS)
    assert _stuck(site) == (None, None)


def test_channels_have_the_name_of_their_client() -> None:
    site = Site()
    peer = _holding(site)
    peer.connection.client_properties = {"connection_name": "payments"}
    (row,) = site.run("channels.list")
    assert row["user_provided_name"] == "payments"
