"""The connection's half of the core, driven by octets and a clock of its own."""

from __future__ import annotations

import pytest

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPConnectionClosed,
    AuthenticationFailed,
    ClientClosed,
    ConnectionForced,
    ConnectionLost,
    ExtensionMissing,
    NotAllowed,
    ProtocolMismatch,
    UnsupportedByVersion,
)
from harebell.client.protocol.life import ConnectionPhase
from harebell.client.protocol.v09.dialect import dialect_of
from harebell.wire.v09 import methods as m
from tests.unit.client.octets import Peer, method_frame

HEARTBEAT_FRAME = b"\x08\x00\x00\x00\x00\x00\x00\xce"


@pytest.mark.parametrize("step", [0, 1, 7])
def test_the_handshake_runs_however_the_octets_are_cut(step: int) -> None:
    peer = Peer("amqp://alice:secret@host/orders?name=me", step)
    peer.start()
    start_ok = peer.one(m.ConnectionStartOk)
    assert start_ok.mechanism == "PLAIN"
    assert start_ok.response == b"\0alice\0secret"
    assert start_ok.locale == "en_US"
    assert start_ok.client_properties["connection_name"] == "me"
    capabilities = start_ok.client_properties["capabilities"]
    assert capabilities["connection.blocked"] is True
    assert capabilities["consumer_cancel_notify"] is True
    assert capabilities["authentication_failure_close"] is True
    peer.send(m.ConnectionTune(10, 8192, 30))
    tune_ok, opening = peer.methods()
    assert tune_ok == m.ConnectionTuneOk(10, 8192, 30)
    assert opening == m.ConnectionOpen("orders")
    assert not peer.core.opened.done
    peer.send(m.ConnectionOpenOk())
    peer.core.opened.value()
    assert peer.core.state is ConnectionPhase.OPEN
    assert peer.core.server_properties["product"] == "octets"


def test_amqplain_is_used_when_the_address_or_the_broker_leaves_nothing_else() -> None:
    for url, offered in (
        ("amqp://?auth_mechanism=amqplain", b"PLAIN AMQPLAIN"),
        ("amqp://", b"AMQPLAIN"),
    ):
        peer = Peer(url)
        peer.start(offered)
        start_ok = peer.one(m.ConnectionStartOk)
        assert start_ok.mechanism == "AMQPLAIN"
        assert b"LOGIN" in start_ok.response
        assert start_ok.response.endswith(b"PASSWORDS\x00\x00\x00\x05guest")


def test_a_broker_without_a_mechanism_of_ours_is_an_authentication_failure() -> None:
    peer = Peer()
    peer.start(b"EXTERNAL SCRAM-SHA-256")
    with pytest.raises(AuthenticationFailed, match="EXTERNAL SCRAM-SHA-256"):
        peer.core.opened.value()
    assert peer.core.finished


def test_a_question_beyond_user_and_password_is_an_authentication_failure() -> None:
    peer = Peer()
    peer.start()
    peer.send(m.ConnectionSecure(b"what else?"))
    with pytest.raises(AuthenticationFailed):
        peer.core.opened.value()


def test_refused_credentials_are_an_authentication_failure_with_the_brokers_text() -> None:
    peer = Peer()
    peer.start()
    peer.methods()
    peer.send(m.ConnectionClose(403, "ACCESS_REFUSED - Login was refused", 0, 0))
    with pytest.raises(AuthenticationFailed) as caught:
        peer.core.opened.value()
    assert caught.value.text == "403 ACCESS_REFUSED - Login was refused"
    assert str(caught.value) == f"{caught.value.text} (user 'guest' at localhost:5672)"
    peer.one(m.ConnectionCloseOk)


def test_a_broker_that_hangs_up_on_the_credentials_is_an_authentication_failure() -> None:
    peer = Peer()
    peer.start()
    peer.core.eof()
    with pytest.raises(AuthenticationFailed, match="hung up after it saw the user") as caught:
        peer.core.opened.value()
    assert not caught.value.answered


