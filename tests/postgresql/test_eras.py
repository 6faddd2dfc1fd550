"""Eras over PostgreSQL: a fail-over that lost nothing is silent, a restored database is told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from harebell.client import blocking
from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.source import QueueSource
from tests.postgresql.brokers import StoreBroker, owner_of
from tests.postgresql.servers import PostgresServer
from tests.spark.asking import BODIES, bodies

QUEUE = "daily"
Offset = dict[str, Any]


def _url(broker: StoreBroker) -> str:
    return f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F"


def _publish(broker: StoreBroker, kind: str, first: int, end: int) -> None:
    with blocking.connect(_url(broker)) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue(QUEUE, durable=True, arguments={"x-queue-type": kind})
        for number in range(first, end):
            channel.publish(b"%d" % number, routing_key=QUEUE, delivery_mode=2)


def _read(
    broker: StoreBroker, start: Offset | None, *, fails: str = "true"
) -> tuple[list[int], Offset]:
    """Read what there is; return it, and the offset behind it."""
    options = {"url": _url(broker), "queue": QUEUE, "startingOffsets": "earliest"}
    options |= {"longPollMs": "0", "failOnDataLoss": fails, "fetchTimeout": "300s"}
    one = QueueSource(options).streamReader(BODIES)
    try:
        end = one.initialOffset() if start is None else start
        found: list[int] = []
        while True:
            following = one.latestOffset(end, one.getDefaultReadLimit())
            if following == end:
                return found, end
            found += bodies(one, end, following)
            end = following
    finally:
        one.stop()


@pytest.mark.parametrize("kind", ["classic", "stream"])
def test_a_restored_database_is_told_and_what_was_published_since_is_read(
    postgresql: PostgresServer, database: str, kind: str
) -> None:
    copy = f"{database}_copy"
    with StoreBroker("a", postgresql.url(database)) as broker:
        broker.wait_until_it_serves()
        _publish(broker, kind, 0, 10)
        found, end = _read(broker, None)
        assert found == list(range(10))
        broker.stop()
        postgresql.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{database}"')
        broker.start()
        broker.wait_until_it_serves()
        _publish(broker, kind, 10, 20)
        found, end = _read(broker, end)
        assert found == list(range(10, 20))
    try:
        with StoreBroker("b", postgresql.url(copy)) as restored:
            restored.wait_until_it_serves()
            _publish(restored, kind, 500, 530)
            with pytest.raises(DataLoss, match=r"an? older"):
                _read(restored, end)
            found, end = _read(restored, end, fails="false")
            assert found == list(range(500, 530))
            _publish(restored, kind, 600, 605)
            assert _read(restored, end)[0] == list(range(600, 605))
    finally:
        postgresql.drop_database(copy)


@pytest.mark.parametrize("kind", ["classic", "stream"])
def test_a_fail_over_that_lost_nothing_is_followed_by_silence(
    postgresql: PostgresServer, database: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    end: Offset | None = None
    with (
        StoreBroker("a", postgresql.url(database)) as first,
        StoreBroker("b", postgresql.url(database)) as second,
        caplog.at_level(logging.WARNING, "harebell.spark"),
    ):
        owner = owner_of([first, second])
        for turn in range(3):
            _publish(owner, kind, 10 * turn, 10 * turn + 10)
            found, end = _read(owner, end)
            assert found == list(range(10 * turn, 10 * turn + 10))
            owner.kill()
            owner.start()
            owner = owner_of([first, second])
    assert not caplog.text
