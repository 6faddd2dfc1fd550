"""`connection.on_state()`: a program learns what becomes of its connection."""

from __future__ import annotations

import logging
import random
from typing import Any

import pytest

from harebell.client.errors import ClientClosed, ConnectionLost
from tests.interop.client.apis import Api, do, pause
from tests.interop.client.brokers import Broker
from tests.interop.client.test_client_recovery import QUICK, back
from tests.patience import SECONDS
from tests.relay import relay
from tests.running import running_broker, set_watermark

pytestmark = pytest.mark.asyncio


def port_of(broker: Broker) -> int:
    """The port of a broker for plain AMQP."""
    return int(broker.url.rpartition(":")[2])


async def test_a_lost_connection_recovers_and_is_closed_at_the_end(
    broker: Broker, api: Api
) -> None:
    changes: list[tuple[str, Any]] = []
    with relay(port_of(broker)) as between:
        url = f"amqp://guest:guest@127.0.0.1:{between.port}"
        connection = await api.connect(url, recover=QUICK, rng=random.Random(1))
        connection.on_state(lambda *change: changes.append(change))
        channel = await do(connection.channel())
        assert connection.state == "open"
        assert changes == []
        between.cut()
        await pause_until_noticed(connection, changes)
        await back(channel)
        assert connection.state == "open"
        await do(connection.close())
    assert [state for state, _ in changes] == ["recovering", "open", "closed"]
    assert [type(reason) for _, reason in changes] == [ConnectionLost, type(None), ClientClosed]
    assert connection.state == "closed"


async def pause_until_noticed(connection: Any, changes: list[Any]) -> None:
    """Let the API notice the loss: the blocking one does so inside a call."""
    for _ in range(int(SECONDS * 20)):
        if changes:
            return
        await pause(connection, 0.05)
    raise AssertionError("the loss was not noticed")


async def test_a_connection_without_recovery_is_closed_with_its_error(
    broker: Broker, api: Api
) -> None:
    changes: list[tuple[str, Any]] = []
    with relay(port_of(broker)) as between:
        connection = await api.connect(f"amqp://guest:guest@127.0.0.1:{between.port}")
        connection.on_state(lambda *change: changes.append(change))
        channel = await do(connection.channel())
        between.cut()
        with pytest.raises(ConnectionLost):
            await do(channel.qos(1))
        # The blocking API notices it with the next call.
        await do(connection.close())
    assert [(state, type(reason)) for state, reason in changes] == [("closed", ConnectionLost)]


@pytest.mark.parametrize("version", ["0-9-1", "1-0"])
async def test_a_broker_that_is_short_of_memory_blocks_and_unblocks(api: Api, version: str) -> None:
    changes: list[tuple[str, Any]] = []
    with running_broker() as server:
        connection = await api.connect(server.address(), version=version)
        connection.on_state(lambda *change: changes.append(change))
        channel = await do(connection.channel(confirms=False))
        queue = await do(channel.declare_queue(auto_delete=True))
        set_watermark(server, 0)
        await do(channel.publish(b"x", routing_key=queue.name))
        await pause_until_noticed(connection, changes)
        assert connection.state == "blocked"
        assert changes == [("blocked", connection.blocked_reason)]
        set_watermark(server, 0.9)
        for _ in range(int(SECONDS * 20)):
            if connection.state == "open":
                break
            await pause(connection, 0.05)
    assert changes[1:2] == [("open", None)]


async def test_a_callback_that_fails_is_logged_and_one_that_is_removed_is_not_called(
    harebell: Broker, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    connection = await api.connect(harebell.url)
    changes: list[Any] = []
    connection.on_state(lambda *_: 1 / 0)
    remove = connection.on_state(lambda *change: changes.append("removed"))
    connection.on_state(lambda *change: changes.append(change[0]))
    remove()
    remove()
    await do(connection.close())
    assert changes == ["closed"]
    (record,) = [each for each in caplog.records if "on_state" in each.message]
    assert (record.levelno, "closed" in record.message) == (logging.ERROR, True)
    assert record.exc_info is not None