def test_a_virtual_host_that_is_refused_raises_its_code_and_text() -> None:
    peer = Peer()
    peer.start()
    peer.send(m.ConnectionTune(8, 4096, 0))
    peer.send(m.ConnectionClose(530, "NOT_ALLOWED - vhost nope not found", 10, 40))
    with pytest.raises(NotAllowed) as caught:
        peer.core.opened.value()
    assert caught.value.code == 530
    assert caught.value.text == "NOT_ALLOWED - vhost nope not found"
    assert (caught.value.class_id, caught.value.method_id) == (10, 40)


@pytest.mark.parametrize(
    ("url", "answer", "words"),
    [
        ("amqp://", b"AMQP\x00\x01\x00\x00", "0.1.0.0"),
        ("amqp://", b"AMQP", "another version"),
        ("amqp://", b"HTTP/1.1 400 Bad", "does not speak AMQP"),
        ("amqp://", b"\x15\x03\x01\x00\x02\x02\x46", "amqps://"),
        ("amqps://", b"\x15\x03\x01\x00\x02\x02\x46", "does not speak AMQP"),
    ],
)
def test_a_peer_that_speaks_something_else_is_named(url: str, answer: bytes, words: str) -> None:
    peer = Peer(url)
    peer.feed(answer)
    with pytest.raises(ProtocolMismatch, match=words):
        peer.core.opened.value()


def test_a_connection_that_writes_needs_no_heartbeats() -> None:
    peer = Peer()
    peer.open(heartbeat=10)
    channel = peer.channel()
    for _ in range(8):
        at = peer.core.wake_at()
        assert at is not None
        peer.now = at
        channel.send(m.BasicAck(1))
        assert [frame.kind for frame in peer.written()] == [1]
        peer.feed(HEARTBEAT_FRAME)
        peer.core.tick(peer.now)
        assert peer.core.take_output() == b""


def test_closing_sends_close_drops_what_comes_and_ends_with_close_ok() -> None:
    peer = Peer()
    peer.open()
    channel = peer.channel()
    waiting = channel.purge_queue("q")
    peer.methods()
    call = peer.core.close(peer.now)
    close = peer.one(m.ConnectionClose)
    assert close.reply_code == 200
    with pytest.raises(ClientClosed):
        waiting.value()
    peer.send(m.QueuePurgeOk(3), channel=1)
    peer.send(m.ConnectionBlocked("late"))
    assert not call.done
    peer.send(m.ConnectionCloseOk())
    call.value()
    assert peer.core.finished
    with pytest.raises(ClientClosed):
        peer.core.check_open()


def test_a_broker_that_has_blocked_us_is_left_sooner() -> None:
    peer = Peer()
    peer.open()
    peer.send(m.ConnectionBlocked("low on memory"))
    call = peer.core.close(peer.now)
    at = peer.core.wake_at()
    assert at is not None
    assert at - peer.now <= 1.0
    peer.core.tick(at)
    call.value()


def test_both_sides_may_close_at_once() -> None:
    peer = Peer()
    peer.open()
    call = peer.core.close(peer.now)
    peer.methods()
    peer.send(m.ConnectionClose(320, "CONNECTION_FORCED - bye", 0, 0))
    peer.one(m.ConnectionCloseOk)
    call.value()


def test_a_broker_that_closes_raises_its_code_everywhere() -> None:
    peer = Peer()
    peer.open()
    channel = peer.channel()
    call = channel.purge_queue("q")
    confirm = channel.publish_one(WireMessage("", "q", Properties(b"\0\0"), b"x"), 0)
    peer.written()
    peer.send(m.ConnectionClose(320, "CONNECTION_FORCED - broker forced connection closure", 0, 0))
    assert isinstance(peer.methods()[0], m.ConnectionCloseOk)
    for waiting in (call, confirm, peer.core.closed):
        with pytest.raises(ConnectionForced) as caught:
            waiting.value()
        assert caught.value.code == 320
    with pytest.raises(ConnectionForced):
        channel.check_open()


