"""Headers that come by any door fit into one frame of AMQP 0-9-1, or the publisher learns it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harebell.client.blocking import connect
from harebell.client.errors import ReplyError
from harebell.front.limits import HEADERS_BYTES
from tests.ports import free_port
from tests.running import RunningBroker
from tests.unit.management.http.asking import Api

VERSIONS = ("0-9-1", "0-10", "1.0")


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with RunningBroker(management_port=free_port()) as found:
        yield found


def headers(size: int, *, nested: bool) -> dict[str, Any]:
    """Headers of about so many bytes."""
    flat = {f"k{number:05}": "v" * 988 for number in range(size // 1_000)}
    return {"table": flat} if nested else flat


def publish(broker: RunningBroker, door: str, queue: str, given: dict[str, Any]) -> str:
    """Publish a message with headers; returns why it was refused, or ""."""
    if door == "HTTP":
        api = Api(int(broker.address("http").rpartition(":")[2]))
        sent = {"properties": {"headers": given}, "routing_key": queue, "payload": "body"}
        path = "/api/exchanges/%2F/amq.default/publish"
        answer = api.ask("POST", path, {**sent, "payload_encoding": "string"})
        return "" if answer.status == 200 else str(answer.json["reason"])
    with connect(broker.url, version=door) as connection:
        channel = connection.channel(confirms=True)
        try:
            channel.publish(b"body", routing_key=queue, headers=given)
        except ReplyError as error:
            return str(error)
    return ""


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("door", ["0-10", "1.0", "HTTP"])
def test_long_headers_reach_clients_of_every_version(
    broker: RunningBroker, door: str, nested: bool
) -> None:
    dead, queue = f"dead {door} {nested}", f"first {door} {nested}"
    with connect(broker.url) as connection, connection.channel() as channel:
        channel.declare_queue(dead, durable=True)
        to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        channel.declare_queue(queue, durable=True, arguments=to_dead)
    given = headers(HEADERS_BYTES - 2_000, nested=nested)
    for version in VERSIONS:
        assert publish(broker, door, queue, given) == ""
        with connect(broker.url, version=version) as connection, connection.channel() as channel:
            found = channel.get(queue, no_ack=False)
            assert found is not None
            assert given.items() <= dict(found.headers or {}).items()
            channel.nack(found.delivery_tag, requeue=False)
        with connect(broker.url, version=version) as connection, connection.channel() as channel:
            letter = channel.get(dead, no_ack=True)
            assert letter is not None
            assert bytes(letter.body) == b"body"
            assert "x-death" in letter.headers


@pytest.mark.parametrize("nested", [False, True], ids=["flat", "nested"])
@pytest.mark.parametrize("door", ["0-10", "1.0", "HTTP"])
def test_headers_that_no_frame_of_0_9_1_takes_are_refused(
    broker: RunningBroker, door: str, nested: bool
) -> None:
    queue = f"refusing {door} {nested}"
    with connect(broker.url) as connection, connection.channel() as channel:
        channel.declare_queue(queue, durable=True)
        why = publish(broker, door, queue, headers(HEADERS_BYTES + 2_000, nested=nested))
        assert f"bytes in AMQP 0-9-1, at most {HEADERS_BYTES} may be" in why
        assert channel.declare_queue(queue, passive=True).message_count == 0
