"""The memory watermark is one of the process: messages go to disk before publishers wait."""

from __future__ import annotations

import json
import select
import socket
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harebell.client.blocking import connect
from harebell.management.control.client import ask_command, ask_overview
from harebell.wire.v09 import methods as m
from tests.model.peer import call, publish
from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.raw import MIB, PATIENCE, RawClient, assert_serves, resident
from tests.running import RunningBroker, asked, running_broker, set_watermark

BODY = b"x" * 1000
QUEUES = 8


def node(broker: RunningBroker) -> dict[str, Any]:
    """What the HTTP API says about the process."""
    address = next(each for each in ask_overview(broker.data_dir)["listeners"] if "http" in each)
    request = urllib.request.Request(f"{address}/api/nodes")
    request.add_header("authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)[0]  # type: ignore[no-any-return]


def lines(broker: RunningBroker, words: str) -> list[str]:
    return [line for line in broker.log.splitlines() if words in line]


def test_messages_go_to_disk_before_publishers_wait() -> None:
    count, queues = 1_500, 40
    with running_broker() as broker, RawClient(broker) as client:
        names = [f"transient-{number}" for number in range(queues)]
        for name in names:
            client.ask(m.QueueDeclare(name), m.QueueDeclareOk)
        room = count * queues * len(BODY) // 2
        set_watermark(broker, resident(broker) + room)
        # Less per queue than what one queue keeps in memory, and twice of what there is room for.
        for start in range(0, count, 100):
            for number, name in enumerate(names):
                numbers = range(start, start + 100)
                bodies = [b"%03d%08d" % (number, at) + BODY for at in numbers]
                client.send(b"".join([publish(1, "", name, body) for body in bodies]))
            # The broker keeps up.
            client.ask(m.QueueDeclare(names[0], passive=True), m.QueueDeclareOk)
        overview = ask_overview(broker.data_dir)
        assert overview["messages_ready"] == count * queues
        assert eventually(
            lambda: ask_overview(broker.data_dir)["memory_messages_bytes"] < room // 2
        )
        assert eventually(lambda: not ask_overview(broker.data_dir)["memory_alarm"])
        # On disk they are what they were in memory.
        for number, name in enumerate(names[::7]):
            client.send(call(1, m.BasicGet(name, no_ack=True)) * count)
            got = client.collect(lambda events: len(events) >= count)
            expected = [b"%03d%08d" % (number * 7, at) for at in range(count)]
            assert [event.body[:11] for event in got] == expected
        assert_serves(broker)


def blocked(broker: RunningBroker) -> list[dict[str, Any]]:
    """The connections that are blocked."""
    rows = ask_command(broker.data_dir, "connections.list", {})
    return [row for row in rows if row["state"] == "blocked"]


def kept(broker: RunningBroker) -> int:
    """How many messages the broker has."""
    figures = ask_overview(broker.data_dir)
    return int(figures["messages_ready"] + figures["messages_unacknowledged"])


def _send_until_told(client: RawClient, data: bytes, rest: bytes) -> bytes:
    """Send the same again and again until the broker sends something; return what is unsent."""
    while True:
        readable, writable, _ = select.select([client.socket], [client.socket], [], PATIENCE)
        if readable:
            return rest
        assert writable, "the broker reads no more and did not say so"
        rest = rest or data
        rest = rest[client.socket.send(rest[: 1 << 16]) :]


def test_messages_shared_by_many_queues_block_publishers_until_they_are_taken() -> None:
    """Each queue would write a copy of it: it stays in memory, and is counted once."""
    with (
        running_broker("--management-port", str(free_port())) as broker,
        RawClient(broker) as client,
        RawClient(broker) as publisher,
    ):
        names = [f"q{number}" for number in range(QUEUES)]
        for name in names:
            client.ask(m.QueueDeclare(name), m.QueueDeclareOk)
            client.ask(m.QueueBind(name, "amq.fanout"), m.QueueBindOk)
        high = resident(broker) + 32 * MIB
        set_watermark(broker, high)
        message, rest = publish(1, "amq.fanout", "", bytes(MIB)), b""
        while True:
            rest = _send_until_told(publisher, message, rest)
            blocked = publisher.until(m.ConnectionBlocked)
            assert blocked.method == m.ConnectionBlocked("low on memory")
            shown = node(broker)
            if shown["mem_alarm"]:
                break
            # What the allocator gives back may let it go on for a moment.
            publisher.until(m.ConnectionUnblocked)
        assert eventually(lambda: lines(broker, "memory is short, publishers wait"))
        assert shown["mem_limit"] == high
        assert shown["mem_used"] > high - 4 * MIB
        assert shown["mem_messages"] > 24 * MIB
        for name in names:
            client.ask(m.QueuePurge(name), m.QueuePurgeOk)
        publisher.until(m.ConnectionUnblocked)
        assert eventually(lambda: lines(broker, "memory is no longer short"))
        assert eventually(lambda: node(broker)["mem_alarm"] is False)


@pytest.mark.parametrize("value", ["0", "0.0000000001", "1000"])
def test_a_tiny_watermark_blocks_publishers_at_once_and_nobody_else(value: str) -> None:
    with running_broker() as broker, RawClient(broker) as publisher, RawClient(broker) as other:
        publisher.ask(m.QueueDeclare("q"), m.QueueDeclareOk)
        set_watermark(broker, value)
        overview = ask_overview(broker.data_dir)
        assert overview["memory_alarm"] is True, "before the command has returned"
        assert overview["memory_used_bytes"] > overview["memory_high_watermark_bytes"]
        assert eventually(lambda: lines(broker, "memory is short, publishers wait"))
        publisher.send(publish(1, "", "q", b"one"))
        publisher.until(m.ConnectionBlocked)
        other.ask(m.QueueDeclare("q", passive=True), m.QueueDeclareOk)
        told = asked(broker, "explain", "--routing-key", "q").stdout
        assert "Publishers are blocked now: low on memory." in told
        set_watermark(broker, "0.9")
        publisher.until(m.ConnectionUnblocked)
        assert ask_overview(broker.data_dir)["memory_alarm"] is False
        assert eventually(lambda: lines(broker, "memory is no longer short"))


def test_a_connection_for_each_message_gets_none_past_an_alarm() -> None:
    """As in RabbitMQ, the first publish of a connection waits, also if its client has gone."""
    with running_broker() as broker, RawClient(broker) as other:
        other.ask(m.QueueDeclare("q"), m.QueueDeclareOk)
        set_watermark(broker, "0")
        for number in range(10):
            with RawClient(broker) as publisher:
                publisher.send(publish(1, "", "q", b"%d" % number))
                publisher.until(m.ConnectionBlocked)
        assert ask_overview(broker.data_dir)["messages_ready"] == 0
        set_watermark(broker, "0.9")
        assert eventually(lambda: ask_overview(broker.data_dir)["messages_ready"] == 10)


@pytest.mark.parametrize("version", ["0-8", "0-9", "0-9-1", "0-10", "0-10t", "1.0"])
def test_in_every_version_new_publishers_wait_and_consumers_go_on(version: str) -> None:
    """A message of one frame, one of many frames and a transaction wait, each as the first."""
    confirms = version != "0-8"

    def publish_one(url: str, queue: str, body: bytes) -> None:
        with connect(url, version=version) as connection:
            connection.channel(confirms=confirms).publish(body, routing_key=queue)

    def publish_together(url: str, queue: str) -> None:
        with connect(url, version=version) as connection:
            channel = connection.channel(confirms=False)
            with channel.transaction():
                channel.publish(b"one", routing_key=queue)
                channel.publish(b"two", routing_key=queue)

    with ThreadPoolExecutor() as threads, running_broker() as broker:
        with connect(broker.url) as connection:
            channel = connection.channel()
            for name in ("before", "while"):
                channel.declare_queue(name, durable=True)
            channel.publish(b"before", routing_key="before")
        set_watermark(broker, "0")
        publishers = [
            threads.submit(publish_one, broker.url, "while", b"short"),
            threads.submit(publish_one, broker.url, "while", bytes(MIB)),
            threads.submit(publish_together, broker.url, "while"),
        ]
        assert eventually(lambda: len(blocked(broker)) == len(publishers))
        with connect(broker.url, version=version) as connection:
            channel = connection.channel(confirms=False)
            taken = next(iter(channel.consume("before", timeout=PATIENCE)))
            assert taken.body == b"before"
            taken.ack()
        assert eventually(lambda: kept(broker) == 0)
        set_watermark(broker, "0.9")
        for each in publishers:
            each.result(PATIENCE)
        assert eventually(lambda: kept(broker) == 4)


def _pass_on(listener: socket.socket, port: int) -> bytes:
    """Pass one connection on to a port; return what its client has said."""
    said = b""
    client, _ = listener.accept()
    with client, socket.create_connection(("127.0.0.1", port)) as there:
        while True:
            for each in select.select([client, there], [], [])[0]:
                data = each.recv(1 << 16)
                if not data:
                    return said
                if each is client:
                    said += data
                (there if each is client else client).sendall(data)


def _said(broker: RunningBroker, version: str, queue: str) -> bytes:
    """Everything that a client says, from the protocol header on, to publish a message."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as threads:
        said = threads.submit(_pass_on, listener, broker.port)
        url = f"amqp://guest:guest@127.0.0.1:{listener.getsockname()[1]}/%2F"
        with connect(url, version=version) as connection:
            connection.channel(confirms=version != "0-8").publish(b"one", routing_key=queue)
        return said.result(PATIENCE)


@pytest.mark.parametrize("version", ["0-8", "0-9", "0-9-1", "0-10", "0-10t"])
def test_what_is_published_in_one_piece_with_the_login_waits_too(version: str) -> None:
    with running_broker() as broker, RawClient(broker) as client:
        client.ask(m.QueueDeclare("q"), m.QueueDeclareOk)
        said = _said(broker, version, "q")
        client.ask(m.QueuePurge("q"), m.QueuePurgeOk)
        set_watermark(broker, "0")
        with socket.create_connection(("127.0.0.1", broker.port)) as publisher:
            publisher.sendall(said)
            assert eventually(lambda: len(blocked(broker)) == 1)
            assert kept(broker) == 0
            set_watermark(broker, "0.9")
            assert eventually(lambda: kept(broker) == 1)


def test_memory_that_holds_nothing_blocks_nobody() -> None:
    """What the allocator keeps of messages that were taken goes to the system first."""
    with running_broker() as broker, RawClient(broker) as client:
        for name in (names := [f"q{number}" for number in range(QUEUES)]):
            client.ask(m.QueueDeclare(name), m.QueueDeclareOk)
            client.ask(m.QueueBind(name, "amq.fanout"), m.QueueBindOk)
        before = resident(broker)
        room = 64 * MIB
        set_watermark(broker, before + room)
        for _ in range(8):
            # 48 MiB each time, of small messages: their objects fill the interpreter's arenas.
            for _ in range(240):
                client.send(publish(1, "amq.fanout", "", BODY * 2) * 100)
            for name in names:
                client.ask(m.QueuePurge(name), m.QueuePurgeOk)
        assert not lines(broker, "memory is short")
        assert not [event for event in client.events if event.method == m.ConnectionBlocked]
        assert_serves(broker)


def test_an_alarm_of_the_disk_is_up_before_its_limit_is_set() -> None:
    with running_broker() as broker, RawClient(broker) as publisher:
        publisher.ask(m.QueueDeclare("q"), m.QueueDeclareOk)
        assert asked(broker, "config", "set", "disk_free_limit", "1000TiB").returncode == 0
        assert ask_overview(broker.data_dir)["shortages"] == ["disk"]
        assert eventually(lambda: lines(broker, "disk is short, publishers wait"))
        publisher.send(publish(1, "", "q", b"one"))
        publisher.until(m.ConnectionBlocked)
        assert asked(broker, "config", "set", "disk_free_limit", "1MiB").returncode == 0
        assert ask_overview(broker.data_dir)["shortages"] == []
        assert eventually(lambda: lines(broker, "disk is no longer short"))
        publisher.until(m.ConnectionUnblocked)
