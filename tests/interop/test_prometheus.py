"""Prometheus reads a broker's metrics, and panels of RabbitMQ's dashboards have values."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError

import pika
import pytest

from tests.interop.prometheus import Prometheus, complaints, fetched, prometheus
from tests.interop.rabbitmq import RabbitNode
from tests.patience import SECONDS
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.management.metrics.parsing import Parsed, parse

FAMILIES = (
    *("queue_coarse_metrics", "queue_metrics", "queue_consumer_count", "queue_delivery_metrics"),
    *("exchange_metrics", "connection_coarse_metrics", "connection_metrics"),
    *("connection_churn_metrics", "channel_metrics", "channel_exchange_metrics"),
    *("channel_queue_metrics", "channel_queue_exchange_metrics", "channel_process_metrics"),
    *("node_coarse_metrics", "node_metrics", "node_persister_metrics", "auth_attempt_metrics"),
    *("vhost_status", "exchange_bindings", "exchange_names"),
)
OWN = ("harebell_queue_ages", "harebell_delivery_counts", "harebell_connection_blocked",
       "harebell_health")  # fmt: skip
BREAKDOWN = "metrics/memory-breakdown"
HOSTILE = ('a"b', "back\\slash", "\u202eleft", "a/b%2F..", "ö" * 127, "tab\t", "nul\0")


@pytest.fixture(scope="module")
def metrics_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(metrics_port: int) -> Iterator[RunningBroker]:
    with running_broker("--metrics-port", str(metrics_port)) as started:
        yield started


@contextmanager
def connected(port: int) -> Iterator[pika.BlockingConnection]:
    parameters = pika.ConnectionParameters("127.0.0.1", port, socket_timeout=SECONDS)
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection
    finally:
        connection.close()


def paths() -> list[str]:
    every = "&".join(f"family={family}" for family in (*FAMILIES, *OWN))
    return ["metrics", *[f"metrics/{p}" for p in ("per-object", f"detailed?{every}")], BREAKDOWN]


def document(port: int, path: str) -> str:
    status, content_type, body = fetched(f"http://127.0.0.1:{port}/{path}")
    assert (status, content_type) == (200, "text/plain; version=0.0.4")
    return body


def test_promtool_accepts_every_document_with_hostile_names(
    broker: RunningBroker, metrics_port: int
) -> None:
    with connected(broker.port) as connection:
        channel = connection.channel()
        for name in HOSTILE:
            channel.queue_declare(name, durable=True, arguments={"x-queue-type": "quorum"})
            channel.basic_publish("", name, b"body")
            method, _, _ = channel.basic_get(name)
            channel.basic_ack(method.delivery_tag)
            channel.basic_publish("", name, b"body")
        for path in paths():
            text = document(metrics_port, path)
            # What promtool would call otherwise are names of RabbitMQ.
            own = [line for line in complaints(text) if line.startswith("harebell_")]
            assert own == [], path
        found = parse(document(metrics_port, "metrics/per-object"))
        for name in HOSTILE:
            assert found.one("rabbitmq_queue_messages_ready", queue=name, vhost="/") == 1
            channel.queue_delete(name)


def test_the_probes_answer_without_a_login(broker: RunningBroker, metrics_port: int) -> None:
    for probe in ("live", "ready"):
        answer = fetched(f"http://127.0.0.1:{metrics_port}/health/{probe}")
        assert answer == (200, "application/json", '{"status":"ok"}')
    with pytest.raises(HTTPError, match="404"):
        fetched(f"http://127.0.0.1:{metrics_port}/api/overview")


IDENTITY = (
    "* on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) "
    'rabbitmq_identity_info{rabbitmq_endpoint="aggregated"}'
)
RATES = (
    "received", "confirmed", "routed", "received_confirm", "unroutable_dropped",
    "delivered", "redelivered", "acknowledged", "delivered_consume_auto_ack",
    "delivered_consume_manual_ack", "delivered_get_auto_ack", "delivered_get_manual_ack",
    "get_empty", "unroutable_returned",
)  # fmt: skip
GAUGES = (
    "queue_messages_ready", "queue_messages_unacked", "connections", "channels", "consumers",
    "queues", "global_publishers", "global_consumers", "process_open_fds", "process_max_fds",
    "process_resident_memory_bytes", "resident_memory_limit_bytes", "disk_space_available_bytes",
    "disk_space_available_limit_bytes", "erlang_uptime_seconds", "process_open_tcp_sockets",
)  # fmt: skip
CHURN = ("connections_opened", "connections_closed", "channels_opened", "channels_closed",
         "queues_declared", "queues_created", "queues_deleted")  # fmt: skip


def test_a_prometheus_scrapes_a_broker_under_load_and_the_panels_have_values(
    broker: RunningBroker, metrics_port: int, tmp_path: Path
) -> None:
    with (
        prometheus(tmp_path, metrics_port) as server,
        connected(broker.port) as connection,
    ):
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("panels")
        channel.basic_qos(prefetch_count=10)
        channel.basic_consume("panels", lambda c, m, p, b: None)
        until = time.monotonic() + SECONDS
        # Two samples of a counter are needed for a rate.
        while not rates(server, "received"):
            for _ in range(50):
                channel.basic_publish("", "panels", b"x" * 150)
            connection.process_data_events(0.1)
            assert time.monotonic() < until, server.targets()
        for target in server.targets():
            assert target["health"] == "up", target
        node = ""
        for name in GAUGES:
            series = server.query(f"sum(rabbitmq_{name} {IDENTITY}) by(rabbitmq_node)")
            assert len(series) == 1, name
            node = series[0][0]["rabbitmq_node"]
        for name in RATES:
            assert len(rates(server, name)) == 1, name
        for name in CHURN:
            assert server.query(f"sum(rabbitmq_{name}_total {IDENTITY}) by(rabbitmq_node)"), name
        assert node.startswith("harebell@")
        versions = server.query(f"rabbitmq_build_info {IDENTITY}")
        assert len(versions) == 1
        cluster = versions[0][0]["rabbitmq_cluster"]
        assert cluster
        size = "histogram_quantile(0.5, sum(rate(rabbitmq_message_size_bytes_bucket[1m])) by (le))"
        (median,) = server.query(size)
        assert 100 < median[1] <= 1_000
        (ready,) = server.query('rabbitmq_detailed_queue_messages_ready{queue="panels"}')
        assert ready[1] > 0
        oldest = "harebell_detailed_queue_oldest_{}_message_age_seconds"
        (age,) = server.query(oldest.format("ready"))
        assert 0 <= age[1] < SECONDS
        (unacked,) = server.query(oldest.format("unacked"))
        assert unacked[1] >= age[1]
        assert server.query("harebell_event_loop_lag_seconds_count")[0][1] > 0
        channel.queue_delete("panels")


def rates(server: Prometheus, name: str) -> list[tuple[dict[str, str], float]]:
    """The rate of a global counter as a panel shows it: by node."""
    expression = (
        f"sum(rate(rabbitmq_global_messages_{name}_total[1m]) {IDENTITY}) by(rabbitmq_node)"
    )
    return server.query(expression)


# --- beside RabbitMQ ------------------------------------------------------------------------------

CHANGED = {
    f"rabbitmq_alarms_{what}": "gauge"
    for what in ("file_descriptor_limit", "free_disk_space_watermark", "memory_used_watermark")
}
"""Types that later versions of RabbitMQ have changed."""


def labels_of(found: Parsed) -> dict[str, set[frozenset[str]]]:
    """The names of the labels of each metric."""
    names: dict[str, set[frozenset[str]]] = {}
    for name, labels, _ in found.samples:
        names.setdefault(name, set()).add(frozenset(labels))
    return names


def test_names_types_and_values_are_those_of_rabbitmq(
    broker: RunningBroker, metrics_port: int
) -> None:
    scraped = free_port()
    settings = [f"prometheus.tcp.port = {scraped}", "prometheus.tcp.ip = 127.0.0.1"]
    node = RabbitNode(settings=settings, plugins=["rabbitmq_prometheus"])
    node.start()
    try:
        theirs = after_the_same_work(node.port, scraped)
    finally:
        node.stop()
    ours = after_the_same_work(broker.port, metrics_port)
    both = {name for name in theirs.types if name in ours.types}
    assert len(both) > 60
    for name in both:
        assert ours.types[name] == CHANGED.get(name, theirs.types[name]), name
    for name in (
        "rabbitmq_channel_messages_published_total",
        "rabbitmq_channel_messages_confirmed_total",
        "rabbitmq_channel_messages_unroutable_returned_total",
        "rabbitmq_channel_messages_unroutable_dropped_total",
        "rabbitmq_channel_get_ack_total",
        "rabbitmq_channel_get_empty_total",
        "rabbitmq_queues_declared_total",
        "rabbitmq_queues_created_total",
        "rabbitmq_queues_deleted_total",
        "rabbitmq_connections",
        "rabbitmq_channels",
        "rabbitmq_consumers",
    ):
        assert ours.one(name) == theirs.one(name), name
    for name in sorted(both):
        if name.startswith("rabbitmq_global_"):
            mine = sum(ours.values(name, protocol="amqp091"))
            assert mine == sum(theirs.values(name, protocol="amqp091")), name
    mine, other = labels_of(ours), labels_of(theirs)
    for name in ("rabbitmq_global_messages_received_total", "rabbitmq_global_publishers"):
        assert mine[name] == other[name], name
    (identity,) = other["rabbitmq_identity_info"]
    assert identity <= next(iter(mine["rabbitmq_identity_info"]))
    (build,) = other["rabbitmq_build_info"]
    assert build <= next(iter(mine["rabbitmq_build_info"]))


def after_the_same_work(port: int, scraped: int) -> Parsed:
    """The metrics after the same work on a fresh connection, without what was there before."""
    before = parse(document_of(scraped))
    with connected(port) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        channel.queue_declare("q")
        channel.queue_declare("gone")
        channel.queue_delete("gone")
        channel.exchange_declare("ex", "fanout")
        channel.queue_bind("q", "ex")
        for _ in range(7):
            channel.basic_publish("", "q", b"body")
            channel.basic_publish("ex", "", b"body")
        channel.basic_publish("", "nowhere", b"body")
        with pytest.raises(pika.exceptions.UnroutableError):
            channel.basic_publish("", "nowhere", b"body", mandatory=True)
        method, _, _ = channel.basic_get("q")
        channel.basic_nack(method.delivery_tag)
        method, _, _ = channel.basic_get("q")
        channel.basic_ack(method.delivery_tag)
        channel.basic_get("q", auto_ack=True)
        channel.basic_qos(prefetch_count=5)
        got: list[int] = []
        channel.basic_consume("q", lambda c, m, p, b: got.append(m.delivery_tag))
        while len(got) < 5:
            connection.process_data_events(0.1)
        channel.basic_ack(got[0])
        channel.basic_qos(prefetch_count=5)
        until = time.monotonic() + SECONDS
        # RabbitMQ gathers what its processes count every few seconds, also in the middle of this
        # work: everything is there when the acknowledgement is, which comes last.
        counts = {
            "rabbitmq_channel_messages_published_total": 16,
            "rabbitmq_channel_messages_acked_total": 2,
        }
        while True:
            found = parse(document_of(scraped))
            if all(change(before, found, name) == count for name, count in counts.items()):
                break
            assert time.monotonic() < until
            time.sleep(0.2)
        channel.queue_delete("q")
        channel.exchange_delete("ex")
    samples = [
        (name, labels, value - sum(before.values(name, **labels)))
        if found.types.get(name) == "counter"
        else (name, labels, value)
        for name, labels, value in found.samples
    ]
    return Parsed(found.types, samples)


def change(before: Parsed, after: Parsed, name: str) -> float:
    return sum(after.values(name)) - sum(before.values(name))


def document_of(port: int) -> str:
    """The metrics of the broker, without those of RabbitMQ's runtime and web server."""
    _, _, body = fetched(f"http://127.0.0.1:{port}/metrics")
    own = ("rabbitmq_", "harebell_", "# TYPE rabbitmq_", "# HELP rabbitmq_")
    own = (*own, "# TYPE harebell_", "# HELP harebell_")
    return "".join([f"{line}\n" for line in body.split("\n") if line.startswith(own)])
