"""Connections: headers, the SASL layer, open, keep-alives, close."""

from __future__ import annotations

import pytest

from harebell.kernels.limits import PERFORMATIVE_VALUES
from harebell.server.limits import WORK_USER_UNITS
from harebell.wire import HEADER_0_9_1, HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, SASL, encode_frame
from harebell.wire.v1.values import Described, Symbol, ULong
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1


def _plain(user: str = "guest", password: str = "guest") -> c.SaslInit:
    return c.SaslInit("PLAIN", f"\0{user}\0{password}".encode())


# --- the SASL layer -----------------------------------------------------------------------------


@pytest.mark.rule("1.0#012", "1.0#013", "1.0#178")
def test_the_header_of_the_sasl_layer_is_echoed_before_the_mechanisms(connect1: Connect1) -> None:
    mechanisms = connect1().greet().sasl_server_mechanisms
    assert {"PLAIN", "AMQPLAIN", "SCRAM-SHA-256"} <= set(mechanisms)


@pytest.mark.rule("1.0#015")
def test_without_an_anonymous_user_the_bare_header_is_answered_with_that_of_sasl() -> None:
    site = MemorySite(anonymous_user="")
    peer = Peer1(site, site.connect())
    peer.send_bytes(HEADER_1_0)
    peer.expect_header(HEADER_1_0_SASL)
    peer.expect_end()


@pytest.mark.rule("1.0#014", "1.0#177")
@pytest.mark.parametrize("header", [b"AMQP\x02\x01\x00\x00", b"AMQP\x03\x01\x00\x01"])
def test_a_header_that_is_not_served_is_answered_with_one_that_is(
    connect1: Connect1, header: bytes
) -> None:
    peer = connect1()
    peer.send_bytes(header)
    peer.expect_header(HEADER_1_0_SASL)
    peer.expect_end()


def test_another_protocol_is_answered_as_before(connect1: Connect1) -> None:
    peer = connect1()
    peer.send_bytes(b"HTTP/1.1")
    peer.expect_header(HEADER_0_9_1)
    peer.expect_end()


@pytest.mark.rule("1.0#016", "1.0#180")
def test_another_header_than_that_of_amqp_after_the_login_ends_the_connection(
    connect1: Connect1,
) -> None:
    peer = connect1()
    peer.greet()
    peer.send(_plain(), kind=SASL)
    peer.expect(c.SaslOutcome, code=0)
    peer.send_bytes(HEADER_0_9_1)
    peer.expect_header(HEADER_1_0)
    peer.expect_end()


def test_a_bare_header_logs_the_anonymous_user_in() -> None:
    site = MemorySite(anonymous_user="guest")
    peer = Peer1(site, site.connect())
    peer.send_bytes(HEADER_1_0)
    peer.expect_header(HEADER_1_0)
    peer.send(c.Open("c"))
    peer.expect(c.Open)
    peer.opened = True
    peer.done()


@pytest.mark.parametrize("configured", ["guest", None])
def test_anonymous_is_the_configured_user_or_guest(configured: str | None) -> None:
    site = MemorySite(anonymous_user=configured)
    peer = Peer1(site, site.connect())
    assert "ANONYMOUS" in peer.greet().sasl_server_mechanisms
    peer.send(c.SaslInit("ANONYMOUS"), kind=SASL)
    peer.expect(c.SaslOutcome, code=0)
    assert [each.user.name for each in site.registry.connections] == ["guest"]


def test_guest_with_another_password_is_not_anonymous() -> None:
    site = MemorySite()
    site.users.add("guest", "secret", vhosts=("/",))
    peer = Peer1(site, site.connect())
    peer.greet()
    peer.send(c.SaslInit("ANONYMOUS"), kind=SASL)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()


@pytest.mark.parametrize(
    "settings", [{"anonymous_user": ""}, {"mechanisms": ("PLAIN",)}], ids=["none", "not allowed"]
)
def test_anonymous_is_not_offered_where_it_is_switched_off(settings: dict[str, object]) -> None:
    site = MemorySite(**settings)
    peer = Peer1(site, site.connect())
    assert "ANONYMOUS" not in peer.greet().sasl_server_mechanisms
    peer.send(c.SaslInit("ANONYMOUS"), kind=SASL)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()


