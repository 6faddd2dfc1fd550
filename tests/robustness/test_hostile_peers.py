"""Peers that send what nobody should, or stop in the middle, harm nobody else."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from harebell.wire.v09 import methods as m
from tests.model.peer import HEADER, call, content, frame, login, publish
from tests.patience import eventually
from tests.robustness.raw import (
    MIB,
    RawClient,
    allocated,
    allow_files,
    assert_serves,
    open_files,
)
from tests.running import RunningBroker, running_broker

HANDSHAKE_SECONDS = 3
CROWD_SECONDS = 30


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        yield running
        assert "Traceback" not in running.log


@pytest.fixture(scope="module")
def hasty() -> Iterator[RunningBroker]:
    with running_broker("--handshake-timeout-seconds", str(HANDSHAKE_SECONDS)) as running:
        yield running


def _closed_with(client: RawClient) -> int:
    event = client.until(m.ConnectionClose)
    assert isinstance(event.method, m.ConnectionClose)
    return event.method.reply_code


# --- before login -------------------------------------------------------------------------------


BEGINNINGS = (b"", b"AM", HEADER, HEADER + login()[8:60])


def test_peers_that_do_not_log_in_are_cut_in_time(hasty: RunningBroker) -> None:
    begun = time.monotonic()
    peers = [RawClient(hasty, log_in=False) for _ in BEGINNINGS]
    for peer, beginning in zip(peers, BEGINNINGS, strict=True):
        peer.send(beginning)
    for peer, beginning in zip(peers, BEGINNINGS, strict=True):
        with peer:
            assert peer.ended(), f"still connected after {beginning!r}"
            assert time.monotonic() - begun > HANDSHAKE_SECONDS - 1


def test_a_thousand_half_open_connections_do_not_keep_others_out() -> None:
    allow_files(4096)
    with running_broker("--handshake-timeout-seconds", str(CROWD_SECONDS)) as crowded:
        files, before = open_files(crowded), allocated(crowded)
        peers = [RawClient(crowded, log_in=False) for _ in range(1000)]
        try:
            assert eventually(lambda: open_files(crowded) >= files + 1000, CROWD_SECONDS)
            assert_serves(crowded)
            assert open_files(crowded) >= files + 1000, "somebody was cut before it was served"
            assert allocated(crowded) - before < 40 * MIB
            assert eventually(lambda: open_files(crowded) <= files), "they are still held"
        finally:
            for peer in peers:
                peer.socket.close()
        assert_serves(crowded)


def test_another_protocol_is_answered_and_closed(broker: RunningBroker) -> None:
    with RawClient(broker, log_in=False) as client:
        client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.socket.recv(100) == HEADER
        assert client.ended()


# --- frames -------------------------------------------------------------------------------------


def test_a_frame_of_four_gigabytes_allocates_nothing(broker: RunningBroker) -> None:
    before = allocated(broker)
    with RawClient(broker) as client:
        client.send(b"\x01\x00\x01\xff\xff\xff\xff" + b"x" * 1000)
        assert _closed_with(client) == 501
        assert client.ended()
    assert allocated(broker) - before < 5 * MIB
    assert_serves(broker)


def test_a_body_announced_as_enormous_allocates_nothing(broker: RunningBroker) -> None:
    before = allocated(broker)
    with RawClient(broker) as client:
        head = b"\x00\x3c\x00\x00" + b"\x7f" + b"\xff" * 7 + b"\x00\x00"
        client.send(call(1, m.BasicPublish()) + frame(2, 1, head))
        assert _closed_with(client) == 501
    with RawClient(broker) as client:
        head = b"\x00\x3c\x00\x00" + (500 * MIB).to_bytes(8) + b"\x00\x00"
        client.send(call(1, m.BasicPublish()) + frame(2, 1, head))
        closed = client.until(m.ChannelClose)
        assert isinstance(closed.method, m.ChannelClose)
        assert closed.method.reply_code == 406
    assert allocated(broker) - before < 5 * MIB
    assert_serves(broker)


def test_a_body_longer_than_announced_closes_its_connection_only(broker: RunningBroker) -> None:
    with RawClient(broker) as other, RawClient(broker) as client:
        head = b"\x00\x3c\x00\x00" + (4).to_bytes(8) + b"\x00\x00"
        client.send(call(1, m.BasicPublish()) + frame(2, 1, head) + frame(3, 1, b"12345"))
        assert _closed_with(client) == 501
        other.ask(m.QueueDeclare(queue="", exclusive=True), m.QueueDeclareOk)


@pytest.mark.parametrize("tag", [b"F", b"A"], ids=["tables", "arrays"])
def test_deeply_nested_values_are_refused(broker: RunningBroker, tag: bytes) -> None:
    inner = b""
    while len(inner) < 100_000:
        name = b"\x01k" if tag == b"F" else b""
        inner = name + tag + len(inner).to_bytes(4) + inner
    if tag == b"A":
        inner = b"\x01k" + inner
    arguments = len(inner).to_bytes(4) + inner
    with RawClient(broker) as client:
        client.send(frame(1, 1, b"\x00\x32\x00\x0a\x00\x00\x01q\x00" + arguments))
        assert _closed_with(client) == 502
    with RawClient(broker) as client:
        client.send(call(1, m.BasicPublish()) + content(1, b"\x20\x00" + arguments, b""))
        assert _closed_with(client) == 505
    assert_serves(broker)


def test_a_body_of_a_hundred_thousand_tiny_frames_arrives_whole(broker: RunningBroker) -> None:
    size = 100_000
    body = bytes(n % 251 for n in range(size))
    before = allocated(broker)
    with RawClient(broker) as client:
        client.ask(m.QueueDeclare(queue="tiny", exclusive=True), m.QueueDeclareOk)
        client.send(publish(1, "", "tiny", body, frame_max=9))
        answer = client.ask(m.BasicGet(queue="tiny", no_ack=True), m.BasicGetOk)
        assert answer.body == body
    assert allocated(broker) - before < 40 * MIB


def test_empty_body_frames_without_end_cost_nothing(broker: RunningBroker) -> None:
    before = allocated(broker)
    with RawClient(broker) as client:
        head = b"\x00\x3c\x00\x00" + (1).to_bytes(8) + b"\x00\x00"
        client.ask(m.QueueDeclare(queue="empty", exclusive=True), m.QueueDeclareOk)
        client.send(call(1, m.BasicPublish(routing_key="empty")) + frame(2, 1, head))
        for _ in range(100):
            client.send(frame(3, 1, b"") * 5000)
        client.send(frame(3, 1, b"!"))
        answer = client.ask(m.BasicGet(queue="empty", no_ack=True), m.BasicGetOk)
        assert answer.body == b"!"
        assert allocated(broker) - before < 3 * MIB


# --- leaving ------------------------------------------------------------------------------------


def test_peers_that_vanish_inside_a_content_leave_nothing_behind(broker: RunningBroker) -> None:
    files = open_files(broker)
    whole = publish(1, "", "nowhere", b"x" * 50_000)
    for number in range(200):
        client = RawClient(broker)
        client.send(whole[: 7 + number * (len(whole) - 8) // 200])
        client.reset()
    assert eventually(lambda: open_files(broker) <= files), "connections are left"
    assert_serves(broker)


def test_a_consumer_that_vanishes_gives_its_messages_back(broker: RunningBroker) -> None:
    with RawClient(broker) as client:
        client.ask(m.QueueDeclare(queue="kept"), m.QueueDeclareOk)
        victim = RawClient(broker)
        victim.ask(m.BasicConsume(queue="kept"), m.BasicConsumeOk)
        client.send(b"".join(publish(1, "", "kept", b"%d" % n) for n in range(100)))
        victim.collect(lambda events: len(events) >= 100)
        victim.reset()

        def all_back() -> bool:
            method = m.QueueDeclare(queue="kept", passive=True)
            return bool(
                client.ask(method, m.QueueDeclareOk).method == m.QueueDeclareOk("kept", 100, 0)
            )

        assert eventually(all_back)
        client.send(call(1, m.BasicGet(queue="kept", no_ack=True)) * 100)
        events = client.collect(lambda found: len(found) >= 100)
        assert [event.body for event in events] == [b"%d" % n for n in range(100)]
        assert all(event.method.redelivered for event in events)  # type: ignore[attr-defined]
        client.ask(m.QueueDelete(queue="kept"), m.QueueDeleteOk)


def test_channels_are_many_and_then_enough(broker: RunningBroker) -> None:
    before = allocated(broker)
    with RawClient(broker) as client:
        client.send(b"".join(call(n, m.ChannelOpen()) for n in range(2, 2048)))
        opened = client.collect(lambda events: len(events) >= 2046)
        assert all(isinstance(event.method, m.ChannelOpenOk) for event in opened)
        assert allocated(broker) - before < 40 * MIB
        client.send(call(2048, m.ChannelOpen()))
        assert _closed_with(client) in (504, 530)
    assert_serves(broker)
