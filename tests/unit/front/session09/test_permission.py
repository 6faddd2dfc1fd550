"""Which method asks for which permission: a row for every method that a client may send.

The methods come from the protocol's own table, so one without a row fails here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from harebell.auth.permissions import ACTIONS, Permissions
from harebell.auth.topics import TopicPermission
from harebell.wire.v09 import lease
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.bulk import BulkBatch, BulkRead, BulkSpan, BulkSpanOk
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.session09.world import HEADER_0_9_1, OctetPeer, World, publish

Need = tuple[str, str, str]


@dataclass
class Row:
    """One use of a method.

    Args:
        method: what is sent.
        needs: action, kind and name of each resource, in the order they are asked for.
        reply: the class of its answer; None without one.
    """

    method: Any
    needs: list[Need]
    reply: type | None
    octets: bytes = field(default=b"")


_DLX = {"x-dead-letter-exchange": "dlx"}
_AE = {"alternate-exchange": "ae"}
_READ = [("read", "queue", "q")]
ROWS: dict[str, list[Row]] = {
    "queue.declare": [
        Row(m.QueueDeclare("new"), [("configure", "queue", "new")], m.QueueDeclareOk),
        Row(m.QueueDeclare("q"), [("configure", "queue", "q")], m.QueueDeclareOk),
        Row(m.QueueDeclare("q", passive=True), [], m.QueueDeclareOk),
        Row(
            m.QueueDeclare("new", arguments=_DLX),
            [("configure", "queue", "new"), ("read", "queue", "new"), ("write", "exchange", "dlx")],
            m.QueueDeclareOk,
        ),
    ],
    "queue.bind": [
        Row(
            m.QueueBind("q", "x", "k"),
            [("write", "queue", "q"), ("read", "exchange", "x")],
            m.QueueBindOk,
        )
    ],
    "queue.unbind": [
        Row(
            m.QueueUnbind("q", "x", "k"),
            [("write", "queue", "q"), ("read", "exchange", "x")],
            m.QueueUnbindOk,
        )
    ],
    "queue.purge": [Row(m.QueuePurge("q"), [("read", "queue", "q")], m.QueuePurgeOk)],
    "queue.delete": [Row(m.QueueDelete("q"), [("configure", "queue", "q")], m.QueueDeleteOk)],
    "exchange.declare": [
        Row(
            m.ExchangeDeclare("new", "fanout"),
            [("configure", "exchange", "new")],
            m.ExchangeDeclareOk,
        ),
        Row(m.ExchangeDeclare("x", "fanout", passive=True), [], m.ExchangeDeclareOk),
        Row(
            m.ExchangeDeclare("new", "fanout", arguments=_AE),
            [
                ("configure", "exchange", "new"),
                ("read", "exchange", "new"),
                ("write", "exchange", "ae"),
            ],
            m.ExchangeDeclareOk,
        ),
    ],
    "exchange.delete": [
        Row(m.ExchangeDelete("x"), [("configure", "exchange", "x")], m.ExchangeDeleteOk)
    ],
    "exchange.bind": [
        Row(
            m.ExchangeBind("y", "x", "k"),
            [("write", "exchange", "y"), ("read", "exchange", "x")],
            m.ExchangeBindOk,
        )
    ],
    "exchange.unbind": [
        Row(
            m.ExchangeUnbind("y", "x", "k"),
            [("write", "exchange", "y"), ("read", "exchange", "x")],
            m.ExchangeUnbindOk,
        )
    ],
    "basic.consume": [Row(m.BasicConsume("q", "c"), [("read", "queue", "q")], m.BasicConsumeOk)],
    "basic.get": [Row(m.BasicGet("q"), [("read", "queue", "q")], m.BasicGetEmpty)],
    "lease.open": [Row(lease.LeaseOpen("q", "g"), _READ, lease.LeaseOpenOk)],
    "lease.claim": [Row(lease.LeaseClaim("q", "g", 1), _READ, lease.LeaseClaimOk)],
    "lease.commit": [Row(lease.LeaseCommit("q", "g", 1), _READ, lease.LeaseCommitOk)],
    "lease.release": [Row(lease.LeaseRelease("q", "g", 1), _READ, lease.LeaseReleaseOk)],
    "lease.renew": [Row(lease.LeaseRenew("q", "g", 1), _READ, lease.LeaseRenewOk)],
    "lease.close": [Row(lease.LeaseClose("q", "g", 1), _READ, lease.LeaseCloseOk)],
    "bulk.span": [Row(BulkSpan("q"), [("read", "queue", "q")], BulkSpanOk)],
    "bulk.read": [Row(BulkRead("q", columns=b"value"), [("read", "queue", "q")], BulkBatch)],
    "basic.publish": [
        Row(None, [("write", "exchange", "x")], None, publish(b"b", "k", exchange="x")),
        Row(None, [("write", "exchange", "amq.default")], None, publish(b"b", "none")),
    ],
}
_FREE = """
    access.request basic.ack basic.cancel basic.cancel-ok basic.nack basic.qos basic.recover
    basic.recover-async basic.reject channel.close channel.close-ok channel.flow channel.flow-ok
    channel.open confirm.select connection.blocked connection.close connection.close-ok
    connection.open connection.secure-ok connection.start-ok connection.tune-ok
    connection.unblocked connection.update-secret tx.commit tx.rollback tx.select
    stage.open stage.append stage.commit stage.abort publisher.declare publisher.forget bulk.queues
