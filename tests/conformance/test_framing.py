"""Frames: their shape, their size, and what happens to a connection whose frames are broken.

Where the specification has the connection die in silence (4.2.3), Harebell does as RabbitMQ and
says connection.close with 501 before it ends the connection; see docs/protocols/compatibility.md.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.frames import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    body,
    content_header,
    frame,
)
from tests.conformance.raw import Peer, encoded, publish_octets
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]
FRAME_MIN = 4_096
FUDGE = 8
"""Octets over frame-max that are let pass: some clients forget the frame's own eight."""


def frame_error(kind: int, why: str) -> str:
    return f"FRAME_ERROR - type {kind}, all octets = <<>>: {why}"


# --- broken frames --------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#032")
@pytest.mark.departs("0-9-1#034")
@pytest.mark.parametrize("end", [0x00, 0xCD, 0xCF, 0xEC, 0xFF])
def test_a_frame_that_does_not_end_in_ce_costs_the_connection(peer: Peer, end: int) -> None:
    declare = encoded(m.QueueDeclare(queue="q", nowait=True))
    peer.send_bytes(declare[:-1], bytes((end,)), encoded(m.QueueDeclare(queue="q")))
    peer.expect_connection_close(501, frame_error(1, f"{{invalid_frame_end_marker,{end}}}"))


@pytest.mark.rule("0-9-1#032")
def test_the_frame_end_is_looked_at_before_anything_is_decoded(memory_peer: Peer) -> None:
    declare = encoded(m.QueueDeclare(queue="q", nowait=True))
    memory_peer.send_bytes(declare[:-1], b"\x00")
    memory_peer.expect_connection_close(501, frame_error(1, "{invalid_frame_end_marker,0}"))
    assert not memory_peer.site.broker.vhosts["/"].queues


@pytest.mark.departs("0-9-1#033")
@pytest.mark.parametrize("kind", [0, 4, 5, 6, 7, 9, 77, 255])
@pytest.mark.parametrize("channel", [0, 1, 9])
def test_a_frame_of_unknown_type_costs_the_connection(peer: Peer, kind: int, channel: int) -> None:
    peer.send_bytes(frame(kind, channel, b"what is it"))
    peer.expect_connection_close(501, frame_error(kind, "unknown_frame"))


@pytest.mark.rule("0-9-1#035")
def test_details_of_a_broken_frame_are_logged(memory_peer: Peer, memory: MemorySite) -> None:
    memory_peer.send_bytes(frame(1, 1, b"\0\x0a\0\x0b", end=0x99))
    memory_peer.expect_connection_close(501, frame_error(1, "{invalid_frame_end_marker,153}"))
    assert memory.logged("127.0.0.1:50000", "invalid_frame_end_marker,153")


@pytest.mark.rule("0-9-1#007", "0-9-1#037")
@pytest.mark.parametrize("kind", [METHOD, HEADER, BODY])
@pytest.mark.parametrize("frame_max", [FRAME_MIN, 10_000, 131_072])
def test_a_frame_over_the_agreed_size_is_answered_with_501(
    connect: Connect, kind: int, frame_max: int
) -> None:
    peer = connect().open(frame_max=frame_max)
    size = frame_max - 8 + FUDGE + 1
    peer.send_bytes(frame(kind, 1, bytes(size)))
    why = f"{{frame_too_large,{size},{frame_max - 8}}}"
    peer.expect_connection_close(501, frame_error(kind, why))


@pytest.mark.rule("0-9-1#037")
def test_an_oversized_frame_is_told_from_its_head_alone(peer: Peer) -> None:
    peer.send_bytes(b"\x03\x00\x01\xff\xff\xff\xff")
    peer.expect_connection_close(501, frame_error(3, "{frame_too_large,4294967295,131064}"))


@pytest.mark.parametrize("over", [0, 1, FUDGE])
def test_a_frame_of_the_agreed_size_and_a_little_more_is_taken(connect: Connect, over: int) -> None:
    peer = connect().open(frame_max=FRAME_MIN)
    peer.queue("q")
    text = bytes(FRAME_MIN - 8 + over)
    peer.send_bytes(encoded(m.BasicPublish(routing_key="q")), content_header(len(text)), body(text))
    assert peer.get("q").body == text


# --- frame-max in both directions -----------------------------------------------------------------


@pytest.mark.rule("0-9-1#009", "0-9-1#010")
@pytest.mark.parametrize("frame_max", [FRAME_MIN, 5_000, 131_072])
@pytest.mark.parametrize("size", [0, 1, 4_087, 4_088, 4_089, 8_176, 300_000])
def test_bodies_are_cut_to_the_readers_frame_max_and_no_smaller(
    connect: Connect, frame_max: int, size: int
) -> None:
    # The reader of `peer` itself fails the test on any frame over `frame_max`.
    peer = connect().open(frame_max=frame_max)
    text = bytes(at % 251 for at in range(size))
    peer.queue("q")
    peer.publish("", "q", text)
    found = peer.get("q")
    assert found.body == text
    limit = frame_max - 8
    assert found.pieces == tuple(min(limit, size - at) for at in range(0, size, limit))


