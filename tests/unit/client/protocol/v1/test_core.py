"""The client's half of a 1.0 connection: login, limits, time, and what a broker must not send."""

from __future__ import annotations

import random

import pytest

from harebell.client.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    ConnectionForced,
    ConnectionLost,
    NotAllowed,
    ProtocolMismatch,
    UnsupportedByVersion,
)
from harebell.client.protocol.life import ConnectionPhase
from harebell.client.protocol.v1.core import CoreConnection1
from harebell.client.url import URL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, SASL, encode_frame
from harebell.wire.v1.performatives import encode_composite
from harebell.wire.v1.values import Symbol
from tests.unit.client.protocol.v1.broker import (
    AMQP_HEADER,
    LET_IN,
    NEW,
    OPEN,
    PLAIN,
    SASL_HEADER,
    Broker,
    octets,
)

OPENING = SASL_HEADER + PLAIN + LET_IN + AMQP_HEADER + octets(OPEN)


def sasl(said: object) -> bytes:
    """A frame of SASL."""
    return encode_frame(encode_composite(said), 0, SASL)  # type: ignore[arg-type]


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_the_handshake_is_the_same_in_whatever_pieces_it_comes(pieces: int) -> None:
    core = CoreConnection1(NEW, 0.0)
    for at in range(0, len(OPENING), pieces):
        core.receive(OPENING[at : at + pieces], 0.0)
    assert core.state is ConnectionPhase.OPEN
    assert (core.frame_max, core.channel_max, core.heartbeat) == (4096, 100, 60)


def test_the_open_has_the_virtual_host_and_the_name() -> None:
    url = URL(version="1.0", vhost="blue", name="billing", heartbeat=7, channel_max=5)
    broker = Broker(url)
    (opened,) = broker.taken(c.Open)
    assert (opened.container_id, opened.hostname, opened.idle_time_out) == (
        "us",
        "vhost:blue",
        7000,
    )
    assert (opened.channel_max, opened.properties["connection_name"]) == (4, "billing")
    assert broker.core.channel_max == 5


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"AMQP\x00\x00\x09\x01", "answered with 0.0.9.1"),
        (b"AMQP\x00\x01\x00\x00", "answered with 0.1.0.0"),
        (b"HTTP/1.1 400 Bad Request\r\n", "does not speak AMQP"),
        (b"\x15\x03\x01\x00\x02\x02\x46\x00", "expects TLS"),
    ],
)
def test_another_protocol_is_named(answer: bytes, text: str) -> None:
    core = CoreConnection1(NEW, 0.0)
    core.receive(answer, 0.0)
    with pytest.raises(ProtocolMismatch, match=text):
        core.opened.value()


def test_a_refused_login_is_told_apart() -> None:
    core = CoreConnection1(NEW, 0.0)
    core.receive(SASL_HEADER + PLAIN + sasl(c.SaslOutcome(code=1)), 0.0)
    with pytest.raises(AuthenticationFailed, match="password is wrong"):
        core.opened.value()


def test_a_broker_without_our_mechanism_is_told_what_we_have() -> None:
    core = CoreConnection1(NEW, 0.0)
    core.receive(SASL_HEADER + sasl(c.SaslMechanisms((Symbol("EXTERNAL"),))), 0.0)
    with pytest.raises(AuthenticationFailed, match="'EXTERNAL', this client would use PLAIN"):
        core.opened.value()


@pytest.mark.parametrize("mechanism", ["EXTERNAL", "ANONYMOUS"])
def test_an_address_can_name_a_mechanism_without_a_password(mechanism: str) -> None:
    url = URL.parse(f"amqp+1.0://localhost?auth_mechanism={mechanism.lower()}")
    core = CoreConnection1(url, 0.0)
    core.take_output()
    core.receive(SASL_HEADER + sasl(c.SaslMechanisms(("PLAIN", mechanism))), 0.0)
    init = c.SaslInit(mechanism=mechanism, initial_response=b"", hostname="localhost")
    assert core.take_output() == sasl(init)