def test_an_unknown_reply_code_is_still_a_closed_connection() -> None:
    peer = Peer()
    peer.open()
    peer.send(m.ConnectionClose(599, "STRANGE", 60, 40))
    with pytest.raises(AMQPConnectionClosed, match="599 STRANGE"):
        peer.core.closed.value()


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x29\x00", 501),  # not 0xCE at the end
        (b"\x01\x00\x00\x7f\xff\xff\xff", 501),  # larger than frame-max
        (b"\x02\x00\x00\x00\x00\x00\x00\xce", 505),  # a header on channel 0
        (method_frame(m.ConnectionTune()), 503),  # in the wrong state
        (method_frame(m.ChannelOpenOk(), 5), 504),  # a channel that is not open
        (b"\x01\x00\x00\x00\x00\x00\x04\xff\xff\x00\x01\xce", 503),  # an unknown class
    ],
)
def test_a_broker_that_breaks_the_protocol_is_told_so_and_left(octets: bytes, code: int) -> None:
    peer = Peer()
    peer.open()
    peer.feed(octets)
    close = peer.one(m.ConnectionClose)
    assert close.reply_code == code
    assert peer.core.finished
    with pytest.raises(ConnectionLost, match="broke the protocol"):
        peer.core.closed.value()


def test_a_callback_that_fails_ends_the_connection_and_is_not_swallowed() -> None:
    peer = Peer()
    peer.open()
    peer.core.on_blocked = lambda reason: 1 / 0  # type: ignore[assignment]
    with pytest.raises(ZeroDivisionError):
        peer.send(m.ConnectionBlocked("low on memory"))
    assert peer.core.finished


def test_blocked_and_unblocked_are_told_with_the_reason() -> None:
    peer = Peer()
    peer.open()
    heard: list[str | None] = []
    peer.core.on_blocked = heard.append
    peer.send(m.ConnectionBlocked("low on memory"))
    assert peer.core.blocked == "low on memory"
    peer.send(m.ConnectionUnblocked())
    assert peer.core.blocked is None
    assert heard == ["low on memory", None]


def test_limits_are_the_lower_of_both_sides() -> None:
    peer = Peer("amqp://?channel_max=3&frame_max=8192&heartbeat=5")
    peer.start()
    peer.methods()
    peer.send(m.ConnectionTune(2047, 131072, 60))
    assert peer.methods()[0] == m.ConnectionTuneOk(3, 8192, 5)


def test_channels_take_the_lowest_free_number_up_to_the_limit() -> None:
    peer = Peer()
    peer.open(channel_max=3)
    first, second, third = peer.channel(), peer.channel(), peer.channel()
    assert [first.number, second.number, third.number] == [1, 2, 3]
    with pytest.raises(ClientClosed, match="all 3 channels"):
        peer.core.open_channel()
    second.close()
    peer.methods()
    peer.send(m.ChannelCloseOk(), channel=2)
    assert peer.channel().number == 2


def test_a_broker_says_which_of_harebells_own_classes_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    peer = Peer("amqp://host")
    peer.open()
    assert peer.core.extensions == {}
    monkeypatch.setattr("harebell.wire.v09.extensions.VERSIONS", {"lease": 2})
    with pytest.raises(ExtensionMissing) as caught:
        peer.core.check_extension("lease")
    assert str(caught.value) == (
        "the broker at host:5672 (octets) cannot do this: it needs Harebell's extension 'lease' "
        "(version 2) over AMQP 0-9-1, and the broker announces none"
    )
    peer.core.server_properties["harebell"] = {"lease": 1}
    with pytest.raises(ExtensionMissing, match="announces version 1 of it"):
        peer.core.check_extension("lease")
    peer.core.server_properties["harebell"] = {"lease": 2}
    peer.core.check_extension("lease")
    assert peer.core.extensions == {"lease": 2}


def test_versions_before_0_9_1_have_none_of_harebells_own_classes() -> None:
    peer = Peer("amqp://host")
    peer.open()
    peer.core.dialect = dialect_of("0-9")
    with pytest.raises(UnsupportedByVersion, match="AMQP 0-9 has no class lease"):
        peer.core.check_extension("lease")