def test_writer_and_reader_may_have_different_frame_max(connect: Connect) -> None:
    writer, reader = connect().open(), connect().open(frame_max=FRAME_MIN)
    reader.queue("q")
    reader.consume("q", no_ack=True)
    writer.publish("", "q", b"x" * 100_000)
    found = reader.expect_delivery(b"x" * 100_000)
    assert max(found.pieces) == FRAME_MIN - 8


@pytest.mark.rule("0-9-1r#011")
def test_before_tuning_frames_of_the_minimal_size_are_taken(connect: Connect) -> None:
    peer = connect()
    start = peer.greet()
    assert start.mechanisms
    spare = FRAME_MIN - len(encoded(m.ConnectionStartOk({"x": ""}, "PLAIN", b"\0guest\0guest")))
    padded = m.ConnectionStartOk({"x": "p" * spare}, "PLAIN", b"\0guest\0guest")
    assert len(encoded(padded)) == FRAME_MIN
    peer.send(padded)
    tune = peer.expect(m.ConnectionTune)
    assert tune.frame_max >= FRAME_MIN


def test_before_tuning_much_longer_frames_are_not_even_waited_for(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.send_bytes(b"\x01\x00\x00\x00\x01\x00\x00")
    peer.expect_closed()


# --- octets arrive as they like -------------------------------------------------------------------


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 11, 64])
def test_octets_may_arrive_in_pieces_of_any_size(peer: Peer, step: int) -> None:
    peer.queue("q")
    properties = BasicProperties(content_type="text/plain", headers={"k": "v"})
    octets = b"".join(
        (
            publish_octets("", "q", b"first", properties),
            frame(HEARTBEAT, 0),
            publish_octets("", "q", b""),
            encoded(m.QueueDeclare(queue="q", passive=True)),
        )
    )
    for at in range(0, len(octets), step):
        peer.send_bytes(octets[at : at + step])
    peer.expect(m.QueueDeclareOk, message_count=2)
    first = peer.get("q")
    assert (first.body, first.properties) == (b"first", properties)
    assert peer.get("q").body == b""


