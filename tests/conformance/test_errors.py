"""The errors that clients know, each with its code, scope, text and failing method.

One row is one mistake on an otherwise sound connection: what was there before, what the client
does, and what it is told. After a channel exception the channel is over and everything else goes
on; after a connection exception only close-ok is left to say (AMQP 0-9-1 1.2 and 2.3.7).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer, publish_octets

NO_QUEUE = "NOT_FOUND - no queue 'none' in vhost '/'"
NO_EXCHANGE = "NOT_FOUND - no exchange 'none' in vhost '/'"
NO_LAST_QUEUE = "NOT_FOUND - no previously declared queue"
DEFAULT_EXCHANGE = "ACCESS_REFUSED - operation not permitted on the default exchange"
HUGE = 315_360_000_001

Q = m.QueueDeclare(queue="q")
X = m.ExchangeDeclare(exchange="x", type="direct")


def sends(*methods: m.Method) -> Callable[[Peer], None]:
    """The mistake is one method, after others that are fine."""

    def act(peer: Peer) -> None:
        peer.send(*methods)

    return act


def publishes(exchange: str, key: str, expiration: str | None = None, **more: Any) -> Any:
    """The mistake is a publish."""
    user_id = more.pop("user_id", None)
    properties = BasicProperties(expiration=expiration, user_id=user_id)
    octets = publish_octets(exchange, key, b"body", properties, **more)
    return lambda peer: peer.send_bytes(octets)


@dataclass(frozen=True)
class Mistake:
    """One row of the matrix.

    Args:
        name: what it is, for the reader.
        act: does it.
        code: the reply code that follows.
        text: the reply text that follows.
        at: the method that is said to have failed.
        before: synchronous methods that are done first.
    """

    name: str
    act: Callable[[Peer], None]
    code: int
    text: str
    at: str
    before: tuple[m.Method, ...] = field(default=())


def not_found() -> list[Mistake]:
    """Things that are not there."""
    no_name = NO_QUEUE.replace("none", "")
    missing = [
        ("queue without a name", m.QueueDeclare(passive=True), no_name),
        ("get", m.BasicGet(queue="none"), NO_QUEUE),
        ("consume", m.BasicConsume(queue="none"), NO_QUEUE),
        ("purge", m.QueuePurge(queue="none"), NO_QUEUE),
        ("passive declare of a queue", m.QueueDeclare(queue="none", passive=True), NO_QUEUE),
        ("bind of a queue", m.QueueBind(queue="none", exchange="amq.direct"), NO_QUEUE),
        ("bind to an exchange", m.QueueBind(queue="q", exchange="none"), NO_EXCHANGE),
        ("passive declare", m.ExchangeDeclare(exchange="none", passive=True), NO_EXCHANGE),
        ("exchange.bind to", m.ExchangeBind(destination="none", source="x"), NO_EXCHANGE),
        ("exchange.bind from", m.ExchangeBind(destination="x", source="none"), NO_EXCHANGE),
    ]
    unnamed = [
        m.BasicGet(),
        m.BasicConsume(),
        m.QueuePurge(),
        m.QueueDelete(),
        m.QueueBind(exchange="amq.direct", routing_key="k"),
        m.QueueUnbind(exchange="amq.direct", routing_key="k"),
    ]
    rows = [
        Mistake(f"missing: {name}", sends(method), 404, text, method.NAME, (Q, X))
        for name, method, text in missing
    ]
    rows += [
        Mistake(f"no queue named: {method.NAME}", sends(method), 404, NO_LAST_QUEUE, method.NAME)
        for method in unnamed
    ]
    publish = publishes("none", "k")
    rows.append(
        Mistake("publish to a missing exchange", publish, 404, NO_EXCHANGE, "basic.publish")
    )
    return rows


def _unequal(kind: str, arg: str, received: str, current: str) -> str:
    thing = "queue 'q'" if kind == "queue" else "exchange 'x'"
    return (
        f"PRECONDITION_FAILED - inequivalent arg '{arg}' for {thing} in vhost '/': "
        f"received {received} but current is {current}"
    )


Row = tuple[str, m.Method, m.Method, str]
"""What differs, the first declaration, the second, and the text that refuses it."""


def redeclared_queues() -> list[Row]:
    """A second declaration of a queue that says something else."""
    limited = m.QueueDeclare(queue="q", arguments={"x-message-ttl": 60_000})
    longer = m.QueueDeclare(queue="q", arguments={"x-message-ttl": 3_000_000_000})
    other = m.QueueDeclare(queue="q", arguments={"x-message-ttl": 1})
    text = m.QueueDeclare(queue="q", arguments={"x-message-ttl": "60000"})
    durable = m.QueueDeclare(queue="q", durable=True)
    fleeting = m.QueueDeclare(queue="q", auto_delete=True)
    is_signed = "the value '60000' of type 'signedint'"
    is_long = "the value '3000000000' of type 'long'"
    return [
        ("durable", Q, durable, _unequal("queue", "durable", "'true'", "'false'")),
        ("transient", durable, Q, _unequal("queue", "durable", "'false'", "'true'")),
        ("auto-delete", Q, fleeting, _unequal("queue", "auto_delete", "'true'", "'false'")),
        ("argument gone", limited, Q, _unequal("queue", "x-message-ttl", "none", is_signed)),
        ("argument new", Q, limited, _unequal("queue", "x-message-ttl", is_signed, "none")),
        ("argument of 64 bits", Q, longer, _unequal("queue", "x-message-ttl", is_long, "none")),
        ("argument", limited, other, _unequal("queue", "x-message-ttl", "'1'", "'60000'")),
        ("type of it", limited, text, _unequal("queue", "x-message-ttl", "'60000'", "'60000'")),
    ]


def redeclared_exchanges() -> list[Row]:
    """A second declaration of an exchange that says something else."""
    alternate = m.ExchangeDeclare("x", "direct", arguments={"alternate-exchange": "a"})
    is_text = "the value 'a' of type 'longstr'"
    others: list[tuple[str, m.Method, str, str, str]] = [
        ("type", m.ExchangeDeclare("x", "fanout"), "type", "'fanout'", "'direct'"),
        ("durable", m.ExchangeDeclare("x", "direct", durable=True), "durable", "'true'", "'false'"),
        (
            "auto-delete",
            m.ExchangeDeclare("x", "direct", auto_delete=True),
            "auto_delete",
            "'true'",
            "'false'",
        ),
        (
            "internal",
            m.ExchangeDeclare("x", "direct", internal=True),
            "internal",
            "'true'",
            "'false'",
        ),
    ]
    rows: list[Row] = [
        (f"exchange {name}", X, again, _unequal("exchange", arg, received, current))
        for name, again, arg, received, current in others
    ]
    gone = _unequal("exchange", "alternate-exchange", "none", is_text)
    return [*rows, ("alternate exchange", alternate, X, gone)]


def redeclared() -> list[Mistake]:
    """A second declaration that says something else."""
    return [
        Mistake(f"redeclared: {name}", sends(again), 406, text, again.NAME, (first,))
        for name, first, again, text in (*redeclared_queues(), *redeclared_exchanges())
    ]


def refused() -> list[Mistake]:
    """What nobody may do."""
    reserved = "contains reserved prefix 'amq.*'"
    system = "deletion of system exchange 'amq.direct' in vhost '/' not allowed"
    internal = m.ExchangeDeclare("x", "direct", internal=True)
    alone = m.BasicConsume(queue="q", exclusive=True)
    in_use = "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
    rows: list[tuple[str, m.Method, str]] = [
        ("reserved queue", m.QueueDeclare(queue="amq.x"), f"queue name 'amq.x' {reserved}"),
        ("reserved", m.ExchangeDeclare("amq.x", "direct"), f"exchange name 'amq.x' {reserved}"),
        ("system exchange", m.ExchangeDelete(exchange="amq.direct"), system),
    ]
    on_default = [
        m.ExchangeDeclare("", "direct"),
        m.ExchangeDeclare("", "direct", passive=True),
        m.ExchangeDelete(),
        m.QueueBind(queue="q", exchange="", routing_key="k"),
        m.QueueUnbind(queue="q", exchange="", routing_key="q"),
        m.ExchangeBind(destination="x", source=""),
        m.ExchangeBind(destination="", source="x"),
        m.ExchangeUnbind(destination="x", source=""),
        m.ExchangeUnbind(destination="", source="x"),
    ]
    return [
        *(
            Mistake(f"{name}", sends(method), 403, f"ACCESS_REFUSED - {text}", method.NAME)
            for name, method, text in rows
        ),
        *(
            Mistake(f"default {method}", sends(method), 403, DEFAULT_EXCHANGE, method.NAME, (Q, X))
            for method in on_default
        ),
        Mistake(
            "publish to an internal exchange",
            publishes("x", "k"),
            403,
            "ACCESS_REFUSED - cannot publish to internal exchange 'x' in vhost '/'",
            "basic.publish",
            (internal,),
        ),
        Mistake("exclusive second", sends(alone), 403, in_use, "basic.consume",
                (Q, m.BasicConsume(queue="q"))),
        Mistake("second beside exclusive", sends(m.BasicConsume(queue="q")), 403, in_use,
                "basic.consume", (Q, alone)),
    ]  # fmt: skip


def preconditions() -> list[Mistake]:
    """What the state of things does not allow."""
    failed = "PRECONDITION_FAILED - "
    bound = (Q, X, m.QueueBind(queue="q", exchange="x", routing_key="k"))
    rows: list[tuple[str, m.Method, str, tuple[m.Method, ...]]] = [
        ("in use", m.QueueDelete(queue="q", if_unused=True), "queue 'q' in vhost '/' in use",
         (Q, m.BasicConsume(queue="q"))),
        ("bound", m.ExchangeDelete(exchange="x", if_unused=True),
         "exchange 'x' in vhost '/' in use", bound),
        ("exchange type", m.ExchangeDeclare("x", "foo"), "unknown exchange type 'foo'", ()),
        ("unknown tag", m.BasicAck(99), "unknown delivery tag 99", ()),
        ("unknown tag, multiple", m.BasicAck(99, True), "unknown delivery tag 99", ()),
        ("tag 0", m.BasicAck(0), "unknown delivery tag 0", ()),
        ("nack", m.BasicNack(99), "unknown delivery tag 99", ()),
        ("reject", m.BasicReject(99), "unknown delivery tag 99", ()),
        ("commit", m.TxCommit(), "channel is not transactional", ()),
        ("rollback", m.TxRollback(), "channel is not transactional", ()),
        ("confirm after tx", m.ConfirmSelect(), "cannot switch from tx to confirm mode",
         (m.TxSelect(),)),
        ("tx after confirm", m.TxSelect(), "cannot switch from confirm to tx mode",
         (m.ConfirmSelect(),)),
        ("queue type", m.QueueDeclare(queue="q", arguments={"x-queue-type": "foo"}),
         "invalid arg 'x-queue-type' for queue 'q' in vhost '/': "
         "\"unsupported queue type 'foo'\"", ()),
        ("type of the queue type", m.QueueDeclare(queue="q", arguments={"x-queue-type": 5}),
         "invalid arg 'x-queue-type' for queue 'q' in vhost '/': {unacceptable_type,signedint}",
         ()),
        ("priority", m.BasicConsume(queue="q", arguments={"x-priority": "high"}),
         "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got longstr\"",
         (Q,)),
        ("x-match", m.QueueBind("q", "amq.headers", "", False, {"x-match": "most"}),
         'Invalid x-match field value <<"most">>; '
         "expected all, any, all-with-x, or any-with-x", (Q,)),
        ("type of x-match", m.QueueBind("q", "amq.headers", "", False, {"x-match": True}),
         "Invalid x-match field type bool (value true); expected longstr", (Q,)),
    ]  # fmt: skip
    properties: list[tuple[str, dict[str, str], str]] = [
        ("user-id", {"user_id": "bob"},
         "user_id property set to 'bob' but authenticated user was 'guest'"),
        ("expiration", {"expiration": "abc"}, "invalid expiration 'abc': no_integer"),
        ("expiration with a unit", {"expiration": "10s"},
         "invalid expiration '10s': {leftover_string,\"s\"}"),
        ("expiration below zero", {"expiration": "-1"},
         "invalid expiration '-1': {value_negative,-1}"),
        ("expiration in the far future", {"expiration": str(HUGE)},
         f"invalid expiration '{HUGE}': {{value_too_large,{HUGE}}}"),
    ]  # fmt: skip
    return [
        *(
            Mistake(f"precondition: {name}", sends(method), 406, failed + text, method.NAME, before)
            for name, method, text, before in rows
        ),
        *(
            Mistake(f"property: {name}", publishes("", "q", **given), 406, failed + text,
                    "basic.publish")
            for name, given, text in properties
        ),
    ]  # fmt: skip


def hard() -> list[Mistake]:
    """What costs the connection."""
    tag = m.BasicConsume(queue="q", consumer_tag="t")
    immediate = publishes("", "q", immediate=True)
    rows: list[tuple[str, int, m.Method, str, tuple[m.Method, ...]]] = [
        ("tag twice", 530, tag, "NOT_ALLOWED - attempt to reuse consumer tag 't'", (Q, tag)),
        ("prefetch size", 540, m.BasicQos(7), "NOT_IMPLEMENTED - prefetch_size!=0 (7)", ()),
        ("recover", 540, m.BasicRecover(False), "NOT_IMPLEMENTED - requeue=false", ()),
        ("recover-async", 540, m.BasicRecoverAsync(False), "NOT_IMPLEMENTED - requeue=false", ()),
        ("flow", 540, m.ChannelFlow(False), "NOT_IMPLEMENTED - active=false", ()),
        ("open twice", 504, m.ChannelOpen(), "CHANNEL_ERROR - second 'channel.open' seen", ()),
        ("server's method", 503, m.QueueDeclareOk(), "COMMAND_INVALID - unimplemented method", ()),
    ]
    return [
        *(
            Mistake(f"hard: {name}", sends(method), code, text, method.NAME, before)
            for name, code, method, text, before in rows
        ),
        Mistake("hard: immediate", immediate, 540, "NOT_IMPLEMENTED - immediate=true",
                "basic.publish"),
    ]  # fmt: skip


MISTAKES = [*not_found(), *redeclared(), *refused(), *preconditions(), *hard()]
SOFT_CODES = {311, 312, 313, 403, 404, 405, 406}


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
@pytest.mark.rule("0-9-1#011", "0-9-1#012")
def test_a_mistake_is_answered_with_its_code_scope_and_text(peer: Peer, mistake: Mistake) -> None:
    peer.ask(m.ChannelOpen(), 2)
    for method in mistake.before:
        peer.ask(method)
    mistake.act(peer)
    if mistake.code not in SOFT_CODES:
        peer.expect_connection_close(mistake.code, mistake.text, mistake.at)
        return
    peer.expect_channel_close(mistake.code, mistake.text, mistake.at)
    # The other channel knows nothing of it, and the number is free again.
    assert peer.ask(m.QueueDeclare(exclusive=True), 2).queue.startswith("amq.gen-")
    peer.ask(m.ChannelOpen())
    assert peer.ask(m.QueueDeclare(exclusive=True)).queue.startswith("amq.gen-")


LOCKED = (
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could "
    "be originally declared on another connection or the exclusive property value does not match "
    "that of the original declaration."
)
ON_LOCKED = [
    m.QueueDeclare(queue="q", exclusive=True),
    m.QueueDeclare(queue="q", durable=True),
    m.QueueDeclare(queue="q", passive=True),
    m.QueueBind(queue="q", exchange="amq.direct", routing_key="k"),
    m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="k"),
    m.BasicConsume(queue="q"),
    m.BasicGet(queue="q"),
    m.QueuePurge(queue="q"),
    m.QueueDelete(queue="q"),
]


@pytest.mark.rule("0-9-1r#069")
@pytest.mark.parametrize("method", ON_LOCKED, ids=lambda method: f"{method.NAME} {method}")
def test_an_exclusive_queue_is_locked_for_every_other_connection(
    connect: Callable[[], Peer], method: m.Method
) -> None:
    owner, other = connect().open(), connect().open()
    owner.queue("q", exclusive=True)
    owner.ask(m.QueueBind(queue="q", exchange="amq.direct", routing_key="k"))
    other.send(method)
    other.expect_channel_close(405, LOCKED, method.NAME)
    # Publishing to it is nobody's privilege.
    other.ask(m.ChannelOpen())
    other.publish("", "q", b"for the owner")
    other.expect_silence()
    assert owner.get("q").body == b"for the owner"


def test_a_binding_that_a_locked_queue_does_not_have_may_be_undone_by_anybody(
    connect: Callable[[], Peer],
) -> None:
    owner, other = connect().open(), connect().open()
    owner.queue("q", exclusive=True)
    owner.ask(m.QueueBind(queue="q", exchange="amq.direct", routing_key="k"))
    other.ask(m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="other"))
    other.ask(m.QueueUnbind(queue="q", exchange="amq.fanout", routing_key="k"))
    other.expect_silence()


@pytest.mark.parametrize("exclusive", [True, False])
def test_the_exclusive_flag_cannot_change_even_for_the_owner(peer: Peer, exclusive: bool) -> None:
    peer.queue("q", exclusive=exclusive)
    peer.send(m.QueueDeclare(queue="q", exclusive=not exclusive))
    peer.expect_channel_close(405, LOCKED, "queue.declare")


def test_a_queue_with_messages_is_not_deleted_if_empty_is_asked_for(peer: Peer) -> None:
    peer.queue("q")
    peer.publish("", "q", b"one")
    peer.send(m.QueueDelete(queue="q", if_empty=True))
    text = "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty"
    peer.expect_channel_close(406, text, "queue.delete")


@pytest.mark.departs(
    "0-9-1r#044", "0-9-1r#053", "0-9-1r#054", "0-9-1r#056", "0-9-1r#079", "0-9-1r#080"
)
@pytest.mark.parametrize(
    "method",
    [
        m.QueueDelete(queue="none"),
        m.ExchangeDelete(exchange="none"),
        m.QueueUnbind(queue="none", exchange="amq.direct", routing_key="k"),
        m.QueueUnbind(queue="q", exchange="none", routing_key="k"),
        m.QueueUnbind(queue="q", exchange="amq.direct", routing_key="never bound"),
        m.ExchangeUnbind(destination="none", source="amq.direct"),
        m.ExchangeUnbind(destination="amq.direct", source="none"),
        m.BasicCancel(consumer_tag="never seen"),
        m.BasicAck(delivery_tag=0, multiple=True),
        m.BasicNack(delivery_tag=0, multiple=True),
    ],
    ids=str,
)
def test_undoing_what_was_never_done_is_no_mistake(peer: Peer, method: m.Method) -> None:
    peer.queue("q")
    if isinstance(method, m.BasicAck | m.BasicNack):
        peer.send(method)
        peer.expect_silence()
        return
    reply = peer.ask(method)
    if isinstance(reply, m.QueueDeleteOk):
        assert reply.message_count == 0
    if isinstance(reply, m.BasicCancelOk):
        assert reply.consumer_tag == "never seen"


def test_a_reply_text_is_cut_to_what_a_short_string_holds(peer: Peer) -> None:
    name = "n" * 255
    peer.send(m.QueueDeclare(queue=name, passive=True))
    peer.expect_channel_close(404, f"NOT_FOUND - no queue '{name}"[:252] + "...", "queue.declare")


def test_a_cut_reply_text_is_still_utf_8(peer: Peer) -> None:
    name = "ü" * 127
    peer.send(m.QueueDeclare(queue=name, passive=True))
    close = peer.expect(m.ChannelClose)
    assert close.reply_text == "NOT_FOUND - no queue '" + "ü" * 115 + "..."
    peer.send(m.ChannelCloseOk())


def test_line_ends_are_taken_out_of_names(peer: Peer) -> None:
    assert peer.queue("a\r\nb") == "ab"
    assert peer.ask(m.QueueDeclare(queue="ab", passive=True)).queue == "ab"
    peer.ask(m.ExchangeDeclare("x\ny", "direct"))
    peer.ask(m.ExchangeDeclare("xy", "direct", passive=True))


def test_text_that_is_no_utf_8_is_a_frame_error(peer: Peer) -> None:
    octets = publish_octets("", "q", b"body")
    peer.send_bytes(octets.replace(b"\x01q", b"\x01\xff"))
    text = "FRAME_ERROR - Malformed UTF-8 in shortstr"
    peer.expect_connection_close(501, text, "basic.publish")