def test_guest_is_not_anonymous_from_elsewhere() -> None:
    site = MemorySite()
    peer = Peer1(site, site.connect("10.0.0.1"))
    peer.greet()
    peer.send(c.SaslInit("ANONYMOUS"), kind=SASL)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()


@pytest.mark.rule("1.0#180", "1.0#182", "1.0#183")
@pytest.mark.parametrize(
    "init", [_plain(password="wrong"), c.SaslInit("PLAIN", b"guest"), c.SaslInit("NONE", b"")]
)
def test_a_refused_login_ends_with_its_outcome(connect1: Connect1, init: c.SaslInit) -> None:
    peer = connect1()
    peer.greet()
    peer.send(init, kind=SASL)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()


@pytest.mark.rule("1.0#176")
def test_a_refused_login_is_read_to_its_end(site: Site, connect1: Connect1) -> None:
    peer = connect1()
    peer.greet()
    peer.send(_plain(password="wrong"), kind=SASL)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()
    # A socket that is closed with unread input is reset, and the outcome may be lost.
    for _ in range(3):
        peer.send_bytes(bytes(10_000))
    assert peer.wire.read(0.0) in (None, b"")


@pytest.mark.rule("1.0#179")
def test_a_long_frame_of_the_sasl_layer_may_have_anything_in_place_of_a_channel(
    memory: MemorySite, memory1: Connect1
) -> None:
    secret = "s" * 4_000
    memory.users.add("long", secret, vhosts=("/",))
    peer = memory1()
    peer.greet()
    init = _plain("long", secret).encoded()
    peer.send_bytes(encode_frame(init, 0xABCD, SASL))
    peer.expect(c.SaslOutcome, code=0)


def test_a_challenge_is_answered(memory1: Connect1) -> None:
    peer = memory1()
    peer.greet()
    peer.send(c.SaslInit("SCRAM-SHA-256", b"n,,n=guest,r=abc"), kind=SASL)
    assert peer.expect(c.SaslChallenge).challenge.startswith(b"r=abc")
    peer.send(c.SaslResponse(b"c=biws,r=wrong,p=AAAA"), kind=SASL)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()


@pytest.mark.rule("1.0#022")
@pytest.mark.parametrize(
    "frame",
    [
        encode_frame(_plain().encoded(), kind=0),
        encode_frame(c.SaslResponse(b"").encoded(), kind=SASL),
        encode_frame(c.SaslOutcome(0).encoded(), kind=SASL),
        encode_frame(b"\0\x53\x41\x41", kind=SASL),
    ],
)
def test_other_frames_in_the_sasl_layer_are_refused(connect1: Connect1, frame: bytes) -> None:
    peer = connect1()
    peer.greet()
    peer.send_bytes(frame)
    peer.expect(c.SaslOutcome, code=1)
    peer.expect_end()


@pytest.mark.rule("1.0#017", "1.0#025", "1.0#181")
def test_all_frames_of_a_connection_may_come_in_one_packet(connect1: Connect1) -> None:
    peer = connect1()
    peer.send_bytes(
        HEADER_1_0_SASL,
        encode_frame(_plain().encoded(), kind=SASL),
        HEADER_1_0,
        encode_frame(c.Open("c").encoded()),
        encode_frame(c.Begin(None, 0, 1, 1).encoded(), 5),
        encode_frame(c.Close().encoded()),
    )
    peer.expect_header(HEADER_1_0_SASL)
    peer.expect(c.SaslMechanisms)
    peer.expect(c.SaslOutcome, code=0)
    peer.expect_header(HEADER_1_0)
    peer.expect(c.Open)
    peer.expect(c.Begin, channel=5, remote_channel=5)
    peer.expect(c.Close, error=None)