@pytest.mark.parametrize("cut", range(0, 48, 5))
def test_the_handshake_may_arrive_in_pieces(connect: Connect, cut: int) -> None:
    peer = connect()
    octets = b"AMQP\x00\x00\x09\x01" + encoded(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest"))
    peer.send_bytes(octets[:cut])
    peer.send_bytes(octets[cut:])
    peer.expect(m.ConnectionStart)
    peer.expect(m.ConnectionTune)


@pytest.mark.rule("0-9-1#040")
@pytest.mark.parametrize("shift", range(9))
def test_numbers_are_read_wherever_they_start(peer: Peer, shift: int) -> None:
    # Names of growing length push every number behind them to another alignment.
    peer.queue("q")
    headers = {
        "n" * (shift + 1): 1,
        "l" * (shift + 2): -(2**40),
        "d" * (shift + 3): 1.5,
        "a": [1, "x" * shift, 2**33],
    }
    properties = BasicProperties(content_type="c" * shift, headers=headers, timestamp=2**40)
    peer.publish("", "q", b"x" * shift, properties)
    found = peer.get("q").properties
    assert (found.headers, int(found.timestamp)) == (headers, 2**40)
    queue = "w" * (shift + 1)
    peer.queue(queue, arguments={"a" * shift + "a": 7, "x-message-ttl": 2**35})
    peer.send(m.QueueDeclare(queue=queue, arguments={"x-message-ttl": 2**35 + 1}))
    text = f"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '{queue}' in vhost "
    text += f"'/': received '{2**35 + 1}' but current is '{2**35}'"
    peer.expect_channel_close(406, text, "queue.declare")


# --- fields that do not fit -----------------------------------------------------------------------


def method_frame(octets: str, channel: int = 1) -> bytes:
    return frame(METHOD, channel, bytes.fromhex(octets))


@pytest.mark.parametrize(
    ("octets", "code", "at"),
    [
        ("00", 502, (0, 0)),
        ("0032 000a", 502, "queue.declare"),
        ("0032 000a 0000 05 61", 502, "queue.declare"),
        ("0032 000a 0000 01 61 00 000000ff", 502, "queue.declare"),
        ("0032 000a 0000 01 61 00 00000000 00", 502, "queue.declare"),
        ("0032 000a 0000 01 61 00 00000004 01 61 3f 00", 502, "queue.declare"),
        ("003c 0050 00", 502, "basic.ack"),
        ("1234 0001", 503, (0x1234, 1)),
        ("0032 00ff", 540, (50, 255)),
    ],
)
def test_a_method_that_cannot_be_read_costs_the_connection(
    peer: Peer, octets: str, code: int, at: str | tuple[int, int]
) -> None:
    peer.send_bytes(method_frame(octets))
    close = peer.expect(m.ConnectionClose, reply_code=code)
    wanted = at if isinstance(at, tuple) else {"queue.declare": (50, 10), "basic.ack": (60, 80)}[at]
    assert (close.class_id, close.method_id) == wanted
    peer.opened = False
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()


# --- heartbeats -----------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#050")
@pytest.mark.parametrize("payload", [b"\0", b"alive"])
def test_a_heartbeat_with_a_payload_is_a_frame_error(peer: Peer, payload: bytes) -> None:
    peer.send_bytes(frame(HEARTBEAT, 0, payload))
    peer.expect_connection_close(501, frame_error(8, "unknown_frame"))


@pytest.mark.departs("0-9-1#039")
@pytest.mark.parametrize("channel", [1, 2, 65_535])
def test_a_heartbeat_on_a_channel_is_unexpected(peer: Peer, channel: int) -> None:
    peer.send_bytes(frame(HEARTBEAT, channel))
    peer.expect_connection_close(505, f"UNEXPECTED_FRAME - heartbeat frame on channel {channel}")


@pytest.mark.rule("0-9-1#051")
def test_heartbeats_are_swallowed_by_a_broker_that_sends_none(
    memory_peer: Peer, memory: MemorySite
) -> None:
    for _ in range(10):
        memory_peer.send_bytes(frame(HEARTBEAT, 0))
        memory.pass_time(600)
    memory_peer.expect_silence()
    memory_peer.queue("q")


@pytest.mark.rule("0-9-1#038", "0-9-1#049")
def test_the_broker_sends_heartbeats_on_channel_0_while_it_has_nothing_to_say(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open(heartbeat=10)
    for _ in range(6):
        memory.pass_time(5)
        peer.expect_heartbeat()
        peer.send_bytes(frame(HEARTBEAT, 0))
    peer.expect_silence()


def test_anything_the_broker_sends_counts_as_its_heartbeat(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open(heartbeat=10)
    peer.queue("q")
    for _ in range(10):
        memory.pass_time(3)
        peer.send(m.BasicGet(queue="q"))
        peer.expect(m.BasicGetEmpty)
    peer.expect_silence()


@pytest.mark.parametrize(
    "alive", [frame(HEARTBEAT, 0), encoded(m.BasicRecoverAsync(True)), b"\x01"]
)
def test_any_octet_of_the_client_counts_as_its_heartbeat(
    connect_memory: Connect, memory: MemorySite, alive: bytes
) -> None:
    peer = connect_memory().open(heartbeat=10)
    octets = alive if len(alive) > 1 else encoded(m.BasicRecoverAsync(True))[:7]
    pieces = [octets] * 7 if len(alive) > 1 else [octets[at : at + 1] for at in range(7)]
    for piece in pieces:
        memory.pass_time(15)
        while peer.reader.next() or peer.wire.arrived:
            peer.reader.data += peer.wire.read(0) or b""
        peer.send_bytes(piece)
    assert not peer.wire.connection.closing


@pytest.mark.parametrize("heartbeat", [1, 10, 60])
def test_a_client_that_falls_silent_for_two_intervals_is_dropped(
    connect_memory: Connect, memory: MemorySite, heartbeat: int
) -> None:
    peer = connect_memory().open(heartbeat=heartbeat)
    queue = peer.queue("", exclusive=True)
    memory.pass_time(heartbeat * 2 - 0.5)
    assert not peer.wire.connection.closing
    memory.pass_time(0.5)
    while (found := peer.reader.next()) or peer.wire.arrived:
        peer.reader.data += peer.wire.read(0) or b""
        assert found is None or found.kind == HEARTBEAT
    peer.expect_closed()
    assert memory.logged("missed heartbeats from client", f"timeout: {heartbeat}s")
    assert queue not in memory.broker.vhosts["/"].queues


def test_over_a_socket_heartbeats_flow_in_real_time(broker_process: object) -> None:
    site = broker_process
    # A test that gets no processor for two intervals is rightly dropped.
    peer = Peer(site, site.connect()).open(heartbeat=3, channels=())
    peer.expect_heartbeat()
    peer.send_bytes(frame(HEARTBEAT, 0))
    peer.expect_heartbeat()
    peer.wire.drop()  # without `done`: the next heartbeat may be on its way