""".split()  # noqa: SIM905 - a table reads better so
"""Methods that name no resource, or answer for one that was asked for before.

What stage.commit publishes is asked for row by row; see test_stage.
"""
CASES = [(name, row) for name, rows in ROWS.items() for row in rows]


def _peer() -> tuple[World, OctetPeer]:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    for name in ("x", "y"):
        peer.ask(m.ExchangeDeclare(name, "fanout"))
    peer.ask(lease.LeaseOpen("q", "g"))
    return world, peer


def _allow(world: World, needs: list[Need]) -> None:
    """Give the user exactly these permissions, and let what was remembered go."""
    patterns = {
        action: "|".join(f"^{name}$" for wanted, _, name in needs if wanted == action)
        for action in ACTIONS
    }
    user = world.users.get("guest")
    assert user is not None
    user.permissions["/"] = Permissions(**patterns)
    world.broker.vhosts["/"].router.changed()


def _send(peer: OctetPeer, row: Row) -> list[Any]:
    if row.octets:
        peer.give(row.octets)
        return peer.methods()
    peer.send(row.method)
    return peer.methods()


def test_every_method_of_a_client_has_a_row() -> None:
    known = {method.name for method in AMQP_0_9_1.methods if method.from_client}
    assert not set(ROWS) & set(_FREE)
    assert known - set(_FREE) == set(ROWS)


@pytest.mark.parametrize(("name", "row"), CASES)
def test_the_permissions_of_the_row_are_enough(name: str, row: Row) -> None:
    world, peer = _peer()
    _allow(world, row.needs)
    answers = _send(peer, row)
    assert [type(answer) for answer in answers] == ([row.reply] if row.reply else [])


@pytest.mark.parametrize(
    ("name", "row", "missing"),
    [(name, row, missing) for name, row in CASES for missing in row.needs],
)
def test_without_any_one_of_them_it_is_refused(name: str, row: Row, missing: Need) -> None:
    world, peer = _peer()
    _allow(world, [need for need in row.needs if need != missing])
    (close,) = _send(peer, row)
    action, kind, resource = missing
    spec = AMQP_0_9_1.named(name)
    assert close == m.ChannelClose(
        403,
        f"ACCESS_REFUSED - {action} access to {kind} '{resource}' in vhost '/' refused for user "
        "'guest'",
        spec.class_id,
        spec.method_id,
    )
    if name not in ("queue.delete", "exchange.delete"):
        assert "new" not in world.broker.vhosts["/"].queues
        assert "new" not in world.broker.vhosts["/"].exchanges
    assert "q" in world.broker.vhosts["/"].queues
    assert "x" in world.broker.vhosts["/"].exchanges


def test_what_is_taken_away_is_gone_at_the_next_publish() -> None:
    world, peer = _peer()
    peer.give(publish(b"1", "q"))
    _allow(world, [("write", "exchange", "x")])
    peer.give(publish(b"2", "q"))
    (answer,) = peer.methods()
    close: Any = answer
    assert close.reply_code == 403
    assert world.broker.vhosts["/"].queues["q"].ready_count() == 1


def test_an_existing_queue_with_a_dead_letter_exchange_asks_for_configure_alone() -> None:
    world, peer = _peer()
    peer.ask(m.QueueDeclare("d", arguments=_DLX))
    _allow(world, [("configure", "queue", "d")])
    assert isinstance(peer.ask(m.QueueDeclare("d", arguments=_DLX)), m.QueueDeclareOk)


@pytest.mark.rule("0-9-1#016")
def test_permissions_differ_from_one_vhost_to_the_next() -> None:
    world = World()
    user = world.users.get("guest")
    assert user is not None
    for name in ("other", "closed"):
        world.broker.add_vhost(name)
    user.permissions["other"] = Permissions("^mine$", "", "")
    assert isinstance(world.peer().ask(m.QueueDeclare("yours")), m.QueueDeclareOk)
    peer = world.connect()
    peer.log_in({}, vhost="other")
    peer.send(m.ChannelOpen())
    peer.methods()
    assert isinstance(peer.ask(m.QueueDeclare("mine")), m.QueueDeclareOk)
    assert isinstance(peer.ask(m.QueueDeclare("yours")), m.ChannelClose)
    shut = world.connect()
    shut.give(HEADER_0_9_1)
    shut.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"), channel=0)
    shut.send(m.ConnectionTuneOk(), m.ConnectionOpen("closed"), channel=0)
    assert shut.methods()[-1] == m.ConnectionClose(
        530, "NOT_ALLOWED - access to vhost 'closed' refused for user 'guest'", 10, 40
    )


def _topic_peer() -> tuple[World, OctetPeer]:
    """A peer who may write to topic exchange t with keys from w, and bind with keys from r."""
    world, peer = _peer()
    for name in ("t", "free"):
        peer.ask(m.ExchangeDeclare(name, "topic"))
    user = world.users.get("guest")
    assert user is not None
    topic = TopicPermission("^w", "^r", "guest", "/")
    user.topic_permissions["/"] = {"t": topic, "x": topic}
    world.broker.vhosts["/"].router.changed()
    return world, peer


def _topic_text(action: str, key: str) -> str:
    return (
        f"ACCESS_REFUSED - {action} access to topic '{key}' in exchange 't' in vhost '/' refused "
        "for user 'guest'"
    )


@pytest.mark.parametrize(
    "method",
    [
        m.QueueBind("q", "t", "w"),
        m.QueueUnbind("q", "t", "w"),
        m.ExchangeBind("y", "t", "w"),
        m.ExchangeUnbind("y", "t", "w"),
    ],
)
def test_binding_to_a_topic_exchange_asks_for_reading_the_key(method: Any) -> None:
    _, peer = _topic_peer()
    spec = AMQP_0_9_1.spec_of(method)
    close = peer.ask(method)
    assert close == m.ChannelClose(403, _topic_text("read", "w"), spec.class_id, spec.method_id)


@pytest.mark.parametrize("source", ["t", "free", "x"])
def test_a_key_that_may_be_read_and_other_exchanges_may_be_bound_to(source: str) -> None:
    _, peer = _topic_peer()
    key = "r.1" if source == "t" else "w"
    assert isinstance(peer.ask(m.QueueBind("q", source, key)), m.QueueBindOk)
    assert isinstance(peer.ask(m.QueueUnbind("q", source, key)), m.QueueUnbindOk)


@pytest.mark.parametrize(
    ("key", "headers", "refused"),
    [
        ("w.1", None, None),
        ("r", None, "r"),
        ("w.1", {"CC": ["w.2"]}, None),
        ("w.1", {"CC": ["r.2"]}, "r.2"),
        ("w.1", {"BCC": ["r.3"]}, "r.3"),
        ("r", {"CC": ["w"]}, "r"),
    ],
)
def test_publishing_to_a_topic_exchange_asks_for_writing_every_key(
    key: str, headers: dict[str, Any] | None, refused: str | None
) -> None:
    _, peer = _topic_peer()
    properties = BasicProperties(headers=headers)
    for exchange in ("free", "x", ""):
        peer.give(publish(b"b", "r", exchange=exchange, properties=properties))
    assert peer.methods() == []
    peer.give(publish(b"b", key, exchange="t", properties=properties))
    expected = (
        [] if refused is None else [m.ChannelClose(403, _topic_text("write", refused), 60, 40)]
    )
    assert peer.methods() == expected


def test_topic_permissions_that_change_hold_for_the_next_publish() -> None:
    world, peer = _topic_peer()
    user = world.users.get("guest")
    assert user is not None
    peer.give(publish(b"b", "w", exchange="t"))
    user.topic_permissions["/"]["t"] = TopicPermission("^v", "", "guest", "/")
    world.broker.vhosts["/"].router.changed()
    peer.give(publish(b"b", "w", exchange="t"))
    (close,) = peer.methods()
    assert isinstance(close, m.ChannelClose)
    peer.send(m.ChannelCloseOk(), m.ChannelOpen())
    assert peer.methods() == [m.ChannelOpenOk()]
    del user.topic_permissions["/"]
    world.broker.vhosts["/"].router.changed()
    peer.give(publish(b"b", "anything", exchange="t"))
    assert peer.methods() == []


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (
            m.ExchangeDeclare("new", "nonsense"),
            406,
            "PRECONDITION_FAILED - unknown exchange type 'nonsense'",
        ),
        (
            m.ExchangeDeclare("", "nonsense"),
            406,
            "PRECONDITION_FAILED - unknown exchange type 'nonsense'",
        ),
        (
            m.ExchangeDelete("amq.direct"),
            403,
            "ACCESS_REFUSED - deletion of system exchange 'amq.direct' in vhost '/' not allowed",
        ),
        (
            m.QueueDeclare("amq.q"),
            403,
            "ACCESS_REFUSED - queue name 'amq.q' contains reserved prefix 'amq.*'",
        ),
        (
            m.ExchangeDeclare("amq.new", "direct"),
            403,
            "ACCESS_REFUSED - configure access to exchange 'amq.new' in vhost '/' refused for user "
            "'guest'",
        ),
        (
            m.ExchangeBind("", "x", "k"),
            403,
            "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user "
            "'guest'",
        ),
        (
            m.ExchangeUnbind("x", "", "k"),
            403,
            "ACCESS_REFUSED - write access to exchange 'x' in vhost '/' refused for user 'guest'",
        ),
    ],
)
def test_what_nobody_may_do_is_refused_before_or_after_permissions_as_rabbitmq_does(
    method: Any, code: int, text: str
) -> None:
    world, peer = _peer()
    _allow(world, [])
    close: Any = peer.ask(method)
    assert (close.reply_code, close.reply_text) == (code, text)


@pytest.mark.parametrize("queue", ["q", "missing"])
def test_a_consumer_tag_that_is_taken_is_refused_before_the_queue_is_asked_for(queue: str) -> None:
    world, peer = _peer()
    peer.ask(m.BasicConsume("q", "taken"))
    _allow(world, [])
    peer.send(m.BasicConsume(queue, "taken"))
    (close,) = peer.methods()
    assert close == m.ConnectionClose(
        530, "NOT_ALLOWED - attempt to reuse consumer tag 'taken'", 60, 20
    )
