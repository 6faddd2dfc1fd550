"""Each rule finds its trouble, and not what only looks like it; nothing comes and goes."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from harebell.admin.catalog import find
from harebell.admin.findings import ALARM, NODE, QUERY, QUEUE
from harebell.admin.node import Certificate, Listening
from harebell.config import Config
from harebell.front.common.blocked_publishers import Alarm
from harebell.management.health import rules, watch
from harebell.management.health.watch import Watch
from harebell.management.limits import FINDINGS_SHOWN, FINDINGS_SLICE_QUEUES
from harebell.model.queue.contract import Queue
from harebell.wire.v09 import methods as m
from tests.unit.management.health.watching import LOOK_SECONDS, Watched, words

DAY = 86_400


def grows(site: Watched, name: str, messages: int, looks: int) -> None:
    """So many messages more at each look."""
    for _ in range(looks):
        site.publish(name, messages)
        site.look()


# --- queues ---------------------------------------------------------------------------------------


def test_a_quiet_broker_has_no_findings() -> None:
    site = Watched()
    site.declare("q")
    site.declare("bounded", max_length=100)
    site.look_for(3_600)
    assert site.found == []


def test_messages_without_a_consumer_are_found_after_some_minutes_and_since_when() -> None:
    site = Watched(health_no_consumer_seconds=300)
    site.declare("q")
    site.publish("q", 3)
    site.look()
    begun = site.now
    site.look_for(300)
    assert site.found == []
    site.look()
    assert site.found == [("no-consumer", "q")]
    assert site.only.kind == QUEUE
    assert site.only.vhost == "/"
    assert site.only.why == "no consumer for 5 minutes; messages that wait: 3"
    identity = site.world.broker.vhosts["/"].queues["q"].identity
    assert site.only.generation == identity
    assert site.only.command == f"harebell queues purge --generation={identity} q"
    assert begun <= site.only.since <= begun + LOOK_SECONDS * 1_000
    site.consumer("q", prefetch=3)
    site.look(2)
    assert site.found == []


def test_a_queue_that_is_polled_or_empty_or_gets_dead_letters_needs_no_consumer() -> None:
    site = Watched(health_no_consumer_seconds=60)
    for name in ("polled", "empty", "dead"):
        site.declare(name)
    site.declare("q", dead_letter_exchange="", dead_letter_routing_key="dead")
    site.publish("polled", 100)
    site.publish("dead", 5)
    for _ in range(30):
        site.peer.send(m.BasicGet("polled", no_ack=True))
        site.peer.frames()
        site.look()
    assert site.found == []


def test_dead_letters_through_an_exchange_need_no_consumer() -> None:
    site = Watched(health_no_consumer_seconds=60)
    site.declare("dead")
    site.peer.ask(m.ExchangeDeclare("letters", "fanout"))
    site.peer.ask(m.QueueBind("dead", "letters"))
    site.declare("q", dead_letter_exchange="letters", max_length=1)
    site.publish("q", 4)
    site.consumer("q")
    site.look_for(600)
    assert site.found == []


def test_a_queue_that_grows_will_be_full_and_then_is_not_found_when_it_shrinks() -> None:
    site = Watched(health_full_minutes=60)
    site.declare("q", max_length=1_000)
    site.consumer("q")
    grows(site, "q", 20, 3)
    assert site.found == []
    grows(site, "q", 20, 10)
    assert site.found == [("queue-fills", "q")]
    assert site.only.why.startswith("it grows by 1.")
    assert "is full in 7 minutes: " in site.only.why
    assert site.only.why.endswith(" of 1,000 messages")
    site.look_for(600)
    assert ("queue-fills", "q") not in site.found


def test_a_queue_fills_by_its_bytes() -> None:
    site = Watched()
    site.declare("q", max_length_bytes=10_000)
    site.consumer("q")
    grows(site, "q", 50, 12)
    assert site.found == [("queue-fills", "q")]
    assert site.only.why.endswith(" of 10,000 bytes")


def test_a_full_queue_is_found_if_it_refuses_and_not_if_it_drops_the_oldest() -> None:
    site = Watched()
    site.declare("refuses", max_length=10, overflow="reject-publish")
    site.declare("drops", max_length=10)
    for name in ("refuses", "drops"):
        site.consumer(name)
    for _ in range(10):
        site.publish("refuses", 20)
        site.publish("drops", 20)
        site.look()
    assert site.found == [("queue-fills", "refuses")]
    assert site.only.why == "it is full, and refuses messages"


def test_consumers_that_hold_everything_are_found() -> None:
    site = Watched(health_held_seconds=120)
    site.declare("q")
    consumer = site.consumer("q", prefetch=5)
    site.publish("q", 20)
    site.look_for(120)
    assert site.found == []
    site.look(2)
    assert site.found == [("all-unacknowledged", "q")]
    assert site.only.why == (
        "its consumers hold 5 messages and have acknowledged none for 2 minutes, 15 wait"
    )
    consumer.send(m.BasicAck(0, multiple=True))
    site.look(2)
    assert site.found == []


def test_consumers_without_anything_that_waits_hold_nothing() -> None:
    site = Watched(health_held_seconds=60)
    site.declare("q")
    site.consumer("q", prefetch=5)
    site.publish("q", 5)
    site.look_for(600)
    assert site.found == []


def redeliver(site: Watched, consumer: object, times: int) -> None:
    peer = consumer
    for _ in range(times):
        peer.send(m.BasicNack(0, multiple=True, requeue=True))  # type: ignore[attr-defined]
        peer.frames()  # type: ignore[attr-defined]


def test_a_loop_of_redeliveries_is_found_and_a_burst_is_not() -> None:
    site = Watched(health_redeliveries_per_second=5)
    site.declare("q")
    consumer = site.consumer("q", prefetch=1)
    site.publish("q", 1)
    redeliver(site, consumer, 1_000)
    site.look()
    site.look_for(60)
    assert site.found == []
    for _ in range(3):
        redeliver(site, consumer, 100)
        site.look()
    assert site.found == [("redelivery-loop", "q")]
    assert site.only.why == "10 of 10 deliveries a second are redeliveries"
    # Near the threshold it stays.
    for _ in range(5):
        redeliver(site, consumer, 40)
        site.look()
    assert site.found == [("redelivery-loop", "q")]
    site.look(2)
    assert site.found == []


def test_the_oldest_message_is_found_when_it_is_older_than_usual() -> None:
    site = Watched(health_oldest_seconds=120)
    site.declare("q")
    consumer = site.consumer("q")
    site.publish("q", 100)
    for _ in range(14):
        consumer.send(m.BasicAck(0, multiple=True))
        consumer.frames()
        site.look()
    assert site.found == [("old-messages", "q")]
    assert site.only.why.startswith("the oldest message waits for 2 minutes; usual: ")
    assert site.now - site.only.since >= 120_000


def test_an_age_that_is_usual_for_a_queue_is_not_found() -> None:
    site = Watched(health_oldest_seconds=120)
    site.declare("q")
    consumer = site.consumer("q")
    site.publish("q", 20)
    # Each message waits for about 200 seconds, all day.
    for _ in range(DAY // LOOK_SECONDS):
        consumer.send(m.BasicAck(0, multiple=True))
        consumer.frames()
        site.publish("q", 1)
        site.look()
    assert site.found == []
    site.publish("q", 400)
    for _ in range(200):
        consumer.send(m.BasicAck(0, multiple=True))
        consumer.frames()
        site.look()
    assert site.found == [("old-messages", "q")]


def test_dead_letters_are_found_by_reason() -> None:
    site = Watched(health_dead_letters_per_minute=10)
    site.declare("dead")
    site.declare("q", dead_letter_exchange="", dead_letter_routing_key="dead", max_length=2)
    consumer = site.consumer("q", prefetch=5)
    for _ in range(6):
        site.publish("q", 10)
        consumer.send(m.BasicNack(0, multiple=True, requeue=False))
        consumer.frames()
        site.look()
    assert site.found == [("dead-letters", "q")]
    assert site.only.why.startswith("dead letters a minute by reason: ")
    assert "rejected 1" in site.only.why
    assert "maxlen 1" in site.only.why
    consumer.send(m.BasicCancel("c"))
    site.look_for(300)
    assert ("dead-letters", "q") not in site.found


def test_a_queue_in_which_messages_wait_for_a_retry_is_well() -> None:
    site = Watched(health_no_consumer_seconds=60, health_dead_letters_per_minute=10)
    site.declare("work")
    site.consumer("work", prefetch=0)
    retry = {"dead_letter_exchange": "", "dead_letter_routing_key": "work"}
    site.declare("retry", message_ttl=15_000, **retry)
    for _ in range(60):
        site.publish("retry", 10)
        site.look()
        site.world.broker.timers.run()
    assert site.found == []


# --- the node -------------------------------------------------------------------------------------


def test_blocked_publishers_are_found_at_once_and_since_when() -> None:
    site = Watched()
    site.world.registry.publishers.alarms["disk"] = Alarm(12_345, "5 bytes are free")
    site.look()
    assert site.found == [("blocked-publishers", "disk")]
    assert site.only.kind == ALARM
    assert site.only.since == 12_345
    assert site.only.why == "disk is short, so publishers are blocked (they wait): 5 bytes are free"


def test_memory_that_reaches_the_watermark_soon_is_found() -> None:
    site = Watched(watermark=1_000_000_000, health_trend_minutes=30)
    for second in range(8):
        site.world.gauge.set_resident(200_000_000 + second * 20_000_000)
        site.look()
    assert site.found == [("trend", "memory")]
    assert site.only.kind == NODE
    assert "MiB a second, and publishers are blocked in" in site.only.why
    site.look_for(300)
    assert site.found == []


def test_memory_that_jumps_once_is_not_found() -> None:
    site = Watched(watermark=1_000_000_000)
    site.world.gauge.set_resident(200_000_000)
    site.look_for(300)
    site.world.gauge.set_resident(260_000_000)
    site.look_for(300)
    assert site.found == []


def test_a_disk_that_fills_is_found() -> None:
    site = Watched()
    for _ in range(8):
        site.source.storage.free -= 100  # type: ignore[misc]
        site.look()
    assert site.found == [("trend", "disk")]


def test_slow_syncs_are_found() -> None:
    site = Watched(health_sync_ms=250)
    for _ in range(3):
        for _ in range(4):
            site.syncs.observe(0.4)
        site.look()
    assert site.found == [("slow-syncs", "syncs")]
    assert site.only.why.startswith("a sync of the disk takes 400 ms")
    site.look(2)
    assert site.found == []


@pytest.mark.parametrize(
    ("days", "why"), [(3, "it expires in 3 days, on "), (-1, "it has expired on ")]
)
def test_a_certificate_that_expires_is_found(days: int, why: str) -> None:
    site = Watched(health_certificate_days=14)
    listening = Listening("amqp/ssl", "127.0.0.1", 5671)
    expires = site.now // 1_000 + days * DAY + 60
    site.certificates.append((listening, Certificate("/tls/server.pem", expires)))
    site.look()
    assert site.found == [("certificate", "/tls/server.pem")]
    assert site.only.why.startswith(why)
    site.certificates[:] = [(listening, Certificate("/tls/server.pem", expires + 90 * DAY))]
    site.look(2)
    assert site.found == []


def test_many_new_connections_are_found_and_a_reconnect_of_all_is_not() -> None:
    site = Watched(health_connections_per_second=10)
    churn = site.world.broker.churn
    churn.connection_created += 1_000
    site.look_for(300)
    assert site.found == []
    for _ in range(12):
        churn.connection_created += 150
        site.look()
    assert site.found == [("connection-churn", "connections")]
    site.look_for(300)
    assert site.found == []


def test_queries_that_fail_are_silent_or_behind_are_found() -> None:
    site = Watched(health_query_lag_seconds=600)
    reports = site.world.broker.vhosts["/"].query_reports
    reports.add("guest", "failed", {"state": "failed", "error": "no space left\nat line 3"})
    reports.add("guest", "stopped", {"state": "stopped", "lag_seconds": 5_000})
    reports.add("guest", "silent", {"interval": 10})
    for _ in range(5):
        reports.add("guest", "behind", {"lag_seconds": 7_200, "interval": 60})
        reports.add("guest", "well", {"lag_seconds": 3, "interval": 60})
        site.look()
    assert site.found == [("query", "behind"), ("query", "failed"), ("query", "silent")]
    assert [each.why for each in site.watch.found] == [
        "it is 2 hours behind its sources",
        "it has failed: no space left",
        "has not reported for 50 seconds, and does so every 10 seconds",
    ]
    assert {each.kind for each in site.watch.found} == {QUERY}


def test_a_broker_of_the_store_that_does_not_run_is_found() -> None:
    site = Watched()
    site.brokers = [
        {"store": 1, "name": "a", "running": True},
        {"store": 1, "name": "b", "running": False},
    ]
    site.look(2)
    assert site.found == [("standby", "b")]
    assert site.only.why == "it does not run, and cannot take over store 1"


def test_a_broker_of_the_store_that_is_behind_is_found_with_its_lag() -> None:
    site = Watched(health_standby_seconds=60)
    near = {"store": 1, "name": "a", "running": True, "behind_bytes": 8, "behind_seconds": 59.0}
    far = {**near, "name": "b", "behind_bytes": 7_340_032, "behind_seconds": 300.4}
    gone = {**far, "name": "c", "running": False}
    unknown = {**near, "name": "d", "behind_bytes": None, "behind_seconds": None}
    site.brokers = [near, far, gone, unknown]
    site.look(2)
    assert [(each.name, each.why) for each in site.watch.found] == [
        ("b", "it follows store 1 too slowly; it is 7,340,032 bytes and 5 minutes behind"),
        (
            "c",
            "it does not run, and cannot take over store 1; it is 7,340,032 bytes and 5 minutes "
            "behind",
        ),
    ]
    site.brokers = [{**far, "behind_bytes": 0, "behind_seconds": 0.0}]
    site.look(2)
    assert site.found == []


# --- all of them ----------------------------------------------------------------------------------


def test_a_threshold_of_zero_switches_a_rule_off() -> None:
    site = Watched(health_no_consumer_seconds=0)
    site.declare("q")
    site.publish("q")
    site.look_for(3_600)
    assert site.found == []


def test_many_findings_of_a_vhost_are_counted_and_hide_none_of_another() -> None:
    site = Watched(health_no_consumer_seconds=60)
    for number in range(FINDINGS_SHOWN + 7):
        site.declare(f"q{number}")
        site.publish(f"q{number}")
    other = site.world.broker.add_vhost("other")
    other.query_reports.add("guest", "failed", {"state": "failed"})
    site.look_for(120)
    found = [each for each in site.watch.found if each.rule == "no-consumer"]
    assert len(found) == FINDINGS_SHOWN + 1
    assert (found[-1].name, found[-1].more, found[-1].why) == ("", 7, "the same of 7 more")
    assert ("query", "failed") in site.found


@pytest.mark.parametrize("looks", [0, 1], ids=["the first look", "a later look"])
def test_many_full_queues_are_looked_at_in_slices_that_are_charged_to_the_work_budget(
    looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    look_at_queue = Watch._look_at_queue

    def noted(self: Watch, queue: Queue, now: int, config: Config) -> None:
        seen.append(queue.name)
        look_at_queue(self, queue, now, config)

    monkeypatch.setattr(Watch, "_look_at_queue", noted)
    site = Watched()
    count = FINDINGS_SLICE_QUEUES * 10
    for number in range(count):
        site.declare(f"q{number}")
        site.publish(f"q{number}")
    site.look(looks)
    seen.clear()
    ends = [0, *(len(seen) for _ in site.watch.take(site.now + 10_000))]
    assert ends[-1] == count
    assert max(after - before for before, after in pairwise(ends)) == FINDINGS_SLICE_QUEUES


def test_of_each_vhost_so_many_queues_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "FINDINGS_TRAILS", 2)
    site = Watched(health_no_consumer_seconds=60)
    for number in range(4):
        site.declare(f"q{number}")
        site.publish(f"q{number}")
    site.look_for(120)
    assert site.found == [("no-consumer", "q0"), ("no-consumer", "q1")]


def test_deleted_queues_are_forgotten() -> None:
    site = Watched(health_no_consumer_seconds=60)
    site.declare("q")
    site.publish("q")
    site.look_for(120)
    assert site.found == [("no-consumer", "q")]
    site.peer.ask(m.QueueDelete("q"))
    site.look(2)
    assert site.found == []


def test_a_clock_that_is_set_back_finds_nothing() -> None:
    site = Watched(health_no_consumer_seconds=60)
    site.declare("q", max_length=1_000)
    site.publish("q", 500)
    site.look()
    site.world.clock.ms -= 3_600_000
    site.look(3)
    assert site.found == []


def test_a_name_is_one_word_of_a_command_line() -> None:
    site = Watched(health_no_consumer_seconds=60)
    name = "-q '1' $(x)"
    site.declare(name)
    site.publish(name)
    site.look_for(120)
    only = f"--generation={site.only.generation}"
    assert words(site.only) == ["queues", "purge", only, "--", name]


def test_every_command_is_one_of_the_command_line() -> None:
    calls = [
        [each.value for each in node.args if isinstance(each, ast.Constant)]
        for path in Path(rules.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "command"
    ]
    assert ["status"] in calls
    for noun, verb, *columns in [each for each in calls if each != ["status"]]:
        found = find(f"{noun}.{verb}")
        assert found is not None, (noun, verb)
        assert set(columns) <= set(found.columns), columns
