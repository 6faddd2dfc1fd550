"""Accepted sockets: back-pressure from the peer's side, and ends that lose no frame."""

from __future__ import annotations

import contextlib
import random
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.wire.v09 import methods as m
from tests.patience import eventually
from tests.running import RunningBroker, running_broker, set_watermark
from tests.unit.front.amqp_0_9_1.world import publish
from tests.unit.server.listening import SECONDS, Talker, frame, talk

BODY = b"x" * 100_000


@pytest.fixture(params=["asyncio", "uvloop"])
def broker(request: pytest.FixtureRequest) -> Iterator[RunningBroker]:
    with running_broker("--loop", request.param) as started:
        yield started


def resident_mib(pid: int) -> float:
    """What a process has, without the pages of its files, which come and go."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def passive(talker: Talker, queue: str) -> m.QueueDeclareOk:
    talker.send(m.QueueDeclare(queue, passive=True), 1)
    answer = talker.next()
    assert isinstance(answer, m.QueueDeclareOk)
    return answer


def test_an_error_reaches_a_peer_that_goes_on_sending(broker: RunningBroker) -> None:
    # A close with unread input would become a reset, which can destroy the last frames.
    talker = talk(broker.port).open_channel()
    # The broker reads it away, but not from one who stands still for longer than the linger.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        talker.sock.sendall(b"\x01\x00\x01\x00\x00\x00\x04abcd\x00" + b"y" * 2_000_000)
    close = talker.next()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 501
    assert talker.next() is None


def send_beats(talker: Talker, until: float) -> None:
    while time.monotonic() < until:
        talker.sock.sendall(b"\x08\x00\x00\x00\x00\x00\x00\xce")
        time.sleep(0.05)


def test_a_peer_that_does_not_end_its_side_is_cut_after_the_linger(broker: RunningBroker) -> None:
    talker = talk(broker.port)
    talker.send(m.ConnectionClose(200, "bye"))
    assert talker.next() == m.ConnectionCloseOk()
    assert talker.next() is None
    until = time.monotonic() + SECONDS
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        send_beats(talker, until)


def test_a_consumer_that_does_not_read_does_not_fill_the_broker(broker: RunningBroker) -> None:
    publisher = talk(broker.port).open_channel()
    publisher.send(m.QueueDeclare("q"), 1)
    publisher.next()
    deaf = talk(broker.port).open_channel()
    deaf.send(m.BasicConsume("q", "c", no_ack=True), 1)
    assert deaf.next() == m.BasicConsumeOk("c")
    before = resident_mib(broker.process.pid)
    count = 400
    for _ in range(count):
        publisher.sock.sendall(publish(BODY))
    waiting = passive(publisher, "q").message_count
    assert waiting > count // 2, "what the peer does not take stays in the queue"
    assert resident_mib(broker.process.pid) < before + 1.5 * count * len(BODY) / 2**20 + 20
    got = 0
    while got < count:
        assert isinstance(deaf.next(), m.BasicDeliver)
        got += 1
    assert passive(publisher, "q").message_count == 0


def test_a_large_message_comes_whole_and_what_follows_behind_it(broker: RunningBroker) -> None:
    large = random.Random(1).randbytes(20_000_000)
    publisher = talk(broker.port).open_channel()
    publisher.send(m.QueueDeclare("q"), 1)
    publisher.next()
    slow = talk(broker.port).open_channel()
    for body in (large, b"small", large, b"last"):
        publisher.sock.sendall(publish(body))
    passive(publisher, "q")
    slow.send(m.BasicConsume("q", "c", no_ack=True), 1)
    assert slow.next() == m.BasicConsumeOk("c")
    time.sleep(0.3)
    for body in (large, b"small", large):
        assert isinstance(slow.next(), m.BasicDeliver)
        assert slow.body() == body
    time.sleep(0.3)
    # The end comes while nothing is read, and goes behind what there is.
    slow.send(m.ConnectionClose(200, "bye"))
    found = slow.next()
    if isinstance(found, m.BasicDeliver):
        assert slow.body() == b"last"
        found = slow.next()
    assert found == m.ConnectionCloseOk()
    assert slow.next() is None


def test_a_peer_that_asks_and_does_not_read_is_not_read_from(broker: RunningBroker) -> None:
    talker = talk(broker.port).open_channel()
    talker.send(m.QueueDeclare("q"), 1)
    talker.next()
    count = 300
    for _ in range(count):
        talker.sock.sendall(publish(BODY))
    assert passive(talker, "q").message_count == count
    asking = talk(broker.port).open_channel()
    asking.sock.sendall(frame(m.BasicGet("q", no_ack=True), 1) * count)
    assert eventually(lambda: passive(talker, "q").message_count < count)
    time.sleep(0.3)
    assert passive(talker, "q").message_count > count // 2
    for _ in range(count):
        assert isinstance(asking.next(), m.BasicGetOk)
    assert passive(talker, "q").message_count == 0


def test_a_publisher_over_the_watermark_is_held_and_goes_on_afterwards() -> None:
    with running_broker() as broker:
        publisher, other = talk(broker.port).open_channel(), talk(broker.port).open_channel()
        publisher.send(m.QueueDeclare("q"), 1)
        publisher.next()
        set_watermark(broker, 0)
        publisher.sock.settimeout(0.5)
        octets = memoryview(b"".join(publish(BODY) for _ in range(400)))
        sent, held, more = 0, -1, passive(other, "q").message_count
        # It is held back when half a second goes by in which nothing is taken any more. The broker
        # may hold it back before its first message is whole.
        while more != held:
            held = more
            with contextlib.suppress(TimeoutError):
                while sent < len(octets):
                    sent += publisher.sock.send(octets[sent:])
            assert sent < len(octets), "the broker did not stop reading"
            more = passive(other, "q").message_count
        assert held < 100
        set_watermark(broker, 0.9)
        publisher.sock.settimeout(SECONDS)
        assert publisher.sock.send(octets[sent:]) > 0
        publisher.sock.close()
        other.sock.close()


def test_a_peer_that_vanishes_is_noticed(broker: RunningBroker) -> None:
    gone, stays = talk(broker.port).open_channel(), talk(broker.port).open_channel()
    gone.send(m.QueueDeclare("mine", exclusive=True), 1)
    gone.next()
    gone.sock.shutdown(socket.SHUT_WR)
    assert gone.next() is None
    until = time.monotonic() + SECONDS
    while True:
        stays.send(m.QueueDeclare("mine"), 1)
        answer = stays.next()
        if isinstance(answer, m.QueueDeclareOk) or time.monotonic() > until:
            break
        stays.send(m.ChannelCloseOk(), 1)
        stays.open_channel()
    assert answer == m.QueueDeclareOk("mine", 0, 0)
