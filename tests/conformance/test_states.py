"""Every method in every state of connection and channel: what is legal goes on, the rest ends.

The tables below are written by hand, one expectation for each method that the version knows; a
method without one fails `test_every_method_has_an_expectation`. They are not taken from
`harebell.wire.v09.states`, so that a mistake there shows here.

    state         what the broker waits for                        how the test gets there
    STARTING      start-ok                                         protocol header
    TUNING        tune-ok                                          start-ok
    OPENING       open                                             tune-ok
    OPEN          anything                                         open
    CLOSING       close-ok of its own close                        a mistake
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.method import METHODS
from tests.conformance.frames import METHOD, body, content_header, frame
from tests.conformance.raw import Peer, encoded, ids, start_ok
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]

NAMES = [spec.name for spec in AMQP_0_9_1.methods]
FROM_SERVER = {
    "connection.start", "connection.secure", "connection.tune", "connection.open-ok",
    "connection.blocked", "connection.unblocked", "connection.update-secret-ok",
    "channel.open-ok", "access.request-ok", "exchange.declare-ok", "exchange.delete-ok",
    "exchange.bind-ok", "exchange.unbind-ok", "queue.declare-ok", "queue.bind-ok",
    "queue.purge-ok", "queue.delete-ok", "queue.unbind-ok", "basic.qos-ok", "basic.consume-ok",
    "basic.return", "basic.deliver", "basic.get-ok", "basic.get-empty", "basic.recover-ok",
    "tx.select-ok", "tx.commit-ok", "tx.rollback-ok", "confirm.select-ok",
    "lease.open-ok", "lease.claim-ok", "lease.commit-ok", "lease.release-ok", "lease.renew-ok",
    "lease.close-ok",
    "stage.open-ok", "stage.append-ok", "stage.commit-ok", "stage.abort-ok", "stage.discard-ok",
    "bulk.span-ok", "bulk.batch", "bulk.queues-ok", "publisher.declare-ok", "publisher.forget-ok",
    "query.report-ok", "history.ask-ok",
}  # fmt: skip
"""Methods that a client never sends."""

ANSWERS = {"channel.flow-ok", "channel.close-ok", "basic.cancel-ok"}
"""Methods that a client sends as answers only; an open channel has asked for none."""

CONNECTION_CLASS = {name for name in NAMES if name.startswith("connection.")}

REPLIES: dict[str, m.Method | None] = {
    "channel.flow": m.ChannelFlowOk(True),
    "channel.close": m.ChannelCloseOk(),
    "access.request": m.AccessRequestOk(),
    "exchange.declare": m.ExchangeDeclareOk(),
    "exchange.delete": m.ExchangeDeleteOk(),
    "exchange.bind": m.ExchangeBindOk(),
    "exchange.unbind": m.ExchangeUnbindOk(),
    "queue.declare": m.QueueDeclareOk("q", 0, 0),
    "queue.bind": m.QueueBindOk(),
    "queue.purge": m.QueuePurgeOk(0),
    "queue.delete": m.QueueDeleteOk(0),
    "queue.unbind": m.QueueUnbindOk(),
    "basic.qos": m.BasicQosOk(),
    "basic.consume": m.BasicConsumeOk("t"),
    "basic.cancel": m.BasicCancelOk("t"),
    "basic.publish": None,
    "basic.get": m.BasicGetEmpty(),
    "basic.ack": None,
    "basic.reject": None,
    "basic.nack": None,
    "basic.recover-async": None,
    "basic.recover": m.BasicRecoverOk(),
    "confirm.select": m.ConfirmSelectOk(),
    "tx.select": m.TxSelectOk(),
    "tx.commit": m.TxCommitOk(),
    "tx.rollback": m.TxRollbackOk(),
    "lease.open": m.LeaseOpenOk(epoch=1),
    "lease.claim": m.LeaseClaimOk(),
    "lease.commit": m.LeaseCommitOk(),
    "lease.release": m.LeaseReleaseOk(),
    "lease.renew": m.LeaseRenewOk(),
    "lease.close": m.LeaseCloseOk(),
    "stage.open": m.StageOpenOk(),
    "stage.append": None,
    "stage.commit": m.StageCommitOk(),
    "stage.abort": m.StageAbortOk(),
    "stage.discard": m.StageDiscardOk(),
    "bulk.span": m.BulkSpanOk(kind="classic"),
    "bulk.read": m.BulkBatch(),
    "bulk.queues": m.BulkQueuesOk(b"\x01q"),
    "bulk.letters": m.BulkQueuesOk(b"\x01q"),
    "publisher.declare": m.PublisherDeclareOk(),
    "publisher.forget": m.PublisherForgetOk(),
    "query.report": m.QueryReportOk(),
    "history.ask": m.HistoryAskOk(),
}
"""What an open channel answers to each method that a client may send."""

SENT: dict[str, m.Method] = {
    "connection.start-ok": start_ok(),
    "connection.tune-ok": m.ConnectionTuneOk(0, 0, 0),
    "connection.open": m.ConnectionOpen(virtual_host="/"),
    "connection.close": m.ConnectionClose(200),
    "channel.flow": m.ChannelFlow(True),
    "channel.close": m.ChannelClose(200),
    "exchange.declare": m.ExchangeDeclare("new", "direct"),
    "exchange.delete": m.ExchangeDelete("x"),
    "exchange.bind": m.ExchangeBind("x", "amq.direct", "k"),
    "exchange.unbind": m.ExchangeUnbind("x", "amq.direct", "k"),
    "queue.declare": m.QueueDeclare("q"),
    "queue.bind": m.QueueBind("q", "amq.direct", "k"),
    "queue.purge": m.QueuePurge("q"),
    "queue.delete": m.QueueDelete("q"),
    "queue.unbind": m.QueueUnbind("q", "amq.direct", "k"),
    "basic.consume": m.BasicConsume("q", "t"),
    "basic.cancel": m.BasicCancel("t"),
    "basic.get": m.BasicGet("q"),
    "basic.ack": m.BasicAck(1),
    "basic.reject": m.BasicReject(1, True),
    "basic.nack": m.BasicNack(1, False, True),
    "basic.recover": m.BasicRecover(True),
    "basic.recover-async": m.BasicRecoverAsync(True),
    "history.ask": m.HistoryAsk("q"),
    "lease.open": m.LeaseOpen("q", "g"),
    "lease.claim": m.LeaseClaim("q", "g", 1),
    "lease.commit": m.LeaseCommit("q", "g", 1),
    "lease.release": m.LeaseRelease("q", "g", 1),
    "lease.renew": m.LeaseRenew("q", "g", 1),
    "lease.close": m.LeaseClose("q", "g", 1),
    "stage.open": m.StageOpen("p", "r"),
    "stage.append": m.StageAppend("p", "r"),
    "stage.commit": m.StageCommit("p", "r"),
    "stage.abort": m.StageAbort("p", "r"),
    "stage.discard": m.StageDiscard("p", "r"),
    "bulk.span": m.BulkSpan("q"),
    "bulk.letters": m.BulkLetters("q"),
    "bulk.read": m.BulkRead("q", columns=b"value"),
    "publisher.declare": m.PublisherDeclare("p"),
    "publisher.forget": m.PublisherForget("p"),
    "query.report": m.QueryReport("q"),
}
"""Methods whose zero values would not do in an open channel; the others are sent as they are."""


def method(name: str) -> m.Method:
    """A method that would be fine in the right place."""
    return SENT.get(name) or METHODS[name]()


@pytest.fixture(params=NAMES)
def named(request: pytest.FixtureRequest) -> str:
    """Each method of the version."""
    name: str = request.param
    return name


def test_every_method_has_an_expectation() -> None:
    in_channel = set(REPLIES) | {"channel.open"} | ANSWERS
    on_zero = {f"connection.{name}" for name in ("start-ok", "secure-ok", "tune-ok", "open",
                                                 "close", "close-ok", "update-secret")}  # fmt: skip
    assert set(NAMES) == in_channel | on_zero | FROM_SERVER
    assert not in_channel & FROM_SERVER
    assert not on_zero & FROM_SERVER


# --- channel 0 before the connection is open ------------------------------------------------------


def starting(peer: Peer) -> None:
    peer.greet()


def tuning(peer: Peer) -> None:
    starting(peer)
    peer.log_in()


def opening(peer: Peer) -> None:
    tuning(peer)
    peer.send(m.ConnectionTuneOk(0, 0, 0))


BEFORE_OPEN: dict[Callable[[Peer], None], dict[str, type[m.Method] | None]] = {
    starting: {"connection.start-ok": m.ConnectionTune, "connection.close": m.ConnectionCloseOk},
    tuning: {"connection.tune-ok": None, "connection.close": m.ConnectionCloseOk},
    opening: {"connection.open": m.ConnectionOpenOk, "connection.close": m.ConnectionCloseOk},
}
"""What may come before the connection is open, and its answer."""


@pytest.fixture
def forgiven(connect: Connect) -> Iterator[None]:
    """The broker turns an address away that fails too often; one connection makes up for it."""
    yield
    connect().open()


@pytest.mark.usefixtures("forgiven")
@pytest.mark.parametrize("state", BEFORE_OPEN, ids=lambda state: state.__name__)
def test_before_the_connection_is_open_only_its_next_step_is_taken(
    connect: Connect, state: Callable[[Peer], None], named: str
) -> None:
    peer = connect()
    state(peer)
    peer.send_bytes(frame(METHOD, 0, AMQP_0_9_1.encode(method(named))))
    legal = BEFORE_OPEN[state]
    if named not in legal:
        if state is opening:
            text = "CHANNEL_ERROR - unexpected method in connection state opening"
            peer.expect_connection_close(504, text, named)
        else:
            peer.expect_closed()
        return
    answer = legal[named]
    if answer is None:
        peer.expect_silence()
    else:
        peer.expect(answer)
    if answer is m.ConnectionCloseOk:
        peer.expect_parting()


@pytest.mark.parametrize("state", BEFORE_OPEN, ids=lambda state: state.__name__)
def test_before_the_connection_is_open_there_are_no_channels(
    connect_memory: Connect, state: Callable[[Peer], None], named: str
) -> None:
    peer = connect_memory()
    state(peer)
    peer.send_bytes(frame(METHOD, 1, AMQP_0_9_1.encode(method(named))))
    peer.expect_closed()


@pytest.mark.parametrize("channel", [0, 1])
def test_before_the_protocol_header_no_frame_is_looked_at(
    connect_memory: Connect, named: str, channel: int
) -> None:
    peer = connect_memory()
    peer.send_bytes(frame(METHOD, channel, AMQP_0_9_1.encode(method(named))))
    answered = peer.wire.read(0)
    assert answered == b"AMQP\x00\x00\x09\x01"
    peer.expect_closed()


def test_before_authentication_nothing_but_start_ok_is_even_decoded(
    memory: MemorySite, connect_memory: Connect, named: str
) -> None:
    if named in ("connection.start-ok", "connection.close"):
        # Their fields are read, and these are none; the rest is told from its number alone.
        wanted = ("caused a connection exception syntax_error",)
    else:
        wanted = ('channel_error: "unexpected method in connection state starting',)
    peer = connect_memory()
    peer.greet()
    class_id, method_id = ids(named)
    peer.send_bytes(frame(METHOD, 0, class_id.to_bytes(2) + method_id.to_bytes(2) + b"\xff" * 9))
    peer.expect_closed()
    assert memory.logged(*wanted)


def test_nothing_sent_before_authentication_takes_effect(
    memory: MemorySite, connect_memory: Connect
) -> None:
    peer = connect_memory()
    peer.greet()
    peer.send(m.ChannelOpen(), m.QueueDeclare(queue="q"))
    peer.expect_closed()
    peer = connect_memory()
    peer.greet()
    peer.send(
        start_ok(password="wrong"),
        m.ConnectionTuneOk(0, 0, 0),
        m.ConnectionOpen(virtual_host="/"),
        m.ChannelOpen(),
        m.QueueDeclare(queue="q"),
    )
    peer.expect_silence()
    memory.pass_time(4)
    peer.expect_closed()
    assert not memory.broker.vhosts["/"].queues


# --- channel 0 of an open connection --------------------------------------------------------------


def test_on_channel_0_an_open_connection_takes_close_alone(connect: Connect, named: str) -> None:
    peer = connect().open(channels=())
    peer.send_bytes(frame(METHOD, 0, AMQP_0_9_1.encode(method(named))))
    if named == "connection.close":
        peer.expect(m.ConnectionCloseOk)
        peer.expect_parting()
    elif named == "connection.update-secret":
        peer.expect(m.ConnectionUpdateSecretOk)
    else:
        text = "CHANNEL_ERROR - unexpected method in connection state running"
        peer.expect_connection_close(504, text, named)


# --- a channel that is not open -------------------------------------------------------------------


def test_a_channel_that_is_not_open_takes_open_alone(connect: Connect, named: str) -> None:
    peer = connect().open(channels=())
    peer.send_bytes(frame(METHOD, 5, AMQP_0_9_1.encode(method(named))))
    if named == "channel.open":
        peer.expect(m.ChannelOpenOk, 5)
        return
    peer.expect_connection_close(504, "CHANNEL_ERROR - expected 'channel.open'", named)


# --- an open channel ------------------------------------------------------------------------------


def ready_channel(peer: Peer, name: str) -> None:
    """What the methods above need to be fine: queue q, exchange x, a delivery, a transaction."""
    to_itself = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    peer.queue("q", arguments=to_itself if name == "bulk.letters" else {})
    peer.ask(m.ExchangeDeclare("x", "direct"))
    if name in ("basic.ack", "basic.reject", "basic.nack"):
        peer.publish("", "q", b"one")
        peer.get("q", no_ack=False)
    if name in ("tx.commit", "tx.rollback"):
        peer.ask(m.TxSelect())
    if name.startswith("lease.") and name != "lease.open":
        peer.ask(m.LeaseOpen("q", "g"))
    if name in ("stage.commit", "stage.abort", "stage.discard"):
        peer.ask(m.StageOpen("p", "r"))


def test_an_open_channel_takes_what_clients_may_send(connect: Connect, named: str) -> None:
    peer = connect().open()
    ready_channel(peer, named)
    peer.send_bytes(frame(METHOD, 1, AMQP_0_9_1.encode(method(named))))
    if named in REPLIES:
        reply = REPLIES[named]
        if reply is not None:
            answer = peer.expect(type(reply))
            if isinstance(answer, m.LeaseOpenOk):
                # The rest is the identity of a log, and a default.
                answer = m.LeaseOpenOk(answer.epoch)
            elif isinstance(answer, m.BulkSpanOk):
                # The rest is the identity of a log.
                answer = m.BulkSpanOk(kind=answer.kind)
            elif isinstance(answer, m.HistoryAskOk):
                assert answer.generation
                assert answer.eras
                answer = m.HistoryAskOk()
            elif isinstance(answer, m.PublisherDeclareOk):
                assert answer.eras
                answer = m.PublisherDeclareOk(answer.next)
            elif isinstance(answer, m.BulkQueuesOk):
                # Queues of other tests may be there still: they go when their connections do.
                assert b"\x01q" in answer.names
                answer = m.BulkQueuesOk(b"\x01q", answer.more)
            assert answer == reply
        if named == "basic.publish":
            peer.send_bytes(content_header(0))
        if named == "bulk.read":
            header, content = (peer.next_frame(what) for what in ("a header", "a record batch"))
            assert int.from_bytes(header.payload[4:12]) == len(content.payload)
        peer.expect_silence()
    elif named == "channel.open":
        peer.expect_connection_close(504, "CHANNEL_ERROR - second 'channel.open' seen", named)
    else:
        assert named in FROM_SERVER | CONNECTION_CLASS | ANSWERS
        peer.expect_connection_close(503, "COMMAND_INVALID - unimplemented method", named)


# --- a channel in the middle of a content ---------------------------------------------------------

NO_HEADER = (
    "UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead"
)
NO_BODY = "UNEXPECTED_FRAME - expected content body, got non content body frame instead"


@pytest.mark.rule("0-9-1#043")
def test_no_method_fits_between_a_publish_and_its_header(connect: Connect, named: str) -> None:
    peer = connect().open()
    peer.queue("q")
    sent = frame(METHOD, 1, AMQP_0_9_1.encode(method(named)))
    peer.send_bytes(encoded(m.BasicPublish(routing_key="q")), sent)
    peer.expect_connection_close(505, NO_HEADER, "basic.publish")


@pytest.mark.rule("0-9-1#043")
def test_no_method_fits_between_a_header_and_its_body(connect: Connect, named: str) -> None:
    peer = connect().open()
    peer.queue("q")
    sent = frame(METHOD, 1, AMQP_0_9_1.encode(method(named)))
    publish = encoded(m.BasicPublish(routing_key="q"))
    peer.send_bytes(publish, content_header(5), body(b"hal"), sent)
    peer.expect_connection_close(505, NO_BODY, "basic.publish")


# --- a channel that the broker has closed ---------------------------------------------------------


@pytest.mark.rule("0-9-1r#023", "0-9-1r#024")
def test_a_channel_that_the_broker_closed_ignores_all_but_the_close_handshake(
    connect: Connect, named: str
) -> None:
    peer = connect().open()
    peer.queue("q")
    peer.send(m.BasicGet(queue="none"))
    peer.expect(m.ChannelClose, reply_code=404)
    peer.send_bytes(frame(METHOD, 1, AMQP_0_9_1.encode(method(named))))
    if named == "channel.close":
        peer.expect(m.ChannelCloseOk)
    peer.expect_silence()
    if named != "channel.close-ok":
        peer.send(m.ChannelCloseOk())
    # The number is free again, and nothing that came in between has happened.
    peer.ask(m.ChannelOpen())
    assert peer.count("q") == 0


@pytest.mark.rule("0-9-1r#023")
def test_a_closing_channel_ignores_what_it_cannot_even_read(peer: Peer) -> None:
    peer.send(m.BasicGet(queue="none"))
    peer.expect(m.ChannelClose, reply_code=404)
    garbage = b"\xff" * 20
    for head in (b"\0\x32\0\x0a", b"\0\x3c\0\x28", b"\x7f\xff\0\0", b"\0"):
        peer.send_bytes(frame(METHOD, 1, head + garbage))
    peer.send_bytes(content_header(3, b"\0\3"), body(b"abc"))
    peer.expect_silence()
    peer.send(m.ChannelCloseOk())
    peer.ask(m.ChannelOpen())


# --- a connection that the broker has closed ------------------------------------------------------


def closing(connect: Connect) -> Peer:
    """A connection after the broker's connection.close."""
    peer = connect().open()
    peer.send(m.BasicQos(prefetch_size=1))
    peer.expect(m.ConnectionClose, reply_code=540)
    peer.opened = False
    return peer


