"""What monitoring tools read over HTTP, while pika publishes and consumes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pika
import pytest

from harebell.management.control.client import ask_command
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.management.http.asking import Api, segment


class Watched(NamedTuple):
    """A broker with its HTTP API.

    Args:
        broker: the broker.
        api: its HTTP API.
    """

    broker: RunningBroker
    api: Api


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    port = free_port()
    flags = ("--management-port", str(port), "--metrics-port", str(free_port()))
    with running_broker(*flags) as broker:
        yield Watched(broker, Api(port))


@pytest.fixture
def channel(watched: Watched) -> Iterator[pika.adapters.blocking_connection.BlockingChannel]:
    connection = pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", watched.broker.port)
    )
    yield connection.channel()
    if connection.is_open:
        connection.close()


def test_rates_rise_with_the_traffic_and_fall_to_zero_after_it(
    watched: Watched, channel: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    channel.queue_declare("orders")
    path = "/api/queues/%2F/orders"

    def flows() -> bool:
        channel.basic_publish("", "orders", b"x")
        channel.basic_get("orders", auto_ack=True)
        stats = watched.api.get(path)["message_stats"]
        rates = (stats["publish_details"]["rate"], stats["deliver_get_details"]["rate"])
        return min(rates) > 0

    assert eventually(flows)
    overview = watched.api.get("/api/overview?msg_rates_age=60&msg_rates_incr=5")
    published = overview["message_stats"]["publish_details"]
    assert published["rate"] > 0
    assert published["samples"][0]["sample"] > published["samples"][-1]["sample"] == 0

    def rests() -> bool:
        stats = watched.api.get(path)["message_stats"]
        return stats["publish_details"]["rate"] == 0 == stats["deliver_get_details"]["rate"]

    assert eventually(rests)
    queue = watched.api.get(path)
    assert queue["message_stats"]["publish"] == queue["message_stats"]["get_no_ack"] > 0


def test_keda_gets_a_page_with_what_it_scales_by(
    watched: Watched, channel: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    channel.queue_declare("jobs-1")
    channel.basic_publish("", "jobs-1", b"x")
    query = "page=1&use_regex=true&pagination=false&name=%5Ejobs&page_size=100"
    page = watched.api.get(f"/api/queues/%2F?{query}")
    assert (page["page_count"], [each["name"] for each in page["items"]]) == (1, ["jobs-1"])
    (queue,) = page["items"]
    assert (queue["messages"], queue["messages_unacknowledged"]) == (1, 0)
    assert queue["message_stats"]["publish_details"]["rate"] >= 0


def test_telegraf_zabbix_and_datadog_find_what_they_need(watched: Watched) -> None:
    overview = watched.api.get("/api/overview")
    assert {"message_stats", "queue_totals", "object_totals"} <= overview.keys()
    (node,) = watched.api.get("/api/nodes")
    assert {"disk_free", "fd_used", "mem_used", "run_queue", "uptime", "partitions"} <= node.keys()
    assert 0 < node["fd_used"] < node["fd_total"]
    assert node["mem_used"] > 10_000_000
    name = segment(overview["node"])
    assert watched.api.get(f"/api/nodes/{name}")["name"] == overview["node"]
    assert watched.api.get(f"/api/nodes/{name}/memory")["memory"]["total"]["rss"] > 10_000_000
    assert watched.api.get("/api/aliveness-test/%2F") == {"status": "ok"}
    assert watched.api.get("/api/healthchecks/node") == {"status": "ok"}
    assert watched.api.get("/api/health/checks/alarms") == {"status": "ok"}
    assert watched.api.get("/api/exchanges/%2F/amq.default")["name"] == ""


def test_every_listener_has_the_name_of_its_protocol(watched: Watched) -> None:
    overview = watched.api.get("/api/overview")
    protocols = {each["protocol"]: each["port"] for each in overview["listeners"]}
    assert protocols.keys() == {"amqp", "http", "http/prometheus"}
    assert protocols["amqp"] == watched.broker.port
    assert [each["port"] for each in overview["contexts"]] == [str(watched.api.port)]
    for name in ("amqp091", "http", "http/prometheus"):
        answer = watched.api.ask("GET", f"/api/health/checks/protocol-listener/{segment(name)}")
        assert answer.status == 200


def test_a_health_check_that_fails_is_503_with_its_reason(watched: Watched) -> None:
    port = free_port()
    answer = watched.api.ask("GET", f"/api/health/checks/port-listener/{port}")
    assert answer.status == 503
    assert answer.json["status"] == "failed"
    assert answer.json["missing"] == port
    assert watched.broker.port in answer.json["ports"]
    wrong = watched.api.ask("GET", "/api/health/checks/certificate-expiration/1/hours")
    assert (wrong.status, wrong.json["error"]) == (400, "bad_request")


def test_connections_and_channels_are_found_by_their_names(
    watched: Watched, channel: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    channel.queue_declare("watched")
    channel.basic_consume("watched", lambda *_: None, consumer_tag="c")
    # That of the test before may be there for a moment.
    assert eventually(lambda: len(watched.api.get("/api/connections")) == 1)
    name = watched.api.get("/api/connections")[0]["name"]
    connection = watched.api.get(f"/api/connections/{segment(name)}")
    assert connection["recv_oct"] > 100
    assert connection["client_properties"]["product"].startswith("Pika")
    (listed,) = watched.api.get(f"/api/connections/{segment(name)}/channels")
    found = watched.api.get(f"/api/channels/{segment(listed['name'])}")
    assert [each["consumer_tag"] for each in found["consumer_details"]] == ["c"]
    (consumer,) = watched.api.get("/api/consumers")
    assert consumer["queue"] == {"name": "watched", "vhost": "/"}
    missing = watched.api.ask("GET", "/api/channels/none")
    assert missing.status == 404


def test_a_user_without_the_tag_monitoring_sees_its_own_work_only(
    watched: Watched, channel: pika.adapters.blocking_connection.BlockingChannel
) -> None:
    new = {"name": "manager", "password": "p", "tags": ["management"]}
    ask_command(watched.broker.data_dir, "users.add", new)
    everything = {"user": "manager", "vhost": "/", "configure": "", "write": "", "read": ".*"}
    ask_command(watched.broker.data_dir, "permissions.set", everything)
    user = "manager:p"
    channel.queue_declare("seen")
    assert watched.api.get("/api/connections", user=user) == []
    assert watched.api.get("/api/channels", user=user) == []
    channel.basic_consume("seen", lambda *_: None, consumer_tag="s")
    # That of the test before may be there for a moment.
    assert eventually(lambda: len(watched.api.get("/api/consumers", user=user)) == 1)
    (consumer,) = watched.api.get("/api/consumers", user=user)
    assert consumer["consumer_tag"] == "s"
    overview = watched.api.get("/api/overview", user=user)
    assert overview["listeners"] == []
    assert overview["object_totals"]["connections"] == 0
    assert overview["object_totals"]["queues"] > 0
    assert watched.api.ask("GET", "/api/nodes", user=user).status == 401