# --- frames -------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#018")
@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"\0\0\0\x07\2\0\0\0", "frame size (7 bytes) < minimum frame size (8 bytes)"),
        (b"\0\x20\0\0\2\0\0\0", "> maximum frame size (131072 bytes)"),
        (b"\0\0\0\x08\1\0\0\0", "data offset (1) < minimum data offset (2)"),
        (b"\0\0\0\x08\3\0\0\0", "data offset (12 bytes) > frame size (8 bytes)"),
        (b"\0\0\0\x08\2\2\0\0", "unexpected frame type 2 in amqp mode (expected 0)"),
    ],
)
def test_a_malformed_frame_closes_the_connection(
    connect1: Connect1, octets: bytes, text: str
) -> None:
    peer = connect1().open()
    peer.send_bytes(octets)
    peer.expect_error(c.Close, "amqp:connection:framing-error", text)
    peer.expect_end()


@pytest.mark.rule("1.0#019", "1.0#021")
def test_empty_frames_and_extended_headers_are_skipped(peer1: Peer1) -> None:
    peer1.send_bytes(EMPTY, b"\0\0\0\x0c\3\0\0\0abcd")
    peer1.quiet()


@pytest.mark.rule("1.0#006")
def test_a_performative_that_lacks_a_field_is_refused(connect1: Connect1) -> None:
    peer = connect1().open()
    peer.send_bytes(encode_frame(b"\0\x53\x11\x45"))
    peer.expect_close("amqp:decode-error", "begin: next-outgoing-id: is mandatory")