@pytest.mark.rule("0-9-1r#018", "0-9-1r#019")
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_a_connection_that_the_broker_closed_ignores_all_but_the_close_handshake(
    connect_memory: Connect, memory: MemorySite, named: str, channel: int
) -> None:
    peer = closing(connect_memory)
    peer.send_bytes(frame(METHOD, channel, AMQP_0_9_1.encode(method(named))))
    if (channel, named) == (0, "connection.close"):
        peer.expect(m.ConnectionCloseOk)
    if (channel, named) != (0, "connection.close-ok"):
        peer.expect_silence()
        peer.send(m.ConnectionCloseOk())
    peer.expect_closed()
    assert not memory.broker.vhosts["/"].queues


@pytest.mark.rule("0-9-1r#018")
@pytest.mark.parametrize("kind", [2, 3, 8])
@pytest.mark.parametrize("channel", [0, 1, 2])
def test_a_connection_that_the_broker_closed_ignores_other_frames_too(
    connect: Connect, kind: int, channel: int
) -> None:
    peer = closing(connect)
    payload = b"" if kind == 8 else b"x" * 20
    peer.send_bytes(frame(kind, channel, payload))
    peer.expect_silence()
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()


@pytest.mark.rule("0-9-1#011", "0-9-1r#018")
@pytest.mark.parametrize("cut", range(0, 30, 3))
def test_methods_behind_a_mistake_in_the_same_read_do_not_derail_the_close(
    connect: Connect, cut: int
) -> None:
    peer = connect().open()
    mistake = encoded(m.BasicQos(prefetch_size=1))
    behind = encoded(m.QueueDeclare(queue="q")) * 3
    peer.send_bytes(mistake + behind[:cut])
    peer.expect(m.ConnectionClose, reply_code=540)
    peer.opened = False
    peer.expect_silence()
    peer.send_bytes(behind[cut:])
    peer.expect_silence()
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()


def test_a_close_ok_right_behind_the_mistake_ends_the_connection(connect: Connect) -> None:
    # A client that closes for its own reasons while the broker does, too.
    peer = connect().open()
    peer.send(m.BasicQos(prefetch_size=1), m.ConnectionClose(200))
    peer.expect(m.ConnectionClose, reply_code=540)
    peer.expect(m.ConnectionCloseOk)
    peer.opened = False
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()


def test_a_closed_connection_answers_nothing(connect_memory: Connect, named: str) -> None:
    peer: Any = connect_memory().open()
    peer.close()
    peer.wire.connection.receive(frame(METHOD, 0, AMQP_0_9_1.encode(method(named))), peer.site.now)
    peer.site.turn()
    peer.expect_closed()
