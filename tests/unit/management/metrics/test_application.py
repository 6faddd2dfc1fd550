"""The metrics port: documents with true values, filters, probes, and short slices."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import quote

import pytest

from harebell.admin.node import Certificate, Listening
from harebell.management.http.connections import Turns
from harebell.management.limits import METRICS_LINES_PER_SLICE, METRICS_SCRAPES
from harebell.management.metrics.application import MetricsApplication, SharedDocument
from harebell.management.metrics.families import EMPTY, FAMILIES
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, publish
from tests.unit.management.metrics.asking import Asked
from tests.unit.model.queue.logs import PreparedLog

HOSTILE = ['a"b', "back\\slash", "line\nfeed", "\u202eleft", "a/b%2F..", "ö" * 127]


def test_a_document_is_made_once_for_all_who_have_asked_before_it_was_begun() -> None:
    begun = []

    async def begin(turn: Callable[[], Awaitable[None]]) -> AsyncGenerator[bytes]:
        begun.append(None)
        await turn()
        yield b"%d" % len(begun)

    async def ask() -> list[bytes]:
        shared = SharedDocument(begin)
        first = asyncio.ensure_future(shared.made(turns.turn))
        while not begun:
            await asyncio.sleep(0)
        later = [asyncio.ensure_future(shared.made(turns.turn)) for _ in range(100)]
        return [await each for each in (first, *later)]

    turns = Turns()
    assert asyncio.run(ask()) == [b"1"] + [b"2"] * 100


def test_sums_are_those_of_all_queues_and_channels() -> None:
    asked = Asked()
    peer = asked.world.peer()
    for name in ("a", "b"):
        peer.ask(m.QueueDeclare(name))
        for _ in range(3):
            peer.give(publish(b"body", key=name))
    peer.send(m.BasicConsume("a", "tag"))
    peer.methods()
    found = asked.metrics()
    assert found.one("rabbitmq_queue_messages_ready") == 3
    assert found.one("rabbitmq_queue_messages_unacked") == 3
    assert found.one("rabbitmq_queue_messages") == 6
    assert found.one("rabbitmq_queues") == 2
    assert found.one("rabbitmq_consumers") == 1
    assert found.one("rabbitmq_connections") == 1
    assert found.one("rabbitmq_channels") == 1
    assert found.one("rabbitmq_channel_messages_unacked") == 3
    assert found.one("rabbitmq_queues_created_total") == 2
    assert found.one("rabbitmq_global_messages_received_total", protocol="amqp091") == 6
    assert found.one("rabbitmq_global_messages_delivered_total", protocol="amqp091") == 3
    assert found.one("rabbitmq_global_publishers", protocol="amqp091") == 1
    assert found.one("rabbitmq_connection_incoming_bytes_total") > 0


def test_counters_stay_when_channels_and_connections_end() -> None:
    asked = Asked()
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(publish(b"body", key="q"))
    before = asked.metrics()
    peer.ask(m.ChannelClose(200, "", 0, 0))
    peer.connection.eof()
    after = asked.metrics()
    assert after.one("rabbitmq_connections") == 0
    assert after.one("rabbitmq_connections_closed_total") == 1
    for name, labels, value in before.samples:
        if before.types.get(name) == "counter":
            assert after.one(name, **labels) >= value, name
    assert after.one("rabbitmq_global_messages_received_total", protocol="amqp091") == 1


def test_every_other_metric_can_be_joined_with_the_identity() -> None:
    asked = Asked()
    for path, endpoint in (
        ("/metrics", "aggregated"),
        ("/metrics/per-object", "per-object"),
        ("/metrics/detailed", "detailed"),
        ("/metrics/memory-breakdown", "memory-breakdown"),
    ):
        found = asked.metrics(path)
        assert found.values("rabbitmq_identity_info", rabbitmq_endpoint=endpoint) == [1.0]
        labels = next(each for name, each, _ in found.samples if name == "rabbitmq_identity_info")
        assert labels["rabbitmq_node"].startswith("harebell@")
        assert labels["rabbitmq_cluster"]
        assert found.values("rabbitmq_build_info", rabbitmq_version="3.13.7") == [1.0]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_queue_is_found_by_its_name_whatever_is_in_it(name: str) -> None:
    asked = Asked()
    # Not over AMQP, where line feeds are taken out of names.
    asked.world.broker.vhosts["/"].declare_queue(name)
    found = asked.metrics("/metrics/per-object")
    assert found.one("rabbitmq_queue_messages_ready", vhost="/", queue=name) == 0
    found = asked.metrics("/metrics/detailed", "family=queue_coarse_metrics")
    assert found.one("rabbitmq_detailed_queue_messages_ready", vhost="/", queue=name) == 0
    info = found.one("rabbitmq_detailed_queue_info", queue=name, queue_type="rabbit_classic_queue")
    assert info == 1


def test_families_vhosts_and_queues_are_chosen() -> None:
    asked = Asked()
    asked.world.broker.add_vhost("other").declare_queue("orders")
    peer = asked.world.peer()
    for name in ("orders", "orders.dead", "mail"):
        peer.ask(m.QueueDeclare(name))
    family = "family=queue_coarse_metrics"
    name = "rabbitmq_detailed_queue_messages_ready"

    def queues(query: str) -> list[tuple[str, str]]:
        found = asked.metrics("/metrics/detailed", query)
        return [
            (labels["vhost"], labels["queue"])
            for sample, labels, _ in found.samples
            if sample == name
        ]

    assert len(queues(family)) == 4
    assert queues(f"{family}&vhost=other") == [("other", "orders")]
    assert queues(f"{family}&vhost=other&vhost={quote('/', safe='')}") == queues(family)
    assert queues(f"{family}&vhost=missing") == []
    assert queues(f"{family}&queue=^orders") == [
        ("/", "orders"),
        ("/", "orders.dead"),
        ("other", "orders"),
    ]
    assert queues("family=vhost_status") == []
    both = asked.metrics("/metrics/detailed", "family=queue_metrics&family=queue_consumer_count")
    assert len(both.values("rabbitmq_detailed_queue_consumers")) == 4


def test_channels_are_counted_by_exchange_and_by_queue() -> None:
    asked = Asked()
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.ConfirmSelect())
    peer.ask(m.ExchangeDeclare("all", "fanout"))
    for exchange in ("", "", "all"):
        peer.give(publish(b"body", exchange=exchange, key="q"))
    peer.send(m.BasicGet("q", no_ack=True))
    peer.methods()
    published = asked.metrics("/metrics/detailed", "family=channel_exchange_metrics")
    name = "rabbitmq_detailed_channel_messages_published_total"
    assert published.one(name, exchange="", vhost="/") == 2
    assert published.one(name, exchange="all", vhost="/") == 1
    dropped = "rabbitmq_detailed_channel_messages_unroutable_dropped_total"
    assert published.one(dropped, exchange="all") == 1
    delivered = asked.metrics("/metrics/detailed", "family=channel_queue_metrics")
    assert delivered.one("rabbitmq_detailed_channel_get_total", queue="q", vhost="/") == 1
    other = asked.metrics("/metrics/detailed", "family=channel_queue_metrics&vhost=other")
    assert other.values("rabbitmq_detailed_channel_get_total") == []


def test_dead_letters_are_counted_by_type_strategy_and_reason() -> None:
    asked = Asked()
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("dead"))
    away = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.ask(m.QueueDeclare("short", arguments={**away, "x-max-length": 1}))
    for _ in range(3):
        peer.give(publish(b"body", key="short"))
    peer.ask(m.BasicGet("short"))
    peer.send(m.BasicReject(1, requeue=False))
    quorum = {**away, "x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once"}
    quorum["x-overflow"] = "reject-publish"
    peer.ask(m.QueueDeclare("sure", durable=True, arguments=quorum))
    peer.give(publish(b"body", key="sure"))
    peer.ask(m.BasicGet("sure"))
    peer.send(m.BasicReject(2, requeue=False))
    found = asked.metrics()
    name = "rabbitmq_global_messages_dead_lettered_"
    classic = {"queue_type": "rabbit_classic_queue", "dead_letter_strategy": "at_most_once"}
    sure = {"queue_type": "rabbit_quorum_queue", "dead_letter_strategy": "at_least_once"}
    assert found.one(f"{name}maxlen_total", **classic) == 2
    assert found.one(f"{name}rejected_total", **classic) == 1
    assert found.one(f"{name}expired_total", **classic) == 0
    assert found.one(f"{name}rejected_total", **sure) == 1
    assert found.one(f"{name}confirmed_total", **sure) == 1


KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"x-max-priority": 5},
    {"x-max-priority": 255, "x-message-deduplication": True},
    {"x-message-deduplication": True},
    {"x-group-key": "k"},
    {"x-queue-mode": "lazy"},
    {"x-queue-type": "quorum"},
    {
        "x-queue-type": "quorum",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    },
)


def test_no_sample_is_there_twice_whatever_kinds_of_queues_have_dead_letters() -> None:
    asked = Asked()
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("dead"))
    peer.ask(m.QueueDeclare("s", durable=True, arguments={"x-queue-type": "stream"}))
    away = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    for number, arguments in enumerate(KINDS):
        name = f"q{number}"
        durable = "x-queue-type" in arguments
        peer.ask(m.QueueDeclare(name, durable=durable, arguments={**away, **arguments}))
        peer.give(publish(b"body", key=name))
        peer.ask(m.BasicGet(name))
        peer.send(m.BasicReject(number + 1, requeue=False))
    for version in ("0-9-1", "mqtt", "stomp"):
        asked.world.registry.count_login(version, failed=True)
    everything = "&".join(f"family={family}" for family in FAMILIES)
    for path, query in (
        *(("/metrics", ""), ("/metrics/per-object", ""), ("/metrics/memory-breakdown", "")),
        ("/metrics/detailed", everything),
    ):
        # Reading a document fails if a sample or a family is there twice.
        assert asked.metrics(path, query).samples, path
    found = asked.metrics()
    rejected = "rabbitmq_global_messages_dead_lettered_rejected_total"
    types = ("rabbit_classic_queue", "at_most_once"), ("rabbit_quorum_queue", "at_most_once")
    assert [
        found.one(rejected, queue_type=name, dead_letter_strategy=strategy)
        for name, strategy in (*types, ("rabbit_quorum_queue", "at_least_once"))
    ] == [6, 1, 1]
    assert found.one("rabbitmq_auth_attempts_failed_total", protocol="unknown") == 2


def test_connections_of_one_name_are_written_once() -> None:
    asked = Asked(per_object=True)
    for _ in range(2):
        asked.world.peer().ask(m.QueueDeclare("q"))
    names = {each.peer.connection_name for each in asked.world.registry.connections}
    assert len(names) == 1
    found = asked.metrics()
    assert len(found.values("rabbitmq_connection_channels")) == 1


def test_connections_are_counted_by_the_reason_of_their_end() -> None:
    asked = Asked()
    world = asked.world
    world.peer().ask(m.ConnectionClose(200, "", 0, 0), channel=0)
    world.peer().connection.eof()
    world.peer().connection.force_close("by hand", world.now)
    world.peer().send(m.ConnectionTuneOk(0, 0, 0), channel=0)
    silent = world.peer()
    silent.connection.heartbeat = 10
    silent.connection.tick(world.now + 100)
    found = asked.metrics()
    ends = {
        labels["reason"]: value
        for name, labels, value in found.samples
        if name == "harebell_connections_closed_by_reason_total"
    }
    assert ends == {"client": 1, "lost": 1, "forced": 1, "error": 1, "heartbeat": 1}
    assert found.one("rabbitmq_connections_closed_total") == 5


def test_the_end_of_each_certificate_is_there_by_listener() -> None:
    asked = Asked()
    for port in (5671, 15671):
        listening = Listening("amqp/ssl", "0.0.0.0", port, ("server.pem",))
        asked.certificates.append((listening, Certificate("server.pem", 1_900_000_000)))
    found = asked.metrics()
    name = "harebell_certificate_expiry_timestamp_seconds"
    assert found.one(name, port="5671", file="server.pem") == 1_900_000_000
    assert len(found.values(name)) == 2


def test_logins_over_http_are_counted_by_address_and_user() -> None:
    asked = Asked()
    for succeeded in (True, False, False):
        asked.source.login_attempts.count("http", "10.0.0.1", 'a"da', succeeded=succeeded)
    found = asked.metrics("/metrics/detailed", "family=auth_attempt_detailed_metrics")
    name = "rabbitmq_detailed_auth_attempts_detailed"
    source = {"protocol": "http", "remote_address": "10.0.0.1", "username": 'a"da'}
    assert found.one(f"{name}_total", **source) == 3
    assert found.one(f"{name}_succeeded_total", **source) == 1
    assert found.one(f"{name}_failed_total", **source) == 2


def test_every_family_can_be_asked_for_and_an_unknown_one_is_named() -> None:
    asked = Asked()
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(publish(b"body", key="q"))
    peer.send(m.BasicGet("q"))
    peer.methods()
    quorum = {"x-queue-type": "quorum"}
    peer.ask(m.QueueDeclare("counted", durable=True, arguments=quorum))
    asked.source.login_attempts.count("http", "10.0.0.1", "ada", succeeded=True)
    listening = Listening("amqp/ssl", "0.0.0.0", 5671, ("server.pem",))
    asked.certificates.append((listening, Certificate("server.pem", 1_900_000_000)))
    # The log in memory keeps no times, from which ages come, and is in no database.
    for family in FAMILIES.keys() - {"harebell_queue_ages", "harebell_storage"}:
        found = asked.metrics("/metrics/detailed", f"family={family}")
        assert len(found.samples) > 2, family
    for family in EMPTY:
        assert len(asked.metrics("/metrics/detailed", f"family={family}").samples) == 2
    _, _, body = asked.ask("/metrics/detailed", "family=nonsense%0Ax 1")
    assert "# unknown family 'nonsense\\nx 1'\n" in body


def test_a_pattern_that_is_none_is_refused_by_name() -> None:
    status, _, body = Asked().ask("/metrics/detailed", "queue=(")
    assert status == 400
    assert json.loads(body)["error"] == "bad_request"
    assert json.loads(body)["reason"].startswith("queue: '(' is not a regular expression")


def test_an_age_is_the_time_since_the_oldest_message_arrived() -> None:
    asked = Asked()
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("q"))
    queue: Any = asked.world.broker.vhosts["/"].queues["q"]
    # The log of the store in memory keeps no times.
    queue.order.log = PreparedLog(asked.world.clock)
    for passed in (40_000, 20_000, 0):
        peer.give(publish(b"body", key="q"))
        asked.world.clock.advance(passed)
    found = asked.metrics("/metrics/per-object")
    assert found.one("harebell_queue_oldest_ready_message_age_seconds", queue="q") == 60.0
    assert found.values("harebell_queue_oldest_unacked_message_age_seconds") == []
    peer.send(m.BasicGet("q"))
    found = asked.metrics("/metrics")
    assert found.one("harebell_queue_oldest_ready_message_age_seconds") == 20.0
    assert found.one("harebell_queue_oldest_unacked_message_age_seconds") == 60.0
    peer.send(m.BasicAck(1))
    found = asked.metrics("/metrics/detailed", "family=harebell_queue_ages")
    assert found.values("harebell_detailed_queue_oldest_unacked_message_age_seconds") == []
    assert found.one("harebell_detailed_queue_oldest_ready_message_age_seconds") == 20.0


def test_the_time_that_connections_are_blocked_is_there_by_name_and_in_total() -> None:
    asked = Asked(World(watermark=10_000))
    peer = asked.world.peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(publish(b"x" * 12_000, key="q"))
    asked.world.clock.advance(2_500)
    name = peer.connection.peer.connection_name
    found = asked.metrics("/metrics/per-object")
    assert found.one("harebell_connection_blocked_seconds_total", channel=name) == 2.5
    found = asked.metrics()
    assert found.one("harebell_connections_blocked") == 1
    assert found.one("harebell_connections_blocked_seconds_total") == 2.5
    assert found.one("rabbitmq_alarms_memory_used_watermark") == 1
    assert found.one("rabbitmq_alarms_free_disk_space_watermark") == 0


def test_failed_deliveries_are_counted_when_a_message_leaves_a_queue_that_counts_them() -> None:
    asked = Asked()
    peer = asked.world.peer()
    limited = {"x-queue-type": "quorum", "x-delivery-limit": 2}
    peer.ask(m.QueueDeclare("counted", durable=True, arguments=limited))
    peer.ask(m.QueueDeclare("classic"))
    for key, bodies in (("counted", 4), ("classic", 1)):
        for _ in range(bodies):
            peer.give(publish(b"body", key=key))
    tag = 0

    def take(queue: str) -> int:
        nonlocal tag
        tag += 1
        peer.send(m.BasicGet(queue))
        return tag

    peer.send(m.BasicAck(take("counted")))  # without a failure
    peer.send(m.BasicAck(take("classic")))  # a classic queue does not count
    peer.send(m.BasicReject(take("counted"), requeue=False))
    first, second = take("counted"), take("counted")
    peer.send(m.BasicReject(first, requeue=True))
    peer.send(m.BasicAck(take("counted")))  # one failure
    peer.send(m.BasicReject(second, requeue=True))
    for _ in range(2):
        peer.send(m.BasicReject(take("counted"), requeue=True))
    assert asked.metrics().one("rabbitmq_queue_messages") == 0
    found = asked.metrics("/metrics/per-object")
    assert found.values("harebell_queue_delivery_count_count") == [4]
    name = "harebell_queue_delivery_count_bucket"
    cumulative = {"0": 2, "1": 3, "2": 4, "+Inf": 4}
    for bound, count in cumulative.items():
        assert found.one(name, queue="counted", le=bound) == count, bound
    peer.send(m.QueueDelete("counted"))
    found = asked.metrics()
    assert [found.one(name, le=bound) for bound in cumulative] == list(cumulative.values())


def test_sizes_copies_and_confirms_are_counted_by_protocol() -> None:
    asked = Asked()
    peer = asked.world.peer()
    for queue in ("a", "b"):
        peer.ask(m.QueueDeclare(queue))
        peer.ask(m.QueueBind(queue, "amq.fanout", ""))
    peer.give(publish(b"x" * 100, exchange="amq.fanout"))
    peer.ask(m.ConfirmSelect())
    peer.give(publish(b"x" * 101, key="a"))
    peer.give(publish(b"", key="missing"))
    peer.methods()
    found = asked.metrics()
    for name, value in (
        ("rabbitmq_global_messages_received_total", 3),
        ("rabbitmq_global_messages_received_confirm_total", 2),
        ("rabbitmq_global_messages_confirmed_total", 2),
        ("rabbitmq_global_messages_routed_total", 3),
        ("rabbitmq_global_messages_unroutable_dropped_total", 1),
        ("rabbitmq_message_size_bytes_count", 3),
        ("rabbitmq_message_size_bytes_sum", 201),
    ):
        assert found.one(name, protocol="amqp091") == value, name
    assert found.one("rabbitmq_message_size_bytes_bucket", protocol="amqp091", le="100") == 2
    assert found.one("rabbitmq_message_size_bytes_bucket", protocol="amqp091", le="1000") == 3


def test_logins_are_counted_by_protocol() -> None:
    asked = Asked()
    asked.world.peer()
    with pytest.raises(AssertionError):
        asked.world.connect().log_in({}, user=b"stranger")
    asked.source.login_attempts.count("http", "127.0.0.1", "guest", succeeded=False)
    found = asked.metrics()
    for protocol, total, failed in (("amqp091", 2, 1), ("http", 1, 1)):
        assert found.one("rabbitmq_auth_attempts_total", protocol=protocol) == total
        assert found.one("rabbitmq_auth_attempts_failed_total", protocol=protocol) == failed
        succeeded = found.one("rabbitmq_auth_attempts_succeeded_total", protocol=protocol)
        assert succeeded == total - failed


def test_syncs_of_both_threads_are_one_histogram() -> None:
    asked = Asked()
    asked.syncs.observe(0.002)
    asked.late_syncs.observe(0.3)
    found = asked.metrics()
    assert found.one("harebell_sync_duration_seconds_count") == 2
    assert found.one("harebell_sync_duration_seconds_bucket", le="0.0025") == 1
    assert found.one("rabbitmq_io_sync_ops_total") == 2
    assert found.one("rabbitmq_io_sync_time_seconds_total") == pytest.approx(0.302)


def test_the_figures_of_the_node_are_there() -> None:
    found = Asked().metrics()
    assert found.one("rabbitmq_erlang_uptime_seconds") == 60.0
    assert found.one("rabbitmq_disk_space_available_bytes") == 5_000
    assert found.one("rabbitmq_disk_space_available_limit_bytes") == 50
    assert found.one("rabbitmq_process_max_tcp_sockets") == 700
    assert found.one("rabbitmq_process_resident_memory_bytes") > 1_000_000
    assert 0 < found.one("rabbitmq_process_open_fds") <= found.one("rabbitmq_process_max_fds")


def test_a_broker_is_live_and_ready_until_it_is_in_trouble() -> None:
    asked = Asked()
    for path in ("/health/live", "/health/ready", "/health/ready/"):
        assert asked.ask(path) == (200, "application/json", '{"status":"ok"}')
    asked.trouble = "the broker is stopping"
    assert asked.ask("/health/live")[0] == 200
    status, _, body = asked.ask("/health/ready")
    assert status == 503
    assert json.loads(body) == {"status": "failed", "reason": "the broker is stopping"}


def test_other_paths_and_methods_are_refused_with_a_reason() -> None:
    asked = Asked()
    status, _, body = asked.ask("/metric")
    assert status == 404
    assert "/metrics/detailed" in json.loads(body)["reason"]
    assert asked.ask("/metrics", method="POST")[0] == 405
    assert asked.ask("/metrics/", method="HEAD") == (200, "text/plain; version=0.0.4", "")
    assert asked.ask("/health/live", method="HEAD")[2] == ""


def test_the_plain_path_has_objects_where_that_is_configured() -> None:
    asked = Asked(per_object=True)
    asked.world.peer().ask(m.QueueDeclare("q"))
    assert asked.metrics().one("rabbitmq_queue_messages_ready", queue="q") == 0


def test_a_scrape_of_many_queues_does_little_between_two_turns_of_the_loop() -> None:
    asked = Asked()
    vhost = asked.world.broker.vhosts["/"]
    for number in range(2_000):
        vhost.declare_queue(f"q{number}")
    looked = 0
    limit = 0

    for piece in asked.scraper.per_object():
        looked += 1
        limit = max(limit, piece.count(b"\n"))
    assert limit <= METRICS_LINES_PER_SLICE + 2
    # 2,000 queues with about 20 values each, 500 values a slice, and then their text.
    assert looked > 80


def test_a_scrape_ends_when_its_client_has_gone_and_one_address_has_few_of_them() -> None:
    steps = 0

    class Endless:
        """A document that never ends."""

        aggregated = detailed = memory = None

        def per_object(self) -> Iterator[bytes]:
            """Yield lines."""
            nonlocal steps
            while True:
                steps += 1
                yield b"a 1\n"

    async def ask() -> tuple[int, int, int]:
        app = MetricsApplication(cast(Any, Endless()), lambda: "")
        connections = [SimpleNamespace(turns=Turns(), gone=False) for _ in range(12)]
        started: list[str] = []

        def asked(address: str, connection: SimpleNamespace) -> asyncio.Task[None]:
            async def send(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    started.append(address)

            scope = {
                "type": "http",
                "method": "GET",
                "path": "/metrics/per-object",
                "client": (address, 1),
                "state": {"connection": connection},
            }
            return asyncio.ensure_future(app(scope, cast(Any, None), send))

        tasks = [asked("10.0.0.1", each) for each in connections[:-1]]
        tasks.append(asked("10.0.0.2", connections[-1]))
        for _ in range(50):
            await asyncio.sleep(0)
        first = started.count("10.0.0.1"), started.count("10.0.0.2")
        for each in connections:
            each.gone = True
        await asyncio.gather(*tasks)
        done = steps
        for _ in range(50):
            await asyncio.sleep(0)
        return *first, steps - done

    assert asyncio.run(ask()) == (METRICS_SCRAPES, 1, 0)
    assert steps > METRICS_SCRAPES


def test_a_queue_that_is_deleted_during_a_scrape_is_left_out() -> None:
    asked = Asked()
    vhost = asked.world.broker.vhosts["/"]
    for number in range(1_000):
        vhost.declare_queue(f"q{number}")
    steps = asked.scraper.per_object()
    text = [next(steps) for _ in range(3)]
    for number in range(500, 1_000):
        vhost.delete_queue(f"q{number}", None)
    text += list(steps)
    assert b'queue="q1"' in b"".join(text)