def test_a_broker_that_hangs_up_at_the_open_may_lack_the_virtual_host() -> None:
    core = CoreConnection1(NEW, 0.0)
    core.receive(SASL_HEADER + PLAIN + LET_IN, 0.0)
    core.eof()
    with pytest.raises(ConnectionFailed, match="opening virtual host '/'"):
        core.opened.value()


def test_an_open_that_fails_is_no_open_connection() -> None:
    failing = c.Open(container_id="b", properties={"amqp:connection-establishment-failed": True})
    error = c.Error(condition="amqp:not-found", description="no vhost")
    core = CoreConnection1(NEW, 0.0)
    core.receive(OPENING[: -len(octets(OPEN))] + octets(failing, c.Close(error=error)), 0.0)
    with pytest.raises(NotAllowed, match="amqp:not-found - no vhost"):
        core.opened.value()


def test_a_close_of_the_broker_has_its_class() -> None:
    broker = Broker()
    error = c.Error(condition="amqp:connection:forced", description="bye")
    broker.say(c.Close(error=error))
    assert broker.taken(c.Close) == [c.Close()]
    with pytest.raises(ConnectionForced, match="bye"):
        broker.core.closed.value()


def test_our_close_is_answered() -> None:
    broker = Broker()
    closed = broker.core.close(0.0)
    broker.settle()
    closed.value()
    assert broker.core.finished


def test_keep_alives_are_sent_as_the_broker_wants_and_missed_as_we_do() -> None:
    core = Broker().core
    core.tick(7.0)
    assert core.take_output() == b""
    core.tick(7.5)
    core.tick(15.0)
    assert core.take_output() == EMPTY
    core.receive(EMPTY, 100.0)
    core.tick(219.0)
    assert not core.finished
    core.tick(229.0)
    with pytest.raises(ConnectionLost, match="nothing came"):
        core.closed.value()


def test_without_a_heartbeat_of_ours_the_broker_gets_its_own() -> None:
    core = Broker(URL(version="1-0", heartbeat=0)).core
    assert core.beat_seconds == 30
    core.take_output()
    core.tick(1000.0)
    core.tick(1010.0)
    assert core.take_output() == EMPTY


def test_extensions_of_0_9_1_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedByVersion, match=r"AMQP 1\.0 has no class lease"):
        Broker().core.check_extension("lease")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (c.Attach(name="l"), "attached the link 'l' by itself"),
        (c.Transfer(handle=4, delivery_id=0), "a transfer for handle 4"),
        (c.Detach(handle=4), "handle 4, which is not attached"),
        (c.Begin(remote_channel=0), "began a session by itself"),
        (c.Open(container_id="again"), "Open came in a session"),
    ],
)
def test_what_a_broker_must_not_say_ends_the_connection(said: object, text: str) -> None:
    broker = Broker()
    broker.session()
    broker.say(said)
    with pytest.raises(ConnectionLost, match=text):
        broker.core.closed.value()
    (close,) = broker.taken(c.Close)
    assert text in close.error.description


def test_a_frame_that_is_too_long_ends_the_connection() -> None:
    core = Broker().core
    core.receive((1 << 20).to_bytes(4) + bytes(4), 0.0)
    with pytest.raises(ConnectionLost, match=r"frame size \(1048576 bytes\)"):
        core.closed.value()


def test_random_octets_end_the_connection_or_are_waited_for() -> None:
    entropy = random.Random(7)
    for _ in range(300):
        core = CoreConnection1(NEW, 0.0)
        data = bytearray(OPENING + entropy.randbytes(80))
        for _ in range(entropy.randrange(6)):
            data[entropy.randrange(len(data))] = entropy.randrange(256)
        core.receive(bytes(data), 0.0)
        assert core.state in ConnectionPhase
