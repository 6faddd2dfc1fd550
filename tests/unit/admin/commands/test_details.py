"""Lists of what passes between channels, exchanges and queues."""

from __future__ import annotations

from typing import Any

from harebell.admin.sampling_plan import DETAILED, NONE, SamplingPlan
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import OctetPeer, publish


def _busy(site: Site) -> tuple[OctetPeer, OctetPeer]:
    """A publisher with confirms to two exchanges, and a consumer of the queue `q`."""
    peer, other = site.world.peer(), site.world.connect("127.0.0.2")
    other.log_in({})
    other.ask(m.ChannelOpen())
    peer.send(m.QueueDeclare("q"))
    peer.send(m.ExchangeDeclare("events", "fanout"))
    peer.send(m.QueueBind(queue="q", exchange="events"))
    peer.send(m.ConfirmSelect())
    other.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    site.look()
    for number in range(10):
        peer.give(publish(b"x", exchange="events" if number % 5 == 4 else ""))
    other.send(m.BasicAck(4, True))
    site.look()
    return peer, other


def _channel(site: Site, peer: OctetPeer) -> dict[str, Any]:
    name = f"{peer.connection.peer.connection_name} (1)"
    found: dict[str, Any] = site.run("channels.show", name=name)
    return found


def test_a_channel_lists_the_exchanges_it_publishes_to() -> None:
    site = Site()
    peer, other = _busy(site)
    publishes = {
        each["exchange"]["name"]: each["stats"] for each in _channel(site, peer)["publishes"]
    }
    assert {name: (stats["publish"], stats["confirm"]) for name, stats in publishes.items()} == {
        "": (8, 8),
        "events": (2, 2),
    }
    assert publishes[""]["publish_details"] == publishes[""]["confirm_details"] == {"rate": 1.6}
    assert publishes["events"]["publish_details"] == {"rate": 0.4}
    assert _channel(site, other)["publishes"] == []


def test_a_channel_lists_the_queues_that_deliver_to_it() -> None:
    site = Site()
    peer, other = _busy(site)
    (delivery,) = _channel(site, other)["deliveries"]
    assert delivery["queue"] == {"name": "q", "vhost": "/"}
    stats = delivery["stats"]
    assert (stats["deliver"], stats["deliver_get"], stats["ack"]) == (10, 10, 4)
    assert (stats["deliver_details"], stats["ack_details"]) == ({"rate": 2.0}, {"rate": 0.8})
    assert _channel(site, peer)["deliveries"] == []


def test_an_exchange_lists_its_channels_and_its_queues() -> None:
    site = Site()
    peer, _ = _busy(site)
    default = site.run("exchanges.show", name="")
    (incoming,) = default["incoming"]
    assert incoming["channel_details"]["name"] == f"{peer.connection.peer.connection_name} (1)"
    assert (incoming["stats"]["publish"], incoming["stats"]["confirm"]) == (8, 8)
    (outgoing,) = default["outgoing"]
    assert outgoing["queue"] == {"name": "q", "vhost": "/"}
    assert outgoing["stats"] == {"publish": 8, "publish_details": {"rate": 1.6}}
    unused = site.run("exchanges.show", name="amq.topic")
    assert (unused["incoming"], unused["outgoing"]) == ([], [])


def test_a_queue_lists_its_exchanges_and_its_channels() -> None:
    site = Site()
    _, other = _busy(site)
    queue = site.run("queues.show", name="q")
    incoming = {each["exchange"]["name"]: each["stats"] for each in queue["incoming"]}
    assert incoming == {
        "": {"publish": 8, "publish_details": {"rate": 1.6}},
        "events": {"publish": 2, "publish_details": {"rate": 0.4}},
    }
    (delivery,) = queue["deliveries"]
    assert delivery["channel_details"]["name"] == f"{other.connection.peer.connection_name} (1)"
    assert delivery["stats"]["deliver_get_details"] == {"rate": 2.0}


def test_deleted_queues_and_closed_channels_are_not_listed() -> None:
    site = Site()
    peer, other = _busy(site)
    peer.send(m.ExchangeDelete("events"))
    assert [each["exchange"]["name"] for each in _channel(site, peer)["publishes"]] == [""]
    assert [each["exchange"]["name"] for each in site.run("queues.show", name="q")["incoming"]] == [
        ""
    ]
    peer.connection.eof()
    assert site.run("exchanges.show", name="")["incoming"] == []
    other.send(m.QueueDelete("q"))
    assert _channel(site, other)["deliveries"] == []


def test_samples_of_details_are_kept_in_the_mode_detailed_only() -> None:
    for mode, kept in (("basic", False), (DETAILED, True)):
        site = Site(SamplingPlan(rates_mode=mode))
        peer, _ = _busy(site)
        name = f"{peer.connection.peer.connection_name} (1)"
        channel = site.run("channels.show", name=name, msg_rates_age=10, msg_rates_incr=5)
        samples = channel["publishes"][0]["stats"]["publish_details"]["samples"]
        assert [each["sample"] for each in samples] == ([8, 0] if kept else [])


def test_in_the_mode_none_there_are_counters_and_no_rates() -> None:
    for plan in (SamplingPlan(rates_mode=NONE), SamplingPlan(collect=NONE)):
        site = Site(plan)
        _busy(site)
        queue = site.run("queues.show", name="q")
        assert queue["message_stats"]["publish"] == 10
        assert "publish_details" not in queue["message_stats"]
        assert queue["messages_details"] == {}
        assert site.run("overview.show")["rates_mode"] == plan.rates_mode
        assert site.run("nodes.list")[0]["rates_mode"] == plan.rates_mode
        assert site.run("connections.list")[0]["recv_oct_details"] == {}
