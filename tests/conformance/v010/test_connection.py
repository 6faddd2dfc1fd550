"""The class connection of AMQP 0-10: from protocol header to open, limits, and the end."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Control
from harebell.wire.v010.states import CONNECTION_SERVER
from harebell.wire.v09.states import ConnectionState
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.raw import COMMAND, CONTROL, Peer010, frame, octets_of

PLAIN = b"\0guest\0guest"


def test_the_header_is_echoed_and_the_broker_introduces_itself(connect010: Connect010) -> None:
    peer = connect010()
    start = peer.greet()
    assert "PLAIN" in start.mechanisms
    assert start.locales == ["en_US"]
    assert start.server_properties["product"] == "harebell"


def test_limits_are_offered_after_the_login(connect010: Connect010) -> None:
    tune = connect010().login()
    assert tune.max_frame_size == 65535
    assert tune.channel_max == 2047
    assert (tune.heartbeat_min, tune.heartbeat_max) == (0, 120)


def test_a_client_that_leaves_the_limits_to_the_broker_gets_in(connect010: Connect010) -> None:
    peer = connect010()
    peer.login()
    # As qpid-python sends them: no limits, no vhost.
    peer.send_bytes(frame(CONTROL, bytes.fromhex("0106 0000")))
    peer.send_bytes(frame(CONTROL, bytes.fromhex("0107 0000")))
    peer.expect(k.ConnectionOpenOk)
    peer.attach().close()


@pytest.mark.parametrize(
    ("mechanism", "response", "text"),
    [
        ("PLAIN", b"\0guest\0wrong", "Login was refused using authentication mechanism PLAIN"),
        ("PLAIN", b"\0nobody\0x", "Login was refused using authentication mechanism PLAIN"),
        ("PLAIN", b"guest", "Login was refused using authentication mechanism PLAIN"),
        ("GSSAPI", b"", "unknown authentication mechanism 'GSSAPI'"),
    ],
)
def test_a_refused_login_is_answered(
    connect010: Connect010, mechanism: str, response: bytes, text: str
) -> None:
    peer = connect010()
    peer.greet()
    peer.send(k.ConnectionStartOk({}, mechanism, response, "en_US"))
    peer.expect_close(320, text)


def test_a_vhost_that_does_not_exist_is_an_invalid_path(connect010: Connect010) -> None:
    peer = connect010()
    peer.login()
    peer.send(k.ConnectionTuneOk(), k.ConnectionOpen("nowhere"))
    peer.expect_close(402, "invalid-path: vhost nowhere not found")


@pytest.mark.parametrize(
    ("tune_ok", "text"),
    [
        (k.ConnectionTuneOk(2048), "channel-max 2048 is more than 2047"),
        (k.ConnectionTuneOk(0, 4095), "max-frame-size 4095 is not between 4096 and 65535"),
        (k.ConnectionTuneOk(0, 65535, 121), "heartbeat 121 is more than 120"),
    ],
)
def test_limits_out_of_what_was_offered_are_refused(
    connect010: Connect010, tune_ok: k.ConnectionTuneOk, text: str
) -> None:
    peer = connect010()
    peer.login()
    peer.send(tune_ok)
    peer.expect_close(320, f"connection-forced: {text}")


def test_a_channel_over_the_limit_is_refused(connect010: Connect010) -> None:
    peer = connect010()
    peer.login()
    peer.send(k.ConnectionTuneOk(1), k.ConnectionOpen("/"))
    peer.expect(k.ConnectionOpenOk)
    peer.attach("a", 1)
    peer.send(k.SessionAttach(b"b"), channel=2)
    peer.expect_close(320, "channel_max (1)")


def test_the_client_closes_in_good_order(connect010: Connect010) -> None:
    connect010().open().close()


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (frame(CONTROL, b"\x01\x63\0\0"), "unknown control 0163"),
        (frame(CONTROL, b"\x01"), "unknown control 01"),
        (frame(CONTROL, b"\x01\x0b\x04\0"), "packing flags 0x4 for 2 fields"),
        (frame(CONTROL, b"\x01\x0a\0\0", channel=3), "connection.heartbeat on channel 3"),
        (frame(CONTROL, b"\x01\x0a\0\0", track=1), "segment type 0 on track 1"),
        (frame(COMMAND, b"\x03\x01\1\0\0\0", channel=1, track=0), "segment type 1 on track 0"),
        (frame(CONTROL, b"", flags=0x1F), "frame flags 0x1f are of another version"),
        (frame(4, b"", track=1), "unknown segment type 4"),
        (bytes.fromhex("0f00000b0000000000000000"), "a frame of 11 octets has no head"),
        (frame(COMMAND, b"\x03\x01\1\0\0\0", 1, flags=0x0D), "a segment begins with its first"),
        (frame(2, b"", 1), "a header out of order"),
        (frame(COMMAND, b"\x03\x01\1\0\0\0", 1, flags=0x07), "the first-segment flag"),
        (frame(COMMAND, b"\x03\x01", 1), "a command has no session header"),
        (octets_of(k.ConnectionOpen("/"), 0), "connection.open while the connection is open"),
    ],
)
def test_frames_that_make_no_sense_end_the_connection(
    connect010: Connect010, octets: bytes, text: str
) -> None:
    peer = connect010().open().attach()
    peer.send_bytes(octets)
    found = peer.next("connection.close")
    while isinstance(found.value, k.SessionCompleted):
        found = peer.next("connection.close")
    assert isinstance(found.value, k.ConnectionClose), found
    assert found.value.reply_code == 501
    assert text in (found.value.reply_text or "")
    peer.expect_end()


def test_a_frame_over_the_negotiated_size_ends_the_connection(connect010: Connect010) -> None:
    peer = connect010().open(frame_max=4096)
    peer.send_bytes(frame(COMMAND, bytes(4085), 1))
    peer.expect(k.ConnectionClose, reply_code=501)
    peer.expect_end()


def test_octets_may_come_one_by_one(connect010: Connect010) -> None:
    peer = connect010().open()
    for octet in octets_of(k.SessionAttach(b"slow"), 1):
        peer.send_bytes(bytes((octet,)))
    peer.expect(k.SessionAttached, name=b"slow")
    peer.expect(k.SessionCommandPoint)
    peer.close()


def test_a_command_before_the_connection_is_open_ends_it(connect010: Connect010) -> None:
    peer = connect010()
    peer.greet()
    peer.send(c.ExecutionSync())
    close = peer.expect(k.ConnectionClose, reply_code=501)
    assert "before the connection is open" in (close.reply_text or "")
    peer.expect_end()


VALUES: dict[str, Control] = {
    "connection.start-ok": k.ConnectionStartOk({}, "PLAIN", PLAIN, "en_US"),
    "connection.secure-ok": k.ConnectionSecureOk(b""),
    "connection.tune-ok": k.ConnectionTuneOk(0, 65535, 0),
    "connection.open": k.ConnectionOpen("/"),
    "connection.heartbeat": k.ConnectionHeartbeat(),
    "connection.close": k.ConnectionClose(200),
    "connection.close-ok": k.ConnectionCloseOk(),
}
STEPS: list[tuple[ConnectionState, Control | None, type[Any]]] = [
    (ConnectionState.STARTING, None, k.ConnectionStart),
    (ConnectionState.TUNING, VALUES["connection.start-ok"], k.ConnectionTune),
    (ConnectionState.OPENING, VALUES["connection.tune-ok"], object),
    (ConnectionState.OPEN, VALUES["connection.open"], k.ConnectionOpenOk),
]
OTHERS = sorted(set(AMQP_0_10.controls) - set(VALUES))


def brought_to(peer: Peer010, state: ConnectionState) -> None:
    peer.greet()
    for reached, control, answer in STEPS:
        if control is not None:
            peer.send(control)
            if answer is not object:
                peer.expect(answer)
        if reached is state:
            return


@pytest.mark.parametrize("state", [step[0] for step in STEPS], ids=lambda state: state.value)
@pytest.mark.parametrize("name", VALUES)
def test_every_control_in_every_state_does_what_the_table_says(
    memory010: Connect010, state: ConnectionState, name: str
) -> None:
    peer = memory010()
    brought_to(peer, state)
    peer.send(VALUES[name])
    follows = CONNECTION_SERVER[state].get(name)
    if follows is None:
        close = peer.expect(k.ConnectionClose, reply_code=501)
        assert f"{name} while the connection is {state.value}" in (close.reply_text or "")
        peer.expect_end()
    elif follows is ConnectionState.CLOSED:
        peer.expect(k.ConnectionCloseOk)
        peer.expect_parting()
    else:
        found = peer.maybe()
        assert found is None or not isinstance(found.value, k.ConnectionClose)
        assert not peer.ended


@pytest.mark.parametrize("state", [step[0] for step in STEPS], ids=lambda state: state.value)
@pytest.mark.parametrize("name", [n for n in OTHERS if n.startswith("connection.")])
def test_methods_that_only_servers_send_end_the_connection(
    memory010: Connect010, state: ConnectionState, name: str
) -> None:
    peer = memory010()
    brought_to(peer, state)
    peer.send(AMQP_0_10.controls[name].type())  # type: ignore[arg-type]
    peer.expect(k.ConnectionClose, reply_code=501)
    peer.expect_end()


def test_heartbeats_keep_a_connection_and_their_absence_ends_it(
    memory: MemorySite, memory010: Connect010
) -> None:
    peer = memory010().open(heartbeat=10)
    for _ in range(5):
        memory.pass_time(6.0)
        peer.expect(k.ConnectionHeartbeat)
        while peer.maybe() is not None:
            pass
        peer.send(k.ConnectionHeartbeat())
    assert not peer.ended
    memory.pass_time(21.0)
    while peer.maybe() is not None:
        pass
    assert peer.ended


def test_a_login_that_takes_too_long_is_cut(memory: MemorySite, memory010: Connect010) -> None:
    peer = memory010()
    peer.greet()
    memory.pass_time(11.0)
    assert peer.maybe() is None
    assert peer.ended


def test_each_close_of_several_threads_gets_its_close_ok(peer010: Peer010) -> None:
    closing = AMQP_0_10.encode(k.ConnectionClose(200, ""))
    late = AMQP_0_10.encode(c.QueueDeclare("late"))
    frames = [frame(CONTROL, closing, 0)] * 3
    peer010.send_bytes(*frames, frame(COMMAND, late, 1), frame(CONTROL, closing, 0))
    for _ in range(4):
        peer010.expect(k.ConnectionCloseOk, 0)
    peer010.send_bytes(frames[0])
    peer010.expect(k.ConnectionCloseOk, 0)
    peer010.expect_parting()
