"""Delayed messages on the wire: `x-delayed-message`."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer, publish_octets
from tests.conformance.sites import MemorySite

KIND = "x-delayed-message"


def exchange(peer: Peer, kind: str, name: str = "later", **options: Any) -> None:
    arguments = {"x-delayed-type": kind, **options.pop("arguments", {})}
    peer.ask(m.ExchangeDeclare(name, KIND, arguments=arguments, **options))


def bound(peer: Peer, queue: str, key: str = "", source: str = "later") -> None:
    peer.queue(queue)
    peer.ask(m.QueueBind(queue, source, key))


def delayed(ms: object, **others: Any) -> BasicProperties:
    return BasicProperties(headers={"x-delay": ms}, **others)


def passes(peer: Peer, seconds: float) -> None:
    assert isinstance(peer.site, MemorySite)
    peer.site.pass_time(seconds, step=0.01)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Invalid argument, 'x-delayed-type' must be an existing exchange type"),
        (
            {"x-delayed-type": 5},
            "Invalid argument, 'x-delayed-type' must be an existing exchange type",
        ),
        (
            {"x-delayed-type": KIND},
            "Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'",
        ),
        ({"x-delayed-type": "x-odd"}, "unknown exchange type 'x-odd'"),
    ],
)
def test_a_type_that_routes_has_to_be_named(
    peer: Peer, arguments: dict[str, Any], text: str
) -> None:
    peer.send(m.ExchangeDeclare("later", KIND, arguments=arguments))
    peer.expect_channel_close(406, f"PRECONDITION_FAILED - {text}", "exchange.declare")


def test_a_message_waits_and_says_afterwards_that_it_did(peer: Peer) -> None:
    exchange(peer, "direct")
    bound(peer, "q", "k")
    peer.send(m.BasicConsume(queue="q", consumer_tag="c", no_ack=True))
    peer.expect(m.BasicConsumeOk)
    # In one write, so that nothing of it comes late.
    peer.send_bytes(
        publish_octets("later", "k", b"late", delayed(1_000, content_type="t")),
        publish_octets("later", "k", b"now", delayed(0)),
        publish_octets("later", "k", b"plain", b"\0\0"),
    )
    peer.expect_delivery(b"now")
    peer.expect_delivery(b"plain")
    if isinstance(peer.site, MemorySite):
        passes(peer, 1.1)
    found = peer.expect_delivery(b"late", exchange="later", routing_key="k", redelivered=False)
    assert found.properties.headers == {"x-delay": -1_000}
    assert found.properties.content_type == "t"


@pytest.mark.parametrize(
    ("kind", "keys", "key"),
    [
        ("direct", ["k"], "k"),
        ("fanout", [""], "any"),
        ("topic", ["a.*", "#"], "a.b"),
        ("x-consistent-hash", ["1"], "k"),
        ("x-recent-history", [""], "k"),
    ],
)
def test_any_type_may_route_when_the_time_has_come(
    memory_peer: Peer, kind: str, keys: list[str], key: str
) -> None:
    peer = memory_peer
    exchange(peer, kind)
    for binding in keys:
        bound(peer, "q", binding)
    peer.publish("later", key, b"m", delayed(50))
    peer.publish("later", "elsewhere.a.b.c", b"other", delayed(50))
    passes(peer, 0.04)
    assert peer.count("q") == 0
    passes(peer, 0.02)
    assert peer.get("q").body == b"m"


def test_bindings_count_that_are_there_when_the_time_has_come(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "fanout")
    bound(peer, "before")
    peer.publish("later", "", b"m", delayed(50))
    peer.ask(m.QueueUnbind("before", "later", ""))
    bound(peer, "after")
    passes(peer, 0.1)
    assert (peer.count("before"), peer.count("after")) == (0, 1)


def test_messages_come_in_the_order_of_their_times(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "fanout")
    bound(peer, "q")
    for body, ms in ((b"3", 3_000), (b"1", 1_000), (b"2a", 2_000), (b"2b", 2_000)):
        peer.publish("later", "", body, delayed(ms))
    passes(peer, 5)
    assert [peer.get("q").body for _ in range(4)] == [b"1", b"2a", b"2b", b"3"]


def test_a_delayed_message_counts_as_routed(peer: Peer) -> None:
    exchange(peer, "fanout", arguments={"alternate-exchange": "rest"})
    peer.ask(m.ConfirmSelect())
    peer.publish("later", "", b"m", delayed(60_000), mandatory=True)
    peer.expect(m.BasicAck, delivery_tag=1)


def test_a_message_without_a_queue_goes_to_the_alternate_exchange(memory_peer: Peer) -> None:
    peer = memory_peer
    peer.ask(m.ExchangeDeclare("rest", "fanout"))
    bound(peer, "q", source="rest")
    exchange(peer, "direct", arguments={"alternate-exchange": "rest"})
    peer.publish("later", "nobody", b"m", delayed(20))
    assert peer.count("q") == 0
    passes(peer, 0.05)
    assert peer.get("q").body == b"m"


def test_exchanges_may_be_bound_before_and_behind_it(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "fanout")
    exchange(peer, "fanout", name="second")
    peer.ask(m.ExchangeDeclare("first", "fanout"))
    peer.ask(m.ExchangeBind("later", "first"))
    peer.ask(m.ExchangeBind("second", "later"))
    bound(peer, "q", source="second")
    peer.publish("first", "k", b"m", delayed(100))
    passes(peer, 0.09)
    assert peer.count("q") == 0
    passes(peer, 0.05)
    # The second one does not delay it again.
    found = peer.get("q")
    assert (found.body, found.method.exchange) == (b"m", "first")


def test_the_time_to_live_begins_when_it_has_waited(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "fanout")
    bound(peer, "q")
    peer.publish("later", "", b"m", delayed(100, expiration="50"))
    passes(peer, 0.11)
    assert peer.count("q") == 1
    passes(peer, 0.06)
    assert peer.count("q") == 0


def test_further_routing_keys_are_kept(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "direct")
    bound(peer, "q", "k")
    bound(peer, "copy", "c")
    for delay in (0, 50):
        properties = BasicProperties(headers={"x-delay": delay, "CC": ["c"]})
        peer.publish("later", "k", b"m", properties)
    passes(peer, 0.1)
    assert (peer.count("q"), peer.count("copy")) == (2, 2)


def test_blind_copies_are_kept_and_shown_to_nobody(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "direct")
    bound(peer, "q", "k")
    bound(peer, "copy", "c")
    bound(peer, "blind", "b")
    for delay in (0, 50):
        headers = {"x-delay": delay, "CC": ["c"], "BCC": ["b", 5]}
        peer.publish("later", "k", b"m", BasicProperties(headers=headers))
    passes(peer, 0.1)
    for queue in ("q", "copy", "blind"):
        for delay in (0, -50):
            assert peer.get(queue).properties.headers == {"x-delay": delay, "CC": ["c"]}
        assert peer.count(queue) == 0


@pytest.mark.parametrize("transaction", [False, True])
def test_blind_copies_are_kept_although_a_queue_gets_the_message_at_once(
    memory_peer: Peer, transaction: bool
) -> None:
    peer = memory_peer
    exchange(peer, "direct")
    bound(peer, "blind", "b")
    peer.ask(m.ExchangeDeclare("first", "fanout"))
    bound(peer, "at once", source="first")
    peer.ask(m.ExchangeBind("later", "first"))
    if transaction:
        peer.ask(m.TxSelect())
    for key in ("b", "nowhere"):
        headers = {"x-delay": 50, "BCC": [key]}
        peer.publish("first", "k", b"m", BasicProperties(headers=headers))
    if transaction:
        peer.ask(m.TxCommit())
    assert peer.count("at once") == 2
    assert peer.get("at once").properties.headers == {"x-delay": 50}
    passes(peer, 0.1)
    assert peer.count("blind") == 1
    assert peer.get("blind").properties.headers == {"x-delay": -50}


def test_a_transaction_delays_from_its_commit_on(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "fanout")
    bound(peer, "q")
    peer.ask(m.TxSelect())
    peer.publish("later", "", b"m", delayed(100))
    passes(peer, 1)
    peer.ask(m.TxCommit())
    passes(peer, 0.09)
    assert peer.count("q") == 0
    passes(peer, 0.02)
    assert peer.count("q") == 1


def test_deleting_the_exchange_drops_what_waits(memory_peer: Peer) -> None:
    peer = memory_peer
    exchange(peer, "fanout")
    bound(peer, "q")
    peer.publish("later", "", b"m", delayed(50))
    peer.ask(m.ExchangeDelete("later"))
    exchange(peer, "fanout")
    peer.ask(m.QueueBind("q", "later", ""))
    passes(peer, 0.2)
    assert peer.count("q") == 0
