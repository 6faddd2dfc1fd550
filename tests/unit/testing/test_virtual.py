"""A broker in the process of a test: its time, its record and its faults, seen by pika."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout
from pika.exceptions import AMQPConnectionError, ConnectionClosedByBroker, StreamLostError

from harebell.base.errors import HarebellError
from harebell.config import machine_memory_bytes
from harebell.testing import VirtualBroker
from tests.patience import eventually

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"


def connected(broker: VirtualBroker, **parameters: Any) -> BlockingConnection:
    found = pika.URLParameters(broker.url)
    for name, value in parameters.items():
        setattr(found, name, value)
    return pika.BlockingConnection(found)


@pytest.fixture
def broker() -> Iterator[VirtualBroker]:
    with VirtualBroker() as running:
        yield running


@pytest.fixture
def channel(broker: VirtualBroker) -> Iterator[BlockingChannel]:
    connection = connected(broker)
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    if connection.is_open:
        connection.close()


def ready(channel: BlockingChannel, queue: str) -> int:
    found: int = channel.queue_declare(queue, passive=True).method.message_count
    return found


# --- time -----------------------------------------------------------------------------------------


def test_a_call_may_last_as_long_as_the_time_moves_on(
    broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def passed_since_last_look(done: list[Future[None]], _: float) -> None:
        nonlocal looks
        looks += 1
        before = broker.passed
        assert eventually(lambda: done[0].done() or broker.passed > before)

    monkeypatch.setattr("harebell.testing.virtual.wait", passed_since_last_look)
    broker.advance(3600)
    assert broker.passed == 3600
    assert looks > 1


def test_a_message_expires_when_the_test_says_so(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q", arguments={"x-message-ttl": 60_000, **DEAD})
    channel.queue_declare("dead")
    channel.basic_publish("", "q", b"late")
    broker.advance(59.9)
    assert (ready(channel, "q"), ready(channel, "dead")) == (1, 0)
    broker.advance(0.2)
    assert (ready(channel, "q"), ready(channel, "dead")) == (0, 1)
    assert broker.passed == pytest.approx(60.1)


def test_delayed_messages_come_in_the_order_of_their_times(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.exchange_declare("later", "x-delayed-message", arguments={"x-delayed-type": "fanout"})
    channel.queue_declare("q")
    channel.queue_bind("q", "later")
    got: list[bytes] = []
    channel.basic_consume("q", lambda _c, _m, _p, body: got.append(body), auto_ack=True)
    for hours in (3, 1, 2):
        properties = pika.BasicProperties(headers={"x-delay": hours * 3_600_000})
        channel.basic_publish("later", "", f"{hours}".encode(), properties)
    broker.advance(2.5 * 3600)
    link = channel.connection
    assert eventually(lambda: link.process_data_events(0) or got == [b"1", b"2"])
    broker.advance(3600)
    assert eventually(lambda: link.process_data_events(0) or got == [b"1", b"2", b"3"])
    assert [round(each.at / 3600, 1) for each in broker.delivered] == [1.0, 2.0, 3.0]


def test_expired_messages_go_from_queue_to_queue_each_at_its_own_time(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    for number in range(3):
        arguments = {"x-message-ttl": 10_000, "x-dead-letter-exchange": ""}
        arguments["x-dead-letter-routing-key"] = f"q{number + 1}"
        channel.queue_declare(f"q{number}", arguments=arguments)
    channel.queue_declare("q3")
    channel.basic_publish("", "q0", b"m")
    broker.advance(31)
    properties = channel.basic_get("q3", auto_ack=True)[1]
    times = [int(death["time"].timestamp()) for death in properties.headers["x-death"]]
    assert [later - times[-1] for later in times] == [20, 10, 0]


def test_a_client_without_heartbeats_is_closed_in_virtual_time() -> None:
    with VirtualBroker(heartbeat=30) as broker:
        connection = connected(broker)
        broker.advance(200)
        with pytest.raises((StreamLostError, AMQPConnectionError)):
            connection.channel()
        broker.settle()
        assert broker.connections == []
        assert "missed heartbeats from client" in broker.log


def test_a_client_with_heartbeats_of_its_own_keeps_its_connection(broker: VirtualBroker) -> None:
    connection = connected(broker, heartbeat=10)
    broker.advance(3600)
    assert connection.channel().is_open
    connection.close()


def test_time_stands_still_between_two_advances(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q", arguments={"x-message-ttl": 1})
    channel.basic_publish("", "q", b"m")
    channel.connection.process_data_events(0.3)
    assert ready(channel, "q") == 1
    broker.advance(0.002)
    assert ready(channel, "q") == 0


def test_time_does_not_go_back(broker: VirtualBroker) -> None:
    with pytest.raises(ValueError, match="time does not go back: -1 seconds"):
        broker.advance(-1)


# --- what passed ----------------------------------------------------------------------------------


def test_everything_that_passed_can_be_asserted(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q", durable=True)
    properties = pika.BasicProperties(message_id="m-1", headers={"a": 1})
    channel.basic_publish("", "q", b"x" * 200_000, properties)
    with pytest.raises(pika.exceptions.UnroutableError):
        channel.basic_publish("amq.direct", "nowhere", b"back", mandatory=True)
    (declared,) = broker.frames("queue.declare", sender="client")
    assert (declared.channel, declared.fields["queue"]) == (1, "q")
    published, lost = broker.published
    assert (published.exchange, published.routing_key) == ("", "q")
    assert published.properties == {"message-id": "m-1", "headers": {"a": 1}}
    assert (len(published.body), lost.body) == (200_000, b"back")
    (returned,) = broker.returned
    assert returned.arguments["reply-text"] == "NO_ROUTE"
    assert len(broker.frames("basic.ack", sender="broker")) == 2
    broker.forget()
    assert broker.frames() == broker.published == []


def test_passwords_are_not_in_the_record(broker: VirtualBroker, channel: BlockingChannel) -> None:
    (login,) = broker.frames("connection.start-ok")
    assert "guest" not in str(login.fields["response"])


def test_commands_of_the_command_line_answer(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("orders")
    assert broker.command("vhosts.add", name="other")
    with pytest.raises(HarebellError, match="refused"):
        broker.command("vhosts.delete", name="none")


# --- faults ---------------------------------------------------------------------------------------


def test_a_connection_can_be_cut_and_the_others_stay(broker: VirtualBroker) -> None:
    first, second = connected(broker), connected(broker)
    assert broker.connections == [1, 2]
    broker.cut(1)
    with pytest.raises(StreamLostError):
        first.channel()
    assert second.channel().is_open
    with pytest.raises(LookupError, match="no connection 1 is open; open are 2"):
        broker.cut(1)
    second.close()


def test_unacknowledged_messages_of_a_cut_connection_come_again(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q")
    channel.basic_publish("", "q", b"m")
    other = connected(broker)
    assert other.channel().basic_get("q")[0].redelivered is False
    broker.cut(2)
    assert channel.basic_get("q", auto_ack=True)[0].redelivered is True


def test_new_connections_are_refused_until_they_are_accepted(broker: VirtualBroker) -> None:
    broker.refuse()
    with pytest.raises(AMQPConnectionError):
        connected(broker)
    broker.accept()
    connected(broker).close()


def test_nothing_passes_while_the_network_stalls(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q")
    broker.stall()
    try:
        with pytest.raises(AMQPConnectorStackTimeout):
            connected(broker, stack_timeout=0.5)
    finally:
        broker.resume()
    assert ready(channel, "q") == 0


def test_publishers_are_blocked_and_unblocked(broker: VirtualBroker) -> None:
    connection = connected(broker)
    seen: list[str] = []
    connection.add_on_connection_blocked_callback(lambda _c, m: seen.append(m.method.reason))
    connection.add_on_connection_unblocked_callback(lambda _c, _m: seen.append("free"))
    broker.block_publishers()
    connection.channel().basic_publish("", "nowhere", b"m")
    broker.settle()
    assert eventually(lambda: connection.process_data_events(0) or seen == ["low on disk"])
    broker.unblock_publishers()
    assert eventually(lambda: connection.process_data_events(0) or seen == ["low on disk", "free"])
    connection.close()


def test_frames_are_injected_in_the_name_of_the_broker(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    broker.inject(HEARTBEAT)
    broker.inject(HEARTBEAT, sender="client")
    assert [frame.sender for frame in broker.frames("heartbeat")] == ["broker", "client"]
    assert channel.queue_declare("").method.message_count == 0
    with pytest.raises(ValueError, match="the sender is 'broker' or 'client', not 'me'"):
        broker.inject(HEARTBEAT, sender="me")


def test_durable_messages_are_there_after_a_restart(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    channel.queue_declare("q", durable=True, arguments={"x-message-ttl": 60_000})
    channel.basic_publish("", "q", b"m", pika.BasicProperties(delivery_mode=2))
    broker.restart()
    with pytest.raises(ConnectionClosedByBroker, match="shutdown"):
        channel.queue_declare("x")
    again = connected(broker)
    assert ready(again.channel(), "q") == 1
    broker.advance(61)
    assert ready(again.channel(), "q") == 0
    again.close()


def test_an_operator_closes_the_connections(
    broker: VirtualBroker, channel: BlockingChannel
) -> None:
    broker.close_connections("maintenance")
    with pytest.raises(ConnectionClosedByBroker, match="maintenance"):
        channel.queue_declare("q")


# --- begin and end --------------------------------------------------------------------------------


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(HarebellError, match="hartbeat is no setting: did you mean heartbeat"):
        VirtualBroker(hartbeat=1)
    with pytest.raises(HarebellError, match="--frame-max must be a size"):
        VirtualBroker(frame_max="large")


def test_a_port_that_is_in_use_is_said(broker: VirtualBroker) -> None:
    with pytest.raises(HarebellError, match="is in use already"):
        VirtualBroker(port=broker.port)


def test_a_closed_broker_says_that_it_is(broker: VirtualBroker) -> None:
    broker.close()
    with pytest.raises(HarebellError, match="the broker is closed"):
        broker.advance(1)
    assert not broker.data_dir.exists()


def test_the_memory_of_the_tests_is_no_reason_to_block_publishers(broker: VirtualBroker) -> None:
    (node,) = broker.command("nodes.list")
    assert node["mem_limit"] == machine_memory_bytes()
