"""The class connection: from the header to open, and the end (class 10)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.base.limits import FRAME_MIN_BYTES
from harebell.wire.v09 import methods as m
from harebell.wire.v09.typed_fields import FieldDialect, encode_typed
from tests.conformance.frames import HEARTBEAT, METHOD, frame
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.peer import HEADER_PREVIEW, SPEC, Peer

Connect = Callable[[], Peer]


def test_the_server_speaks_at_once_and_echoes_no_header(connect: Connect):
    start = connect().greet()
    assert (start.version_major, start.version_minor) == (0, 10)


def test_the_header_may_come_octet_by_octet(connect: Connect):
    peer = connect()
    for octet in HEADER_PREVIEW:
        peer.send_bytes(bytes((octet,)))
    peer.expect(m.ConnectionStart)


@pytest.mark.rule("0-10t#012")
def test_the_server_says_what_it_is_in_texts_that_every_client_reads(connect: Connect):
    properties = connect().greet().server_properties
    assert all(isinstance(value, str) for value in properties.values())
    assert properties.dialect is FieldDialect.PLAIN  # type: ignore[attr-defined]


@pytest.mark.rule("0-10t#014")
def test_client_properties_of_the_document_s_own_types_are_read(connect: Connect):
    peer = connect()
    peer.greet()
    properties = encode_typed({"product": "test", "n": 1, "flag": True}, FieldDialect.TYPED)
    response = encode_typed({"LOGIN": "guest", "PASSWORD": "guest"}, FieldDialect.TYPED)[4:]
    plain = b"\0guest\0guest"
    assert response
    peer.send(m.ConnectionStartOk(properties, "PLAIN", plain, "en_US"))  # type: ignore[arg-type]
    peer.expect(m.ConnectionTune)


def test_a_wrong_password_ends_the_connection_without_a_word(
    memory: MemorySite, connect_memory: Connect
):
    peer = connect_memory()
    peer.greet()
    response = encode_typed({"LOGIN": "guest", "PASSWORD": "wrong"})[4:]
    peer.send(m.ConnectionStartOk({}, "AMQPLAIN", response, "en_US"))
    memory.pass_time(10)
    peer.expect_closed()


@pytest.mark.rule("0-10t#017", "0-10t#019")
def test_a_frame_of_the_least_size_is_read_before_anything_is_agreed_on(connect: Connect):
    peer = connect()
    peer.greet()
    bare = len(SPEC.encode(_start_ok("")))
    octets = frame(METHOD, 0, SPEC.encode(_start_ok("x" * (FRAME_MIN_BYTES - 8 - bare))))
    assert len(octets) == FRAME_MIN_BYTES
    peer.send_bytes(octets)
    peer.expect(m.ConnectionTune)


def _start_ok(product: str) -> m.ConnectionStartOk:
    return m.ConnectionStartOk({"product": product}, "PLAIN", b"\0guest\0guest", "en_US")


@pytest.mark.rule("0-10t#018", "0-10t#020")
@pytest.mark.parametrize("more", [(1, 0), (0, 1)])
def test_limits_above_ours_end_the_connection_without_a_word(
    connect: Connect, more: tuple[int, int]
):
    peer = connect()
    peer.greet()
    tune = peer.log_in()
    peer.send(m.ConnectionTuneOk(tune.channel_max + more[0], tune.frame_max + more[1], 0))
    peer.expect_closed()


def test_zero_leaves_the_limits_to_the_server_and_no_heartbeat_is_asked_for(connect: Connect):
    peer = connect()
    peer.greet()
    assert peer.log_in().heartbeat == 0
    peer.send(m.ConnectionTuneOk(0, 0, 0))
    assert peer.ask(m.ConnectionOpen("/")) == m.ConnectionOpenOk("")


def test_a_heartbeat_that_the_client_wants_is_kept(memory: MemorySite, connect_memory: Connect):
    peer = connect_memory()
    peer.greet()
    tune = peer.log_in()
    peer.send(m.ConnectionTuneOk(tune.channel_max, tune.frame_max, 4))
    peer.ask(m.ConnectionOpen("/"))
    memory.pass_time(3)
    assert peer.next_frame("a heartbeat").kind == HEARTBEAT


@pytest.mark.rule("0-10t#026")
def test_a_socket_that_is_lost_is_logged(memory: MemorySite, memory_peer: Peer):
    memory_peer.drop()
    assert memory.logged("client unexpectedly closed TCP connection")


def test_the_client_may_close(peer: Peer):
    peer.close()


@pytest.mark.parametrize("kind", [4, 5, 6, 7, 9, 10, 11])
def test_frames_of_other_types_are_frame_errors(peer: Peer, kind: int):
    peer.send_bytes(frame(kind, 1, b"\0" * 24))
    peer.expect_connection_close(501)


@pytest.mark.parametrize(
    "payload", [b"", b"\0\x28", b"\0\x28\0\x0a", b"\0\x28\0\x0a\0\0\xff", b"\xff\xff\0\x01"]
)
def test_methods_that_cannot_be_read_end_the_connection(peer: Peer, payload: bytes):
    peer.send_bytes(frame(METHOD, 1, payload))
    assert peer.expect(m.ConnectionClose).reply_code in (502, 503, 540)
    peer.opened = False
    peer.ended = True


def test_each_close_of_several_threads_gets_its_close_ok(peer: Peer):
    closing = frame(METHOD, 0, SPEC.encode(m.ConnectionClose(reply_code=200)))
    peer.send_bytes(closing * 3)
    for _ in range(3):
        peer.expect(m.ConnectionCloseOk)
    peer.send_bytes(closing)
    peer.expect(m.ConnectionCloseOk)
    peer.expect_parting()
