"""The overview: totals that are always there, and rates of real traffic."""

from __future__ import annotations

import re
from typing import Any

import pytest

from harebell.admin.context import CommandRefused
from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods import HistoryAsk, HistoryAskOk
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import publish


def test_a_fresh_broker_has_all_three_totals_with_zeros() -> None:
    overview = Site().run("overview.show")
    assert overview["queue_totals"]["messages"] == 0
    assert overview["object_totals"] == {
        "channels": 0,
        "connections": 0,
        "consumers": 0,
        "exchanges": len(Site().world.broker.vhosts["/"].exchanges),
        "queues": 0,
    }
    stats = overview["message_stats"]
    assert stats["publish"] == stats["deliver_get"] == stats["disk_reads"] == 0
    assert stats["publish_details"] == {"rate": 0.0}


def test_versions_are_what_tools_compare() -> None:
    overview = Site().run("overview.show")
    for name in ("management_version", "rabbitmq_version"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", overview[name])
    assert overview["product_name"] == "Harebell"
    assert [each["port"] for each in overview["listeners"]] == [5672, 15672]
    assert [each["port"] for each in overview["contexts"]] == ["15672"]


def test_rates_and_samples_follow_the_traffic_and_end_with_it() -> None:
    site = Site()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q"))
    site.look()
    for number in range(20):
        peer.give(publish(b"%d" % number))
    site.look()
    asked = {"lengths_age": 10, "lengths_incr": 5, "msg_rates_age": 10, "msg_rates_incr": 5}
    overview = site.run("overview.show", **asked)
    publishes = overview["message_stats"]["publish_details"]
    assert publishes["rate"] == 4.0
    assert [each["sample"] for each in publishes["samples"]] == [20, 0]
    assert publishes["avg_rate"] == 4.0
    totals = overview["queue_totals"]
    assert (totals["messages_ready"], totals["messages_ready_details"]["rate"]) == (20, 4.0)
    site.look()
    overview = site.run("overview.show")
    assert overview["message_stats"]["publish"] == 20
    assert overview["message_stats"]["publish_details"] == {"rate": 0.0}


def test_connections_and_queues_that_come_and_go_are_counted_with_rates() -> None:
    site = Site()
    site.look()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.connection.eof()
    site.look()
    churn = site.run("overview.show")["churn_rates"]
    assert churn["connection_created"] == churn["connection_closed"] == 1
    assert churn["queue_created_details"] == {"rate": 0.2}


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ({"lengths_age": 60}, "lengths_age and lengths_incr are used together"),
        ({"msg_rates_age": 0, "msg_rates_incr": 5}, "are no range"),
        ({"msg_rates_age": 10**9, "msg_rates_incr": 1}, "at most 10000 samples"),
    ],
)
def test_a_wrong_range_is_refused(ranges: dict[str, Any], text: str) -> None:
    with pytest.raises(CommandRefused, match=text):
        Site().run("overview.show", **ranges)


def test_a_queue_shows_its_consumers_and_their_deliveries() -> None:
    site = Site()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    site.look()
    peer.give(publish(b"1") + publish(b"2"))
    peer.send(m.BasicAck(1))
    site.look()
    queue = site.run("queues.show", vhost="/", name="q")
    assert queue["message_stats"]["deliver_get_details"]["rate"] == 0.4
    assert queue["idle_since"] is None
    assert [each["consumer_tag"] for each in queue["consumer_details"]] == ["c"]
    (delivery,) = queue["deliveries"]
    assert (delivery["stats"]["deliver"], delivery["stats"]["ack"]) == (2, 1)
    site.look()
    queue = site.run("queues.show", vhost="/", name="q")
    assert queue["idle_since"].endswith("+00:00")
    channel = site.run("channels.show", name=queue["deliveries"][0]["channel_details"]["name"])
    assert channel["message_stats"]["ack"] == 1
    assert channel["deliveries"][0]["queue"] == {"name": "q", "vhost": "/"}


def test_a_stream_shows_its_eras_and_another_queue_has_none_to_show() -> None:
    site = Site()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("s", durable=True, arguments={"x-queue-type": "stream"}))
    peer.ask(m.QueueDeclare("q"))
    asked = peer.ask(HistoryAsk("s"))
    assert isinstance(asked, HistoryAskOk)
    assert site.run("queues.show", vhost="/", name="s")["eras"] == asked.eras.decode()
    assert "eras" not in site.run("queues.show", vhost="/", name="q")


def test_the_timestamp_of_the_first_message_is_shown() -> None:
    from harebell.wire.v09.content import BasicProperties

    site = Site()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(publish(b"1", properties=BasicProperties(timestamp=1_700_000_000)))
    assert site.run("queues.show", name="q")["head_message_timestamp"] == 1_700_000_000


def test_a_missing_object_is_named() -> None:
    site = Site()
    for name, fields, text in (
        ("queues.show", {"name": "none"}, "no queue 'none'"),
        ("exchanges.show", {"name": "none"}, "no exchange 'none'"),
        ("connections.show", {"name": "none"}, "no connection 'none'"),
        ("channels.show", {"name": "none"}, "no channel 'none'"),
        ("nodes.show", {"name": "none"}, "no node 'none'"),
        ("channels.list", {"connection": "none"}, "no connection 'none'"),
    ):
        with pytest.raises(CommandRefused, match=text):
            site.run(name, **fields)


def test_the_parts_of_the_memory_add_up() -> None:
    memory = Site().run("nodes.memory", name="harebell@localhost")["memory"]
    parts = sum(value for value in memory.values() if isinstance(value, int))
    assert parts == memory["total"]["rss"] == 50_000_000


def test_the_samples_of_a_node_are_those_of_its_figures() -> None:
    site = Site()
    site.look()
    site.change(figures=site.facts.figures | {"fd_used": 80})
    site.look()
    asked = {"node_stats_age": 5, "node_stats_incr": 5}
    node = site.run("nodes.show", name="harebell@localhost", **asked)
    assert node["fd_used_details"]["rate"] == 10.0
    assert [each["sample"] for each in node["fd_used_details"]["samples"]] == [80, 30]
