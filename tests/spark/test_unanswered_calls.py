"""A request that the broker never got, on a connection that stays: it is made again."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from harebell.spark.reading.rows import task_connections
from harebell.spark.source import QueueSource
from harebell.wire.v09 import bulk
from harebell.wire.v09 import lease as lease_wire
from tests.patience import eventually
from tests.relay import Relay, relay
from tests.spark.asking import BODIES, bodies, gathered, publish

pytestmark = pytest.mark.timeout(300)

FETCH_TIMEOUT = {"fetchTimeout": "12s"}
READ = bulk.CLASS.to_bytes(2) + bulk.READ.to_bytes(2)
DECLARE = b"\x00\x32\x00\x0a"


@pytest.fixture
def losing(broker_url: str) -> Iterator[Relay]:
    """A relay to the broker."""
    with relay(pika.URLParameters(broker_url).port) as made:
        yield made


def given(losing: Relay, queue: str, **more: str) -> dict[str, str]:
    url = f"amqp://guest:guest@127.0.0.1:{losing.port}/%2F"
    return {"url": url, "queue": queue} | FETCH_TIMEOUT | more


def test_a_task_reads_on_though_one_of_its_requests_got_lost(
    losing: Relay, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 100)
    reader = QueueSource(given(losing, queue, rowsPerBatch="10")).streamReader(BODIES)
    start = reader.initialOffset()
    end = gathered(reader, start)
    losing.lose = READ
    assert bodies(reader, start, end) == list(range(100))
    assert losing.lose == b""
    reader.stop()


@pytest.mark.parametrize(
    "request_octets",
    [
        lease_wire.CLASS_ID.to_bytes(2) + (20).to_bytes(2),
        lease_wire.CLASS_ID.to_bytes(2) + (30).to_bytes(2),
        DECLARE,
    ],
    ids=["claim", "commit", "declare"],
)
def test_a_query_goes_on_though_one_of_its_requests_got_lost(
    losing: Relay, channel: Any, queue: str, request_octets: bytes
) -> None:
    publish(channel, queue, 0, 50)
    reader = QueueSource(given(losing, queue)).streamReader(BODIES)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    end = gathered(reader, start)
    publish(channel, queue, 50, 100)
    losing.lose = request_octets
    reader.prepareForTriggerAvailableNow()
    found = bodies(reader, start, end)
    after = gathered(reader, end)
    assert found + bodies(reader, end, after) == list(range(100))
    assert losing.lose == b""
    reader.stop()


def test_a_query_over_plain_amqp_goes_on_though_one_of_its_requests_got_lost(
    losing: Relay, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(channel, queue, 0, 50)
    options = given(losing, queue, delivery="at-least-once", spoolDir=str(tmp_path))
    reader = QueueSource(options).streamReader(BODIES)
    start = reader.initialOffset()
    end = gathered(reader, start)
    found = bodies(reader, start, end)
    publish(channel, queue, 50, 100)
    losing.lose = DECLARE
    reader.prepareForTriggerAvailableNow()
    after = gathered(reader, end)
    found += bodies(reader, end, after)
    assert losing.lose == b""
    assert sorted(set(found)) == list(range(100))
    reader.stop()


def test_tasks_of_queries_with_other_settings_have_connections_of_their_own(
    broker_url: str, channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    before, made = set(task_connections._KEPT._idle), set()
    peek = {"url": broker_url, "queue": queue, "delivery": "peek"}
    for timeout, prefix in (("20s", "spark"), ("40s", "spark"), ("40s", "spark"), ("40s", "etl")):
        options = peek | {"fetchTimeout": timeout, "groupIdPrefix": prefix}
        reader = QueueSource(options).streamReader(BODIES)
        start = reader.initialOffset()
        task = pickle.loads(pickle.dumps(reader))
        for partition in reader.partitions(start, gathered(reader, start)):
            assert list(task.read(partition))
            # A connection that no task uses is soon closed.
            made |= task_connections._KEPT._idle.keys() - before
        reader.stop()
    assert sorted((settings.timeout, settings.name) for _, settings in made) == [
        (20.0, "spark: task"),
        (40.0, "etl: task"),
        (40.0, "spark: task"),
    ]


def test_a_connection_made_right_after_the_last_one_ended_is_served_between_calls(
    broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    given = {"url": broker_url, "queue": queue, "delivery": "at-least-once"}
    options = given | {"spoolDir": str(tmp_path)}
    others = set(threading.enumerate())
    reader = QueueSource(options).streamReader(BODIES)
    start = reader.initialOffset()
    publish(channel, queue, 0, 1)
    for _ in range(5):
        gathered(reader, start)
        # The thread that served it was told to end, and may not have seen it.
        reader.stop()
    gathered(reader, start)
    served = [
        one
        for one in threading.enumerate()
        if one.name == "harebell-spark-keeper" and one not in others
    ]
    assert eventually(lambda: sum(one.is_alive() for one in served) == 1)
    reader.stop()
    assert eventually(lambda: not any(one.is_alive() for one in served))
