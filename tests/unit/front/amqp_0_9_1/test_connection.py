"""A connection's life as the shell sees it: hold and resume, heartbeats, deadlines, the end."""

from __future__ import annotations

import pytest

from harebell.base.limits import CLOSE_TIMEOUT_SECONDS
from harebell.front.limits import OUTPUT_STOP_BYTES, REFUSAL_PAUSE_SECONDS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import HEARTBEAT
from harebell.wire.v09.states import ConnectionState
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, World, frame, method_frame, publish


def test_input_waits_while_what_it_causes_is_not_read() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    body = b"x" * 130_000
    count = OUTPUT_STOP_BYTES // len(body) + 5
    for _ in range(count):
        peer.give(publish(body))
    peer.give(method_frame(m.BasicGet("q", no_ack=True)) * count)
    assert peer.connection.scanner.hold
    assert peer.connection.out.size < OUTPUT_STOP_BYTES + len(body) + 1000
    first = len(peer.bodies())
    assert first < count
    peer.connection.congested = True
    peer.connection.resume(world.now)
    assert peer.bodies() == [], "the peer does not read yet"
    peer.connection.congested = False
    peer.connection.resume(world.now)
    assert first + len(peer.bodies()) == count
    assert not peer.connection.scanner.hold


def test_heartbeats_go_out_only_when_nothing_else_did() -> None:
    world = World()
    peer = world.peer(heartbeat=10)
    world.now += 4.9
    peer.connection.tick(world.now)
    assert peer.frames() == []
    world.now += 0.2
    peer.connection.tick(world.now)
    assert peer.frames() == [(HEARTBEAT, 0, b"")]
    world.now += 4.9
    peer.connection.tick(world.now)
    assert peer.frames() == []


def test_a_peer_that_says_nothing_for_two_intervals_is_cut() -> None:
    world = World()
    peer = world.peer(heartbeat=10)
    world.now += 19.5
    peer.give(frame(HEARTBEAT, 0, b""))
    world.now += 19.5
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    world.now += 0.5
    peer.connection.tick(world.now)
    assert peer.connection.closing
    ending = "): missed heartbeats from client, timeout: 10s"
    assert any(level == "error" and text.endswith(ending) for level, text in world.log)


def test_a_peer_whose_octets_lie_unread_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    peer = world.peer(heartbeat=10)
    monkeypatch.setattr(peer, "unread", lambda: True)
    world.now += 25
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    monkeypatch.setattr(peer, "unread", lambda: False)
    peer.connection.tick(world.now)
    assert peer.connection.closing


def test_time_in_which_the_broker_stood_still_is_no_silence_of_a_peer() -> None:
    world = World()
    peer = world.peer(heartbeat=10)
    world.now += 100
    peer.connection.excuse(95)
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    world.now += 15
    peer.connection.tick(world.now)
    assert peer.connection.closing


def test_a_peer_that_is_not_read_is_not_blamed_for_silence() -> None:
    world = World(watermark=1000)
    peer = world.peer(heartbeat=10)
    peer.ask(m.QueueDeclare("q"))
    peer.give(publish(b"x" * 2000))
    assert peer.connection.paused
    for _ in range(10):
        world.now += 10
        peer.connection.tick(world.now)
    assert not peer.connection.closing


def test_without_heartbeats_silence_is_fine_for_ever() -> None:
    world = World()
    peer = world.peer(heartbeat=0)
    world.now += 10**6
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    assert peer.frames() == []


@pytest.mark.parametrize("said", [b"", HEADER_0_9_1[:4], HEADER_0_9_1])
def test_a_handshake_that_takes_too_long_is_cut(said: bytes) -> None:
    world = World(handshake_timeout=5.0)
    peer = world.connect()
    peer.give(said)
    world.now += 4.9
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    world.now += 0.2
    peer.connection.tick(world.now)
    assert peer.connection.closing
    assert any("handshake_timeout" in text for _, text in world.log)


def test_an_open_connection_has_no_deadline() -> None:
    world = World(handshake_timeout=5.0)
    peer = world.peer()
    world.now += 100
    peer.connection.tick(world.now)
    assert peer.ask(m.BasicQos(0, 1)) == m.BasicQosOk()


