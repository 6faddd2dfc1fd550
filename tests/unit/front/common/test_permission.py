"""Permissions that change, topic permissions, and what is refused before they are asked for.

Which method asks for what is in tests/conformance/permissions.
"""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.permissions import ACTIONS, Permissions
from harebell.auth.topics import TopicPermission
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, OctetPeer, World, publish

Need = tuple[str, str, str]


_DLX = {"x-dead-letter-exchange": "dlx"}


def _peer() -> tuple[World, OctetPeer]:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    for name in ("x", "y"):
        peer.ask(m.ExchangeDeclare(name, "fanout"))
    peer.ask(m.LeaseOpen("q", "g"))
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


def test_a_revoked_permission_is_gone_at_the_next_publish() -> None:
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
def test_a_forbidden_act_is_refused_before_or_after_permissions_as_in_rabbitmq(
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