@pytest.mark.parametrize("value", [None, [], Described(ULong(1), None)])
def test_a_performative_has_so_many_values_and_no_more(peer1: Peer1, value: object) -> None:
    few = [None] * (PERFORMATIVE_VALUES // 2)
    peer1.send(c.Flow(None, 2048, 0, 2048, echo=True, properties={Symbol("few"): few}))
    peer1.expect(c.Flow, handle=None)
    many = [value] * PERFORMATIVE_VALUES
    peer1.send(c.Flow(None, 2048, 0, 2048, properties={Symbol("many"): many}))
    peer1.expect_close("amqp:decode-error", f"more than {PERFORMATIVE_VALUES} values")


def test_long_performatives_are_taken_in_turns(memory: MemorySite, memory1: Connect1) -> None:
    peer = memory1().open().begin()
    turns = memory.registry.turns
    turns.limit(WORK_USER_UNITS, lambda: None)
    few = [None] * 8_192
    flow = c.Flow(None, 2048, 0, 2048, echo=True, properties={Symbol("few"): few}).encoded()
    peer.send_bytes(encode_frame(flow) * 40)
    count = 0
    while turns.busy:
        turns.next_turn()
        memory.turn()
        count += 1
    assert count >= 10
    for _ in range(40):
        peer.expect(c.Flow, handle=None)


@pytest.mark.rule("1.0#009")
def test_a_performative_may_be_named_by_its_symbol(connect1: Connect1) -> None:
    peer = connect1().open()
    begin = c.Begin(None, 0, 1, 1).encoded()
    peer.send_bytes(encode_frame(b"\0\xa3\x0famqp:begin:list" + begin[3:]))
    peer.expect(c.Begin)


@pytest.mark.rule("1.0#020")
def test_a_payload_behind_another_performative_than_transfer_is_refused(connect1: Connect1) -> None:
    peer = connect1().open()
    peer.send_bytes(encode_frame(c.Begin(None, 0, 1, 1).encoded() + b"x"))
    peer.expect_error(c.Close, "amqp:connection:framing-error", "begin with a payload")
    peer.expect_end()


@pytest.mark.rule("1.0#121")
def test_an_error_needs_a_condition_and_may_have_any(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    peer1.send(c.Detach(0, True, c.Error("app:own-condition")))
    peer1.expect(c.Detach, handle=0, closed=True, error=None)
    peer1.send_bytes(encode_frame(b"\0\x53\x17\xc0\x05\1\0\x53\x1d\x45"))
    peer1.expect_close("amqp:decode-error", "condition")


@pytest.mark.rule("1.0#117")
def test_an_answer_that_does_not_fit_the_frames_of_the_peer(queue: str, connect1: Connect1) -> None:
    peer = connect1().open(max_frame_size=512).begin()
    asked = c.Attach(
        "n" * 600,
        0,
        False,
        source=c.Source(),
        target=c.Target(f"/queues/{queue}"),
        initial_delivery_count=0,
    )
    peer.send(asked)
    peer.expect_close("amqp:frame-size-too-small", "attach of", "(512 bytes)")


# --- open ---------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#041")
def test_texts_are_english_whatever_a_client_speaks(connect1: Connect1) -> None:
    locales = (Symbol("de-DE"), Symbol("en-US"))
    peer = connect1().open(outgoing_locales=locales, incoming_locales=locales)
    peer.send(c.Begin(3, 0, 1, 1))
    peer.expect_close("amqp:not-allowed", "begin with a remote-channel")


@pytest.mark.rule("1.0#042", "1.0#044")
def test_what_the_broker_does_not_know_is_not_offered_and_does_no_harm(connect1: Connect1) -> None:
    unknown = Symbol("com.example:teleport")
    peer = connect1().open(
        offered_capabilities=(unknown,),
        desired_capabilities=(unknown, Symbol("ANONYMOUS-RELAY")),
        properties={Symbol("com.example:colour"): "blue", unknown: [1, {Symbol("a"): None}]},
    )
    assert unknown not in peer.answer.offered_capabilities
    peer.begin()


@pytest.mark.rule("1.0#037", "1.0#184")
def test_the_open_of_the_broker_says_its_limits_and_what_it_is(connect1: Connect1) -> None:
    answer = connect1().open(max_frame_size=4096, channel_max=7).answer
    assert answer.container_id
    assert answer.max_frame_size == 131_072
    assert answer.idle_time_out == 30_000
    assert "ANONYMOUS-RELAY" in answer.offered_capabilities
    properties = answer.properties or {}
    assert properties["product"] == "RabbitMQ"
    assert int(properties["version"].split(".")[0]) >= 4
    assert {"platform", "copyright", "information", "cluster_name", "node"} <= set(properties)


@pytest.mark.rule("1.0#023")
def test_a_session_before_open_is_refused(connect1: Connect1) -> None:
    peer = connect1().login()
    peer.send(c.Begin(None, 0, 1, 1))
    failed = peer.expect(c.Open).properties or {}
    assert failed["amqp:connection-establishment-failed"] is True
    peer.expect_error(c.Close, "amqp:connection:framing-error", "begin while the connection is")
    peer.expect_end()


def test_a_second_open_is_refused(connect1: Connect1) -> None:
    peer = connect1().open()
    peer.send(c.Open("again"))
    peer.expect_close("amqp:not-allowed", "open on a connection that is open")


@pytest.mark.rule("1.0#024")
def test_open_on_another_channel_is_refused(connect1: Connect1) -> None:
    peer = connect1().login()
    peer.send(c.Open("c"), channel=1)
    peer.expect(c.Open)
    peer.expect_error(c.Close, "amqp:connection:framing-error", "open on channel 1")
    peer.expect_end()


@pytest.mark.rule("1.0#038")
def test_a_maximum_frame_size_below_the_least_is_refused(connect1: Connect1) -> None:
    peer = connect1().login()
    peer.send(c.Open("c", max_frame_size=511))
    peer.expect(c.Open)
    peer.expect_error(c.Close, "amqp:connection:framing-error", "max-frame-size (511 bytes)")
    peer.expect_end()


@pytest.mark.rule("1.0#043")
@pytest.mark.parametrize("hostname", ["127.0.0.1", None, "vhost:/"])
def test_a_hostname_is_no_vhost_without_its_prefix(
    connect1: Connect1, hostname: str | None
) -> None:
    peer = connect1().login()
    peer.send(c.Open("c", hostname))
    peer.expect(c.Open)
    peer.opened = True


def test_a_vhost_that_is_not_there(connect1: Connect1) -> None:
    peer = connect1().login()
    peer.send(c.Open("c", "vhost:none"))
    peer.expect(c.Open)
    peer.expect_close("amqp:unauthorized-access", "virtual host 'none' does not exist")


def test_a_vhost_that_the_user_may_not_open(memory: MemorySite, memory1: Connect1) -> None:
    memory.users.add("other", "secret")
    peer = memory1().login("other", "secret")
    peer.send(c.Open("c"))
    peer.expect(c.Open)
    peer.expect_close("amqp:unauthorized-access", "access to vhost '/' refused for user 'other'")


def test_a_connection_above_the_limit_is_closed() -> None:
    site = MemorySite(connection_max=1)
    first = Peer1(site, site.connect()).open()
    second = Peer1(site, site.connect()).login()
    second.send(c.Open("c"))
    second.expect(c.Open)
    second.expect_close("amqp:resource-limit-exceeded", "node connection limit (1) is reached")
    first.done()


# --- keep-alives --------------------------------------------------------------------------------


@pytest.mark.rule("1.0#034")
def test_an_idle_time_out_that_is_too_short(connect1: Connect1) -> None:
    peer = connect1().login()
    peer.send(c.Open("c", idle_time_out=999))
    peer.expect(c.Open)
    peer.expect_close("amqp:not-allowed", "idle-time-out (999 ms) < minimum idle-time-out")


@pytest.mark.rule("1.0#031", "1.0#032")
def test_a_peer_hears_something_in_its_idle_time_out(memory: MemorySite, memory1: Connect1) -> None:
    peer = memory1().open(idle_time_out=2_000)
    for _ in range(10):
        memory.pass_time(1.0)
        assert peer.next("an empty frame").value is None
        while (more := peer.maybe()) is not None:
            assert more.value is None
        peer.keep_alive()


@pytest.mark.rule("1.0#033")
def test_a_silent_peer_is_told_before_the_end(memory: MemorySite, memory1: Connect1) -> None:
    peer = memory1().open()
    memory.pass_time(59)
    assert peer.maybe() is None
    memory.pass_time(2)
    words = "no frame received from client within idle timeout threshold"
    peer.expect_error(c.Close, "amqp:resource-limit-exceeded", words)
    peer.expect_end()


@pytest.mark.rule("1.0#035")
def test_without_an_idle_time_out_nothing_is_sent(memory: MemorySite, memory1: Connect1) -> None:
    peer = memory1().open(idle_time_out=0)
    memory.pass_time(50)
    assert peer.maybe() is None


@pytest.mark.rule("1.0#036")
def test_a_flow_is_as_good_as_an_empty_frame(memory: MemorySite, memory1: Connect1) -> None:
    peer = memory1().open(idle_time_out=0).begin()
    for _ in range(5):
        memory.pass_time(40)
        peer.send(c.Flow(0, 100, 0, 100))
    peer.quiet()


# --- close --------------------------------------------------------------------------------------


@pytest.mark.rule("1.0#026", "1.0#027", "1.0#028")
def test_close_is_answered_last(connect1: Connect1) -> None:
    peer = connect1().open().begin()
    peer.close()
    assert peer.maybe(0.05) is None


@pytest.mark.rule("1.0#029", "1.0#030")
def test_what_comes_after_a_close_with_an_error_is_dropped(connect1: Connect1) -> None:
    peer = connect1().open().begin()
    peer.send(c.Open("again"))
    peer.expect_error(c.Close, "amqp:not-allowed")
    peer.send(c.Begin(None, 0, 1, 1), channel=3)
    peer.send(c.End())
    peer.send(c.Close())
    peer.opened = False
    peer.expect_end()


def test_a_connection_that_the_broker_closes_gets_the_reason(
    memory: MemorySite, memory1: Connect1
) -> None:
    peer = memory1().open()
    for connection in list(memory.registry.connections):
        connection.force_close("broker forced connection closure", memory.now)
    memory.turn()
    peer.expect_close("amqp:connection:forced", "Connection forced: broker forced")


def test_a_connection_is_listed(memory: MemorySite, memory1: Connect1) -> None:
    memory1().open(properties={"product": "raw", "connection_name": "mine"})
    connection = next(iter(memory.registry.connections))
    assert connection.version == "1-0"
    assert connection.client_properties["connection_name"] == "mine"
    assert memory.logged("client-provided name: mine")
