"""Peers that do not read, and peers that write more than anybody takes, cost a bounded amount."""

from __future__ import annotations

import select
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from harebell.server.control.client import ask_overview
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import call, publish
from tests.patience import eventually
from tests.robustness.raw import MIB, PATIENCE, RawClient, assert_serves, resident
from tests.running import RunningBroker, running_broker

BODY = b"x" * 1000
HELD_SECONDS = 1.0


def _fill(broker: RunningBroker, queue: str, count: int, body: bytes) -> None:
    with RawClient(broker) as client:
        client.ask(m.QueueDeclare(queue=queue), m.QueueDeclareOk)
        for start in range(0, count, 100):
            numbers = range(start, min(start + 100, count))
            client.send(b"".join(publish(1, "", queue, b"%08d" % n + body) for n in numbers))
        ready = client.ask(m.QueueDeclare(queue=queue, passive=True), m.QueueDeclareOk)
        assert ready.method == m.QueueDeclareOk(queue, count, 0)


def test_a_consumer_that_does_not_read_holds_little_and_loses_nothing() -> None:
    count = 40_000
    with running_broker() as broker:
        _fill(broker, "slow", count, BODY)
        before = resident(broker)
        with RawClient(broker, receive_buffer=65_536) as consumer:
            consumer.ask(m.BasicConsume(queue="slow", no_ack=True), m.BasicConsumeOk)
            time.sleep(1.0)
            grown = resident(broker) - before
            assert grown < 12 * MIB, f"{grown} octets more for a consumer that does not read"
            assert_serves(broker)
            bodies = consumer.collect(lambda events: len(events) >= count)
        assert [event.body[:8] for event in bodies] == [b"%08d" % n for n in range(count)]


def test_answers_that_nobody_reads_are_bounded() -> None:
    size, count, asked = 200_000, 200, 4000
    with running_broker() as broker:
        _fill(broker, "big", count, b"x" * size)
        before = resident(broker)
        with RawClient(broker, receive_buffer=65_536) as client:
            client.send(call(1, m.BasicGet(queue="big", no_ack=False)) * asked)
            time.sleep(1.0)
            grown = resident(broker) - before
            assert grown < 25 * MIB, f"{grown} octets more for answers that nobody reads"
            assert_serves(broker)
            answers = client.collect(lambda events: len(events) >= asked)
        found = [e.body[:8] for e in answers if isinstance(e.method, m.BasicGetOk)]
        assert found == [b"%08d" % n for n in range(count)]
        assert sum(isinstance(e.method, m.BasicGetEmpty) for e in answers) == asked - count


def _push(client: RawClient, queue: str, limit: int) -> tuple[int, bytes]:
    """Publish until it is blocked and nothing is read: messages begun, and what is left of them."""
    block = publish(1, "", queue, BODY) * 50
    sent, rest = 0, b""
    blocked = False
    while sent < limit:
        patience = HELD_SECONDS if blocked else PATIENCE
        readable, writable, _ = select.select([client.socket], [client.socket], [], patience)
        if readable:
            found = client.read()
            assert [event.method.NAME for event in found] == ["connection.blocked"]
            blocked = True
        elif writable:
            if not rest:
                rest, sent = block, sent + 50
            rest = rest[client.socket.send(rest) :]
        else:
            assert blocked, "the broker reads no more and did not say so"
            return sent, rest
    raise AssertionError(f"{sent} messages were taken and the publisher was never held back")


def test_a_publisher_that_outruns_everything_is_blocked_and_let_go_again() -> None:
    # Below what a queue keeps in memory before it writes to disk.
    watermark = 12 * MIB
    with running_broker("--memory-high-watermark", str(watermark)) as broker:
        with RawClient(broker) as publisher, RawClient(broker) as consumer:
            publisher.ask(m.QueueDeclare(queue="flood"), m.QueueDeclareOk)
            before = resident(broker)
            sent, rest = _push(publisher, "flood", 400_000)
            assert sent * len(BODY) < watermark + 24 * MIB
            assert resident(broker) - before < 3 * watermark

            # Others are still served, and taking messages away lets the publisher go.
            consumer.ask(m.BasicConsume(queue="flood", no_ack=True), m.BasicConsumeOk)
            got = consumer.collect(lambda events: len(events) >= 5000)
            # What this publishes waits when the publisher has filled the memory again.
            with ThreadPoolExecutor(1) as pool:
                served = pool.submit(assert_serves, broker)
                publisher.socket.setblocking(False)
                while len(got) < sent:
                    if rest:
                        with suppress(BlockingIOError):
                            rest = rest[publisher.socket.send(rest) :]
                    got += consumer.read()
                served.result()
            assert len(got) == sent
            assert all(event.body == BODY for event in got)
            publisher.socket.settimeout(PATIENCE)
            publisher.until(m.ConnectionUnblocked)
            publisher.ask(m.QueueDeclare(queue="flood", passive=True), m.QueueDeclareOk)
        assert_serves(broker)


def test_a_blocked_publisher_that_leaves_is_forgotten() -> None:
    with running_broker("--memory-high-watermark", str(4 * MIB)) as broker:
        with RawClient(broker) as publisher:
            publisher.ask(m.QueueDeclare(queue="flood"), m.QueueDeclareOk)
            _push(publisher, "flood", 200_000)
            publisher.reset()
        with RawClient(broker) as other:

            def emptied() -> bool:
                other.ask(m.QueuePurge(queue="flood"), m.QueuePurgeOk)
                answer = other.ask(m.QueueDeclare(queue="flood", passive=True), m.QueueDeclareOk)
                return bool(answer.method == m.QueueDeclareOk("flood", 0, 0))

            assert eventually(emptied)
        assert_serves(broker)


def test_one_large_message_in_many_queues_blocks_no_publisher() -> None:
    """Whether queues have the same object, copies of their own, or got it by CC."""
    body, queues = b"x" * (4 * MIB), 200
    with running_broker("--memory-high-watermark", "128MiB") as broker:
        with RawClient(broker) as client:
            client.ask(m.ExchangeDeclare("wide", "fanout"), m.ExchangeDeclareOk)
            names = [f"wide-{number}" for number in range(queues)]
            for number, name in enumerate(names):
                # A queue with a time to live keeps a copy of the message, with the same body.
                arguments = {"x-message-ttl": 600_000} if number % 2 else {}
                client.ask(m.QueueDeclare(name, arguments=arguments), m.QueueDeclareOk)
                client.ask(m.QueueBind(name, "wide"), m.QueueBindOk)
            client.ask(m.ConfirmSelect(), m.ConfirmSelectOk)
            client.send(publish(1, "wide", "", body))
            client.until(m.BasicAck)
            listed = BasicProperties(headers={"CC": names[1:]})
            client.send(publish(1, "", names[0], body, properties=listed))
            client.until(m.BasicAck)
            used = ask_overview(broker.data_dir)["memory_used_bytes"]
            assert 2 * len(body) < used < 2 * len(body) + MIB
            for name in names:
                purged = client.ask(m.QueuePurge(name), m.QueuePurgeOk)
                assert purged.method == m.QueuePurgeOk(2)
        assert eventually(lambda: ask_overview(broker.data_dir)["memory_used_bytes"] == 0)
