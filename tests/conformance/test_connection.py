"""The connection class: greeting, login, tuning, opening, and both ways to the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.base.limits import FRAME_MIN_BYTES
from harebell.config import ConfigError, load
from harebell.front.limits import LINGER_SECONDS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.fields import encode_table
from tests.conformance.frames import PROTOCOL_HEADER
from tests.conformance.raw import Peer, encoded, publish_octets, start_ok
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]
HEADER_0_9 = b"AMQP\x01\x01\x00\x09"

# --- the protocol header --------------------------------------------------------------------------


@pytest.mark.rule("0-8#009", "0-9-1#029", "0-9-1r#001", "0-10t#009", "0-10t#010", "0-10t#011")
@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\x00\x00\x08\x00",
        b"AMQP\x01\x01\x00\x08",
        b"AMQP\x01\x01\x09\x00",
        b"AMQX\x01\x01\x00\x0a",
        b"AMQP\x01\x01\x08\x01",
        b"AMQP\x00\x00\x09\x00",
        b"AMQP\x00\x00\x09\x02",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"amqp\x00\x00\x09\x01",
        b"A\n",
        bytes(8),
    ],
)
def test_a_header_that_is_not_ours_is_answered_with_one_that_is(
    connect: Connect, header: bytes
) -> None:
    peer = connect()
    peer.send_bytes(header)
    answer = b""
    while len(answer) < 8:
        piece = peer.wire.read(5)
        assert piece, f"only {answer!r} came"
        answer += piece
    assert answer == PROTOCOL_HEADER
    peer.expect_closed()


@pytest.mark.rule("0-9-1#031")
def test_a_client_finds_the_version_by_taking_the_header_it_is_sent(connect: Connect) -> None:
    first = connect()
    first.send_bytes(b"AMQP\x00\x00\x09\x02")
    offered = first.wire.read(5)
    assert offered is not None
    first.expect_closed()
    second = connect()
    second.send_bytes(offered)
    second.expect(m.ConnectionStart)


@pytest.mark.rule("0-9-1#030")
def test_a_refused_header_is_logged(connect_memory: Connect, memory: MemorySite) -> None:
    peer = connect_memory()
    peer.send_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert peer.wire.read(0) == PROTOCOL_HEADER
    assert memory.logged("127.0.0.1:50000", '{bad_header,<<"GET / HT">>}')
    peer.expect_closed()


@pytest.mark.rule("0-9-1#005", "0-9-1r#002")
@pytest.mark.parametrize("header", [PROTOCOL_HEADER, HEADER_0_9])
def test_one_port_serves_0_9_1_and_0_9_and_announces_no_more_than_was_asked(
    connect: Connect, header: bytes
) -> None:
    peer = connect()
    peer.send_bytes(header)
    start = peer.expect(m.ConnectionStart)
    assert (start.version_major, start.version_minor) == (0, 9)
    peer.log_in()


def test_the_broker_says_nothing_before_the_whole_header_is_there(connect: Connect) -> None:
    peer = connect()
    peer.send_bytes(PROTOCOL_HEADER[:7])
    peer.expect_silence()
    peer.send_bytes(PROTOCOL_HEADER[7:])
    peer.expect(m.ConnectionStart)


# --- start and login ------------------------------------------------------------------------------


def test_start_offers_two_mechanisms(connect: Connect) -> None:
    assert connect().greet().mechanisms.split() == [b"PLAIN", b"AMQPLAIN"]


@pytest.mark.rule("0-9-1r#004")
def test_start_says_who_the_broker_is_and_what_it_can(connect: Connect) -> None:
    properties = connect().greet().server_properties
    assert (properties["product"], properties["version"]) == ("RabbitMQ", "3.13.7")
    assert properties["information"].startswith("Harebell")
    capabilities = properties["capabilities"]
    assert set(capabilities.values()) == {True}
    assert {"publisher_confirms", "basic.nack", "connection.blocked"} <= set(capabilities)


@pytest.mark.rule("0-9-1#026")
def test_the_broker_waits_for_start_ok_before_it_goes_on(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    peer.expect_silence()
    peer.log_in()
    peer.expect_silence()


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"guest\0guest\0guest"),
        ("AMQPLAIN", encode_table({"PASSWORD": "guest", "x": 1, "LOGIN": "guest"})[4:]),
    ],
)
def test_responses_with_more_than_user_and_password_let_the_default_user_in(
    connect: Connect, mechanism: str, response: bytes
) -> None:
    connect().open(mechanism=mechanism, response=response)


REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism {}. For details see the "
    "broker logfile."
)
WRONG = [
    ("PLAIN", b"\0guest\0wrong"),
    ("PLAIN", b"\0nobody\0guest"),
    ("PLAIN", b"\0guest\0"),
    ("PLAIN", b"guest"),
    ("PLAIN", b""),
    ("PLAIN", b"\0guest\0guest\0"),
    ("PLAIN", b"\0\xff\0guest"),
    ("AMQPLAIN", b""),
    ("AMQPLAIN", b"\xff" * 9),
    ("AMQPLAIN", encode_table({"LOGIN": "guest"})[4:]),
    ("AMQPLAIN", encode_table({"LOGIN": 1, "PASSWORD": "guest"})[4:]),
    ("AMQPLAIN", encode_table({"LOGIN": "guest", "PASSWORD": "guest"})),
]


@pytest.mark.parametrize(("mechanism", "response"), WRONG)
def test_a_client_that_asked_for_it_is_told_that_its_login_was_refused(
    connect: Connect, mechanism: str, response: bytes
) -> None:
    peer = connect()
    peer.greet()
    peer.send(
        start_ok(
            mechanism=mechanism, response=response, capabilities=["authentication_failure_close"]
        )
    )
    peer.expect_connection_close(403, REFUSED.format(mechanism))


@pytest.mark.parametrize(("mechanism", "response"), WRONG)
def test_other_clients_are_cut_after_a_pause_when_their_login_is_refused(
    connect_memory: Connect, memory: MemorySite, mechanism: str, response: bytes
) -> None:
    peer = connect_memory()
    peer.greet()
    peer.send(start_ok(mechanism=mechanism, response=response))
    memory.pass_time(2.5)
    peer.expect_silence()
    memory.pass_time(0.5)
    peer.expect_closed()
    assert memory.logged(f"{mechanism} login refused")
    assert not any("guest\0" in text or "wrong" in text for _, text in memory.log)


@pytest.mark.rule("0-9-1r#009")
@pytest.mark.parametrize("mechanism", ["EXTERNAL", "SCRAM-SHA-256", "plain", "", "PLAIN AMQPLAIN"])
def test_a_mechanism_that_was_not_on_offer_ends_the_connection_in_silence(
    connect: Connect, mechanism: str
) -> None:
    peer = connect()
    peer.greet()
    peer.send(start_ok(mechanism=mechanism, capabilities=["authentication_failure_close"]))
    peer.expect_closed()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", ""])
def test_guest_may_come_from_this_machine(memory: MemorySite, address: str) -> None:
    Peer(memory, memory.connect(address)).open()


@pytest.mark.parametrize("address", ["192.0.2.1", "10.127.0.1", "::2", "2001:db8::127"])
def test_guest_may_not_come_from_elsewhere(memory: MemorySite, address: str) -> None:
    peer = Peer(memory, memory.connect(address))
    peer.greet()
    peer.send(start_ok(capabilities=["authentication_failure_close"]))
    peer.expect_connection_close(403, REFUSED.format("PLAIN"))


def test_a_client_that_does_not_go_on_is_cut_when_the_time_is_up(
    connect_memory: Connect, memory: MemorySite
) -> None:
    silent, greeted, tuned, opened = (connect_memory() for _ in range(4))
    greeted.greet()
    tuned.greet()
    tuned.log_in()
    opened.open()
    memory.pass_time(9.5)
    for peer in (silent, greeted, tuned, opened):
        peer.expect_silence()
    memory.pass_time(0.5)
    for peer in (silent, greeted, tuned):
        peer.expect_closed()
    opened.expect_silence()
    assert memory.logged("{handshake_timeout,tuning}")


# --- tuning ---------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#008")
def test_tune_carries_the_limits_of_the_broker(connect: Connect) -> None:
    peer = connect()
    peer.greet()
    tune = peer.log_in()
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2_047, 131_072, 60)


def test_other_limits_may_be_configured() -> None:
    site = MemorySite(frame_max=8_192, channel_max=3, heartbeat=7)
    peer = Peer(site, site.connect())
    peer.greet()
    tune = peer.log_in()
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (3, 8_192, 7)


@pytest.mark.rule("0-9-1r#011")
def test_no_broker_can_be_configured_to_offer_less_than_the_minimal_frame() -> None:
    assert FRAME_MIN_BYTES == 4_096
    with pytest.raises(ConfigError, match="frame-max"):
        load({"frame_max": "4095"}, {})


TUNED = "NOT_ALLOWED - negotiated {} = {} is {} than the {}imum allowed value ({})"


@pytest.mark.parametrize(
    ("channel_max", "frame_max", "text"),
    [
        (2_048, 131_072, TUNED.format("channel_max", 2_048, "higher", "max", 2_047)),
        (65_535, 131_072, TUNED.format("channel_max", 65_535, "higher", "max", 2_047)),
        (2_047, 131_073, TUNED.format("frame_max", 131_073, "higher", "max", 131_072)),
        (2_047, 2**32 - 1, TUNED.format("frame_max", 2**32 - 1, "higher", "max", 131_072)),
        (2_047, 4_095, TUNED.format("frame_max", 4_095, "lower", "min", 4_096)),
        (2_047, 1, TUNED.format("frame_max", 1, "lower", "min", 4_096)),
    ],
)
@pytest.mark.rule("0-9-1r#013")
def test_limits_outside_the_offer_are_refused(
    connect: Connect, channel_max: int, frame_max: int, text: str
) -> None:
    peer = connect()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionTuneOk(channel_max, frame_max, 0))
    peer.expect_connection_close(530, text, "connection.tune-ok")


@pytest.mark.rule("0-9-1#009", "0-9-1#053")
def test_a_client_may_settle_on_less_down_to_a_single_channel(connect: Connect) -> None:
    peer = connect().open(channel_max=1, frame_max=4_096, heartbeat=0)
    peer.send(m.ChannelOpen(), channel=2)
    text = "NOT_ALLOWED - number of channels opened (1) has reached the negotiated channel_max (1)"
    peer.expect_connection_close(530, text, "channel.open")


def test_the_number_of_open_channels_is_limited(connect: Connect) -> None:
    peer = connect().open(channel_max=2, channels=(7, 65_535))
    peer.ask(m.ChannelClose(200), 7)
    peer.opened = False  # The limit leaves no channel for the harness.
    peer.ask(m.ChannelOpen(), 1)
    peer.close()


# --- open -----------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#015", "0-9-1r#016")
def test_a_connection_does_not_change_its_virtual_host(peer: Peer) -> None:
    peer.send(m.ConnectionOpen(virtual_host="/"))
    text = "CHANNEL_ERROR - unexpected method in connection state running"
    peer.expect_connection_close(504, text, "connection.open")


# --- close ----------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1#011", "0-9-1#012")
def test_a_connection_closed_by_the_client_is_answered_and_ended(connect: Connect) -> None:
    peer = connect().open(channels=(1, 2, 3))
    peer.close()


def test_methods_of_a_client_behind_its_close_are_ignored_but_for_another_close(
    connect: Connect,
) -> None:
    peer = connect().open()
    peer.send(m.ConnectionClose(200), m.QueueDeclare(queue="q"), m.ConnectionClose(200))
    peer.expect(m.ConnectionCloseOk)
    peer.expect(m.ConnectionCloseOk)
    peer.expect_parting()


def test_exclusive_queues_are_gone_before_close_ok_is_sent(connect: Connect) -> None:
    owner, other = connect().open(), connect().open()
    owner.queue("q", exclusive=True)
    owner.close()
    other.queue("q")


def test_a_client_that_just_goes_away_leaves_nothing_behind(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.queue("gone", exclusive=True)
    peer.queue("q")
    peer.publish("", "q", b"body")
    peer.consume("q")
    peer.expect_delivery(b"body")
    peer.send_bytes(encoded(m.QueueDeclare(queue="q"))[:9])
    peer.opened = False
    peer.wire.end()
    assert memory.logged("client unexpectedly closed TCP connection")
    other = connect_memory().open()
    other.queue("gone")
    found = other.get("q")
    assert (found.body, found.method.redelivered) == (b"body", True)
    assert len(memory.registry.connections) == 1


def test_a_connection_that_is_closed_by_an_operator_gets_the_reason_alone(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.wire.connection.force_close("VHOST TEST", memory.now)
    memory.turn()
    peer.expect_connection_close(320, "CONNECTION_FORCED - VHOST TEST")


def test_each_close_of_several_threads_gets_its_close_ok(peer: Peer) -> None:
    queue = peer.queue("q", exclusive=True)
    closing = m.ConnectionClose(reply_code=200)
    peer.send_bytes(
        *(encoded(closing, 0) for _ in range(3)),
        publish_octets("", queue, b"too late"),
        encoded(m.ChannelOpen(), 5),
        encoded(closing, 0),
    )
    for _ in range(4):
        peer.expect(m.ConnectionCloseOk)
    peer.send(closing)
    peer.expect(m.ConnectionCloseOk)
    peer.expect_parting()


def test_a_client_that_closed_and_keeps_its_socket_loses_it_in_the_end(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.send(m.ConnectionClose(reply_code=200))
    peer.expect(m.ConnectionCloseOk)
    memory.pass_time(LINGER_SECONDS - 1)
    peer.send(m.ConnectionClose(reply_code=200))
    peer.expect(m.ConnectionCloseOk)
    memory.pass_time(2)
    peer.expect_closed()
    assert not memory.logged("missed heartbeats")


@pytest.mark.parametrize(("octets", "fits"), [(8_000, True), (8_300, False)])
def test_a_frame_before_tune_has_no_more_than_8192_octets(
    connect_memory: Connect, octets: int, fits: bool
) -> None:
    peer = connect_memory()
    peer.greet()
    method = start_ok()
    plain = len(encoded(method, 0))
    method.client_properties = {"x": "y" * (octets - plain - 8)}
    peer.send(method)
    if fits:
        peer.expect(m.ConnectionTune)
        peer.wire.drop()
        peer.ended = True
    else:
        peer.expect_closed()
