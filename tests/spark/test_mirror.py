"""`harebell pipeline mirror` from a real RabbitMQ, killed in its work and started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pika
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from harebell.cli.main import harebell
from harebell.pipeline.registry import state_of
from tests.patience import eventually
from tests.spark.commanded import PATIENCE_S, Commanded
from tests.spark.test_writer import waiting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

MANY = 6_000
WHEN = datetime(2013, 1, 1, 12, tzinfo=UTC)
HEADERS: dict[str, Any] = {
    "text": "grüße",
    "number": 42,
    "large": 2**40,
    "truth": True,
    "nothing": None,
    "when": WHEN,
    "list": [1, "two", {"three": 3}],
    "table": {"inner": {"deep": False}},
}
PROPERTIES: dict[str, Any] = {
    "content_type": "application/json",
    "content_encoding": "identity",
    "priority": 7,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "3600000",
    "message_id": "m",
    "timestamp": int(WHEN.timestamp()),
    "type": "order",
    "app_id": "shop",
    "cluster_id": "cl",
}


@pytest.fixture
def there(rabbit: str, queue: str) -> Iterator[Any]:
    """A channel to RabbitMQ, where the queue is declared, too."""
    connection = pika.BlockingConnection(pika.URLParameters(f"{rabbit}/%2F?heartbeat=0"))
    channel = connection.channel()
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    yield channel
    channel.queue_delete(queue)
    connection.close()


def publish(channel: Any, queue: str, numbers: range) -> None:
    for number in numbers:
        channel.basic_publish("", queue, b"%d" % number, pika.BasicProperties(delivery_mode=2))


def every(channel: Any, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
    found = []
    while True:
        method, properties, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return found
        found.append((properties, body))


def test_messages_of_rabbitmq_arrive_as_they_were_sent(
    rabbit: str,
    there: Any,
    spark: SparkSession,
    broker_url: str,
    channel: Any,
    queue: str,
    tmp_path: Path,
) -> None:
    assert spark.getActiveSession() is not None, "the command uses it"
    full = pika.BasicProperties(headers=HEADERS, delivery_mode=2, user_id="guest", **PROPERTIES)
    there.basic_publish("", queue, b"\x00\xff full", full)
    there.basic_publish("", queue, b"bare", pika.BasicProperties())
    there.basic_publish("", queue, b"transient", pika.BasicProperties(delivery_mode=1))
    words = [queue, "--url", f"{rabbit}/%2F", "--checkpoint", str(tmp_path / "state")]
    other = broker_url.replace("amqp://", "amqp://guest:guest@")
    about = {"HAREBELL_PIPELINES": str(tmp_path / "registry")}
    done = CliRunner().invoke(harebell, ["pipeline", "mirror", *words, "--to", other], env=about)
    assert f"mirror-{queue}: 3 rows read; written 3 to mirror" in done.output
    assert waiting(there, queue) == 0
    (first, bare, transient) = every(channel, queue)
    assert (first[1], bare[1], transient[1]) == (b"\x00\xff full", b"bare", b"transient")
    sent = {name: getattr(first[0], name) for name in PROPERTIES}
    assert sent == PROPERTIES
    assert (first[0].delivery_mode, first[0].user_id) == (2, "guest")
    assert first[0].headers == HEADERS
    for name, value in HEADERS.items():
        assert isinstance(first[0].headers[name], type(value)), name
    assert bare[0].headers is None
    assert bare[0].content_type is None
    assert transient[0].delivery_mode == 1


def test_a_mirror_that_is_killed_and_started_again_leaves_nothing_out(
    rabbit: str, there: Any, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    publish(there, queue, range(MANY // 2))
    words = [queue, "--url", f"{rabbit}/%2F", "--to", broker_url, "--every", "500ms"]
    mirror = Commanded(["mirror", *words, "--checkpoint", str(tmp_path / "state")], tmp_path)
    with mirror.running() as process:
        assert eventually(lambda: waiting(channel, queue) > 0, PATIENCE_S), mirror.said
        publish(there, queue, range(MANY // 2, MANY))
        process.kill()
        assert mirror.ended(process) == -signal.SIGKILL
    bodies: list[int] = []

    def mirrored() -> bool:
        """Whether all is there: some messages may be there twice before others are there once."""
        bodies.extend(int(body) for _, body in every(channel, queue))
        return len(set(bodies)) == MANY and waiting(there, queue) == 0

    with mirror.running() as process:
        assert eventually(mirrored, PATIENCE_S), mirror.said
        process.send_signal(signal.SIGTERM)
        assert mirror.ended(process) == 0, mirror.said
    assert state_of(mirror.registry, f"mirror-{queue}").state == "ended"
    bodies += [int(body) for _, body in every(channel, queue)]
    assert sorted(set(bodies)) == list(range(MANY))
    firsts = list(dict.fromkeys(bodies))
    assert firsts == sorted(firsts), "what comes for the first time comes in the queue's order"
