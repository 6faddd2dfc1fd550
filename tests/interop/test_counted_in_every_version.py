"""Every version of AMQP counts: what is published, delivered and acknowledged over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harebell.client.blocking import connect
from harebell.client.url import URL
from harebell.management.control.client import ask_command
from tests.interop.matrix import SPOKEN
from tests.patience import eventually
from tests.running import RunningBroker, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker("--listen", "amqp-0-10t://127.0.0.1:0") as started:
        yield started


def _publish(connection: Any, queue: str, bodies: list[bytes]) -> None:
    channel = connection.channel()
    if channel.confirms:
        for body in bodies:
            channel.publish(body, routing_key=queue)
        return
    with channel.transaction():
        for body in bodies:
            channel.publish(body, routing_key=queue)


def _stats(broker: RunningBroker, queue: str) -> dict[str, Any]:
    found: dict[str, Any] = ask_command(broker.data_dir, "queues.show", {"name": queue})
    stats: dict[str, Any] = found["message_stats"]
    return stats


@pytest.mark.parametrize("version", SPOKEN)
def test_a_version_counts_what_passes(broker: RunningBroker, version: str) -> None:
    scheme = "amqp-0-10t" if version == "0-10t" else "amqp"
    address = broker.address(scheme).replace("amqp-0-10t", "amqp")
    queue = f"counted-{version}"
    before = ask_command(broker.data_dir, "overview.show", {})["message_stats"]
    with connect(URL.of(f"{address}/%2F", version)) as connection:
        channel = connection.channel()
        channel.declare_queue(queue)
        _publish(connection, queue, [b"1", b"2", b"3"])
        consumer = channel.consume(queue, prefetch=10)
        for _ in range(3):
            next(consumer).ack()
        counted = ("publish", "deliver", "ack")
        assert eventually(lambda: [_stats(broker, queue)[name] for name in counted] == [3, 3, 3]), (
            _stats(broker, queue)
        )

        def in_channels() -> list[int]:
            listed = ask_command(broker.data_dir, "channels.list", {})
            return [sum(each["message_stats"][name] for each in listed) for name in counted]

        # Channels of the test before may be there for a moment.
        assert eventually(lambda: in_channels() == [3, 3, 3]), in_channels()
    after = ask_command(broker.data_dir, "overview.show", {})["message_stats"]
    assert [after[name] - before[name] for name in counted] == [3, 3, 3]