def test_a_forced_close_tells_why_and_waits_for_the_answer() -> None:
    world = World()
    peer = world.peer()
    peer.connection.force_close("VHOST TEST", world.now)
    (close,) = peer.methods()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 320
    assert close.reply_text == "CONNECTION_FORCED - VHOST TEST"
    assert not peer.connection.closing
    peer.give(publish(b"late"))
    peer.send(m.ConnectionCloseOk(), channel=0)
    assert peer.connection.closing
    assert peer.connection.state is ConnectionState.CLOSED


def test_a_peer_that_does_not_answer_close_is_cut_after_a_while() -> None:
    world = World()
    peer = world.peer()
    peer.connection.force_close("shutdown", world.now)
    world.now += CLOSE_TIMEOUT_SECONDS - 0.1
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    world.now += 0.2
    peer.connection.tick(world.now)
    assert peer.connection.closing


def test_a_forced_close_before_the_connection_is_open_just_ends_it() -> None:
    world = World()
    peer = world.connect()
    peer.give(HEADER_0_9_1)
    peer.frames()
    peer.connection.force_close("shutdown", world.now)
    assert peer.frames() == []
    assert peer.connection.closing


def test_a_wrong_login_that_cannot_be_told_is_cut_after_a_pause() -> None:
    world = World()
    peer = world.connect()
    peer.give(HEADER_0_9_1)
    peer.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0wrong", "en_US"), channel=0)
    assert [type(method).__name__ for method in peer.methods()] == ["ConnectionStart"]
    world.now += REFUSAL_PAUSE_SECONDS - 0.1
    peer.connection.tick(world.now)
    assert not peer.connection.closing
    world.now += 0.2
    peer.connection.tick(world.now)
    assert peer.connection.closing


def test_a_header_in_pieces_with_more_behind_it_is_taken() -> None:
    world = World()
    peer = world.connect()
    for at in range(8):
        peer.give(HEADER_0_9_1[at : at + 1])
    (start,) = peer.methods()
    assert isinstance(start, m.ConnectionStart)


def test_a_wrong_header_is_answered_with_the_right_one() -> None:
    world = World()
    peer = world.connect()
    peer.give(b"GET / HTTP/1.1\r\n\r\n")
    assert peer.connection.take_output(world.now) == HEADER_0_9_1
    assert peer.connection.closing


def test_a_peer_that_vanishes_leaves_nothing_behind() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("shared"))
    peer.ask(m.QueueDeclare("mine", exclusive=True))
    peer.give(publish(b"1", "shared"))
    peer.send(m.BasicConsume("shared", "c"))
    assert peer.bodies() == [b"1"]
    queue = world.broker.vhosts["/"].queues["shared"]
    assert queue.unacked == 1
    peer.connection.eof()
    assert (queue.unacked, queue.ready_count(), len(queue.consumers)) == (0, 1, 0)
    assert set(world.broker.vhosts["/"].queues) == {"shared"}
    assert world.registry.connections == set()
    assert any(
        level == "warning" and "client unexpectedly closed TCP connection" in text
        for level, text in world.log
    )


def test_input_after_the_end_is_not_parsed() -> None:
    world = World()
    peer = world.peer()
    assert peer.ask(m.ConnectionClose(200, "bye"), channel=0) == m.ConnectionCloseOk()
    peer.give(b"\xff" * 100)
    assert peer.frames() == []
    assert peer.connection.closing


def test_our_own_fault_closes_with_541_and_is_in_the_log_only() -> None:
    world = World()
    peer = world.peer()

    def broken(size: int) -> bytes:
        raise ZeroDivisionError("secret detail")

    world.settings.rng = broken
    (close,) = (peer.send(m.QueueDeclare("")), peer.methods())[1]
    assert isinstance(close, m.ConnectionClose)
    assert (close.reply_code, close.reply_text) == (541, "INTERNAL_ERROR - internal error")
    assert any("ZeroDivisionError: secret detail at" in text for _, text in world.log)
