"""Peers that do not read, and peers that write more than anybody takes, cost a bounded amount."""

from __future__ import annotations

import select
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from harebell.management.control.client import ask_overview
from harebell.store.limits import SHARED_BY_QUEUES
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import call, publish
from tests.patience import eventually
from tests.robustness.raw import MIB, PATIENCE, RawClient, allocated, assert_serves, resident
from tests.running import RunningBroker, running_broker, set_watermark

BODY = b"x" * 1000
HELD_SECONDS = 0.3
"""Shorter than the time between two looks at the memory, which may let a publisher go on."""
SHARING_QUEUES = 3 * SHARED_BY_QUEUES
"""As many that messages stay in memory, though some of the queues write a segment to disk."""


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
        before = allocated(broker)
        with RawClient(broker, receive_buffer=65_536) as consumer:
            consumer.ask(m.BasicConsume(queue="slow", no_ack=True), m.BasicConsumeOk)
            time.sleep(1.0)
            grown = allocated(broker) - before
            assert grown < 12 * MIB, f"{grown} octets more for a consumer that does not read"
            assert_serves(broker)
            bodies = consumer.collect(lambda events: len(events) >= count)
        assert [event.body[:8] for event in bodies] == [b"%08d" % n for n in range(count)]


def test_answers_that_nobody_reads_are_bounded() -> None:
    size, count, asked = 200_000, 200, 4000
    with running_broker() as broker:
        _fill(broker, "big", count, b"x" * size)
        before = allocated(broker)
        with RawClient(broker, receive_buffer=65_536) as client:
            client.send(call(1, m.BasicGet(queue="big", no_ack=False)) * asked)
            time.sleep(1.0)
            grown = allocated(broker) - before
            assert grown < 25 * MIB, f"{grown} octets more for answers that nobody reads"
            assert_serves(broker)
            answers = client.collect(lambda events: len(events) >= asked)
        found = [e.body[:8] for e in answers if isinstance(e.method, m.BasicGetOk)]
        assert found == [b"%08d" % n for n in range(count)]
        assert sum(isinstance(e.method, m.BasicGetEmpty) for e in answers) == asked - count


def _fan_out(client: RawClient, names: list[str]) -> None:
    """Declare queues that share what is published: each of them would write a copy to disk."""
    for name in names:
        client.ask(m.QueueDeclare(queue=name), m.QueueDeclareOk)
        client.ask(m.QueueBind(name, "amq.fanout"), m.QueueBindOk)


def _push(client: RawClient, limit: int) -> tuple[int, bytes]:
    """Publish until it is blocked and nothing is read: messages begun, and what is left of them."""
    block = publish(1, "amq.fanout", "", BODY) * 50
    sent, rest = 0, b""
    blocked = False
    while sent < limit:
        patience = HELD_SECONDS if blocked else PATIENCE
        readable, writable, _ = select.select([client.socket], [client.socket], [], patience)
        if readable:
            found = client.read()
            names = [event.method.NAME for event in found]
            assert set(names) <= {"connection.blocked", "connection.unblocked"}, names
            # What the allocator gives back may let it go on for a moment.
            blocked = [blocked, *(name == "connection.blocked" for name in names)][-1]
        elif writable:
            if not rest:
                rest, sent = block, sent + 50
            rest = rest[client.socket.send(rest) :]
        else:
            assert blocked, "the broker reads no more and did not say so"
            return sent, rest
    raise AssertionError(f"{sent} messages were taken and the publisher was never held back")


def test_a_publisher_that_outruns_everything_is_blocked_and_let_go_again() -> None:
    room = 12 * MIB
    with running_broker() as broker:
        with RawClient(broker) as publisher, RawClient(broker) as consumer:
            names = ["flood", *(f"other-{number}" for number in range(SHARING_QUEUES - 1))]
            _fan_out(publisher, names)
            before = resident(broker)
            set_watermark(broker, before + room)
            sent, rest = _push(publisher, 400_000)
            assert resident(broker) - before < 3 * room

            # Others are still served, and taking messages away lets the publisher go.
            for name in names[1:]:
                consumer.ask(m.QueuePurge(queue=name), m.QueuePurgeOk)
            consumer.ask(m.BasicConsume(queue="flood", no_ack=True), m.BasicConsumeOk)
            # The last of the blocks that were begun may be on its way.
            got = consumer.collect(lambda events: len(events) >= min(5000, sent - 50))
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
    names = [f"flood-{number}" for number in range(SHARING_QUEUES)]
    with running_broker() as broker:
        with RawClient(broker) as publisher:
            _fan_out(publisher, names)
            set_watermark(broker, resident(broker) + 4 * MIB)
            _push(publisher, 200_000)
            publisher.reset()
        with RawClient(broker) as other:

            def emptied() -> bool:
                for name in names:
                    other.ask(m.QueuePurge(queue=name), m.QueuePurgeOk)
                last = m.QueueDeclare(queue=names[-1], passive=True)
                answer = other.ask(last, m.QueueDeclareOk)
                return bool(answer.method == m.QueueDeclareOk(names[-1], 0, 0))

            assert eventually(emptied)
        assert eventually(lambda: not ask_overview(broker.data_dir)["memory_alarm"])
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
            used = ask_overview(broker.data_dir)["memory_messages_bytes"]
            assert 2 * len(body) < used < 2 * len(body) + MIB
            for name in names:
                purged = client.ask(m.QueuePurge(name), m.QueuePurgeOk)
                assert purged.method == m.QueuePurgeOk(2)
        assert eventually(lambda: ask_overview(broker.data_dir)["memory_messages_bytes"] == 0)
