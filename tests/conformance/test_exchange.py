"""The exchange class: what there is from the start, declaring, binding, and where messages go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harebell.model.exchange import KINDS
from harebell.model.vhost import WATCHERS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]
STANDARD = ("direct", "fanout", "topic", "headers")


def exchange(peer: Peer, name: str, kind: str = "direct", **options: Any) -> str:
    peer.ask(m.ExchangeDeclare(name, kind, **options))
    return name


def bound(peer: Peer, queue: str, exchange: str, key: str = "", **arguments: Any) -> str:
    peer.queue(queue)
    peer.ask(m.QueueBind(queue, exchange, key, False, arguments))
    return queue


# --- what there is from the start -----------------------------------------------------------------


@pytest.mark.rule(
    "0-9-1#017", "0-9-1#020", "0-9-1#021", "0-9-1r#026", "0-9-1r#027", "0-9-1r#028", "0-9-1r#029"
)
@pytest.mark.parametrize(
    ("name", "kind"), [*((f"amq.{kind}", kind) for kind in STANDARD), ("amq.match", "headers")]
)
def test_standard_exchanges_stand_ready(peer: Peer, name: str, kind: str) -> None:
    peer.ask(m.ExchangeDeclare(name, passive=True))
    # Declaring it again as what it is is fine: it is durable and of its type.
    peer.ask(m.ExchangeDeclare(name, kind, durable=True))
    bound(peer, "q", name, "k", **({"h": 1} if kind == "headers" else {}))
    peer.publish(name, "k", b"body", BasicProperties(headers={"h": 1}))
    assert peer.get("q").body == b"body"


@pytest.mark.rule("0-9-1#017", "0-9-1#018", "0-9-1r#029", "0-9-1r#030", "0-9-1r#059", "0-9-1r#100")
def test_the_nameless_exchange_leads_to_each_queue_by_its_name(peer: Peer) -> None:
    for name in ("one", "two"):
        peer.queue(name)
        peer.publish("", name, name.encode())
    assert (peer.get("one").body, peer.get("two").body) == (b"one", b"two")


@pytest.mark.rule("0-9-1r#028")
def test_every_vhost_starts_with_the_standard_exchanges(memory: MemorySite) -> None:
    names = set(memory.broker.add_vhost("new").exchanges)
    assert names == {"", "amq.match", *(f"amq.{kind}" for kind in STANDARD), *WATCHERS}


@pytest.mark.rule("0-9-1r#031")
def test_the_default_exchange_has_no_other_name(peer: Peer) -> None:
    for name in ("amq.default", "default", "''", " "):
        peer.send(m.ExchangeDeclare(name, passive=True))
        text = f"NOT_FOUND - no exchange '{name}' in vhost '/'"
        peer.expect_channel_close(404, text, "exchange.declare")
        peer.ask(m.ChannelOpen())
    for method in (
        m.ExchangeDeclare("", "direct"),
        m.ExchangeDelete(),
        m.ExchangeBind("amq.direct"),
    ):
        peer.send(method)
        text = "ACCESS_REFUSED - operation not permitted on the default exchange"
        peer.expect_channel_close(403, text, method.NAME)
        peer.ask(m.ChannelOpen())


@pytest.mark.rule("0-9-1#022", "0-9-1#024")
def test_types_of_our_own_would_begin_with_x(peer: Peer) -> None:
    assert set(STANDARD) <= set(KINDS)
    assert all(kind in STANDARD or kind.startswith("x-") for kind in KINDS)


@pytest.mark.rule("0-9-1#024")
def test_names_of_the_broker_begin_with_amq_and_clients_may_not_take_them(
    peer: Peer, site: Any
) -> None:
    assert peer.queue("", exclusive=True).startswith("amq.gen-")
    assert peer.consume("").startswith("amq.ctag-")
    for method in (m.QueueDeclare("amq.mine"), m.ExchangeDeclare("amq.mine", "direct")):
        peer.send(method)
        kind = "queue" if isinstance(method, m.QueueDeclare) else "exchange"
        text = f"ACCESS_REFUSED - {kind} name 'amq.mine' contains reserved prefix 'amq.*'"
        peer.expect_channel_close(403, text, method.NAME)
        peer.ask(m.ChannelOpen())


# --- declaring ------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1r#038", "0-9-1r#039")
@pytest.mark.parametrize("kind", STANDARD)
@pytest.mark.parametrize("durable", [True, False])
def test_an_equal_declaration_is_fine_and_another_durability_is_not(
    peer: Peer, kind: str, durable: bool
) -> None:
    exchange(peer, "x", kind, durable=durable)
    exchange(peer, "x", kind, durable=durable)
    peer.send(m.ExchangeDeclare("x", kind, durable=not durable))
    is_now, was = ("false", "true") if durable else ("true", "false")
    text = "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/': "
    text += f"received '{is_now}' but current is '{was}'"
    peer.expect_channel_close(406, text, "exchange.declare")


@pytest.mark.rule("0-9-1r#033", "0-9-1r#034")
@pytest.mark.parametrize("first", STANDARD)
@pytest.mark.parametrize("second", STANDARD)
def test_an_exchange_keeps_the_type_it_was_declared_with(
    peer: Peer, first: str, second: str
) -> None:
    exchange(peer, "x", first)
    peer.send(m.ExchangeDeclare("x", second))
    if first == second:
        peer.expect(m.ExchangeDeclareOk)
        return
    text = "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'x' in vhost '/': "
    text += f"received '{second}' but current is '{first}'"
    peer.expect_channel_close(406, text, "exchange.declare")
    peer.ask(m.ChannelOpen())
    exchange(peer, "x", first)


@pytest.mark.rule("0-9-1r#035")
@pytest.mark.parametrize("kind", ["", "x-unheard-of", "Direct", "topic "])
def test_an_unknown_type_is_refused_and_nothing_is_made(peer: Peer, kind: str) -> None:
    peer.send(m.ExchangeDeclare("x", kind))
    text = f"PRECONDITION_FAILED - unknown exchange type '{kind}'"
    peer.expect_channel_close(406, text, "exchange.declare")
    peer.ask(m.ChannelOpen())
    peer.send(m.ExchangeDeclare("x", passive=True))
    text = "NOT_FOUND - no exchange 'x' in vhost '/'"
    peer.expect_channel_close(404, text, "exchange.declare")


@pytest.mark.rule("0-9-1r#041")
def test_an_auto_delete_exchange_lives_from_its_first_binding_to_its_last(peer: Peer) -> None:
    exchange(peer, "x", auto_delete=True)
    exchange(peer, "x", auto_delete=True)
    bound(peer, "one", "x", "k")
    bound(peer, "two", "x", "k")
    peer.ask(m.QueueUnbind("one", "x", "k"))
    exchange(peer, "x", auto_delete=True)
    peer.ask(m.QueueDelete(queue="two"))
    peer.send(m.ExchangeDeclare("x", passive=True))
    text = "NOT_FOUND - no exchange 'x' in vhost '/'"
    peer.expect_channel_close(404, text, "exchange.declare")


@pytest.mark.rule("0-9-1r#043", "0-9-1r#101")
def test_an_internal_exchange_is_fed_by_exchanges_alone(peer: Peer) -> None:
    exchange(peer, "outer", "fanout")
    exchange(peer, "inner", "fanout", internal=True)
    peer.ask(m.ExchangeBind("inner", "outer"))
    bound(peer, "q", "inner")
    peer.publish("outer", "", b"through")
    assert peer.get("q").body == b"through"
    peer.publish("inner", "", b"directly")
    text = "ACCESS_REFUSED - cannot publish to internal exchange 'inner' in vhost '/'"
    peer.expect_channel_close(403, text, "basic.publish")
    peer.ask(m.ChannelOpen())
    assert peer.count("q") == 0


# --- exchange to exchange -------------------------------------------------------------------------


@pytest.mark.rule("0-9-1r#046")
def test_an_exchange_binding_made_twice_is_one(peer: Peer) -> None:
    for name in ("from", "to"):
        exchange(peer, name, "fanout")
    bound(peer, "q", "to")
    for _ in range(2):
        peer.ask(m.ExchangeBind("to", "from", "k"))
    peer.publish("from", "k", b"once")
    assert peer.count("q") == 1
    peer.ask(m.ExchangeUnbind("to", "from", "k"))
    peer.publish("from", "k", b"nowhere")
    assert peer.count("q") == 1


@pytest.mark.rule("0-9-1r#047", "0-9-1r#048")
@pytest.mark.parametrize("kind", ["fanout", "topic", "headers"])
def test_circles_of_exchanges_carry_each_message_once(peer: Peer, kind: str) -> None:
    names = ("a", "b", "c")
    for name in names:
        exchange(peer, name, kind)
        bound(peer, f"q{name}", name, "#")
    for source in names:
        for destination in names:
            peer.ask(m.ExchangeBind(destination, source, "#"))
    peer.publish("a", "k", b"body")
    assert [peer.count(f"q{name}") for name in names] == [1, 1, 1]


@pytest.mark.rule("0-9-1r#049", "0-9-1r#051")
@pytest.mark.parametrize(("to", "source"), [("none", "x"), ("x", "none")])
def test_both_ends_of_an_exchange_binding_have_to_be_there(
    peer: Peer, to: str, source: str
) -> None:
    exchange(peer, "x")
    peer.send(m.ExchangeBind(to, source, "k"))
    text = "NOT_FOUND - no exchange 'none' in vhost '/'"
    peer.expect_channel_close(404, text, "exchange.bind")


# --- routing --------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1r#078")
def test_a_direct_exchange_goes_by_exactly_the_key(peer: Peer) -> None:
    exchange(peer, "x")
    for queue, key in (("one", "k"), ("two", "k"), ("three", "K"), ("four", "k.#"), ("five", "")):
        bound(peer, queue, "x", key)
    peer.publish("x", "k", b"body")
    counts = [peer.count(queue) for queue in ("one", "two", "three", "four", "five")]
    assert counts == [1, 1, 0, 0, 0]


@pytest.mark.rule("0-9-1r#026")
def test_a_fanout_exchange_ignores_the_key(peer: Peer) -> None:
    exchange(peer, "x", "fanout")
    for queue in ("one", "two"):
        bound(peer, queue, "x", "whatever")
    peer.publish("x", "some key", b"body")
    assert [peer.count("one"), peer.count("two")] == [1, 1]


TOPICS = [
    ("a.b", ["a.b"], ["a", "a.b.c", "a.B", "b.a", "a.", "a.b."]),
    ("*", ["a"], ["a.b", ".", ""]),
    ("#", ["", "a", "a.b", "..", "a..b"], []),
    ("a.*", ["a.b", "a."], ["a", "a.b.c", "b.a"]),
    ("a.#", ["a", "a.b", "a.b.c", "a."], ["ab", "b.a"]),
    ("#.a", ["a", "b.a", "c.b.a", ".a"], ["a.b"]),
    ("*.*", ["a.b", "."], ["a", "a.b.c", ""]),
    ("a.#.b", ["a.b", "a.x.b", "a.x.y.b"], ["a", "b", "ab"]),
    ("#.#", ["", "a", "a.b"], []),
    ("*.#", ["a", "a.b", "."], [""]),
    ("#.*", ["a", "a.b", "."], [""]),
    ("a..b", ["a..b"], ["a.b", "a.x.b"]),
    ("", [""], ["a", "."]),
    ("a*.b#", ["a*.b#"], ["ax.by", "a.b"]),
]


@pytest.mark.rule("0-9-1#019", "0-9-1r#027")
@pytest.mark.parametrize(("pattern", "matches", "others"), TOPICS, ids=[t[0] for t in TOPICS])
def test_topic_patterns_match_words_between_dots(
    peer: Peer, pattern: str, matches: list[str], others: list[str]
) -> None:
    bound(peer, "q", "amq.topic", pattern)
    for key in (*others, *matches):
        peer.publish("amq.topic", key, key.encode())
    for key in matches:
        assert peer.get("q").body == key.encode()
    assert peer.count("q") == 0


HEADERS = [
    ({"a": 1, "b": "x"}, {"a": 1, "b": "x", "c": 0}, True),
    ({"a": 1, "b": "x"}, {"a": 1}, False),
    ({"a": 1, "b": "x", "x-match": "all"}, {"a": 1, "b": "y"}, False),
    ({"a": 1, "b": "x", "x-match": "any"}, {"a": 1, "b": "y"}, True),
    ({"a": 1, "b": "x", "x-match": "any"}, {"a": 2}, False),
    ({}, {"a": 1}, True),
    ({}, {}, True),
    ({"x-match": "any"}, {"a": 1}, False),
    ({"a": None}, {"a": "whatever"}, True),
    ({"a": None}, {"b": 1}, False),
    ({"a": 1}, {"a": "1"}, False),
    ({"a": 1}, {"a": True}, False),
    ({"a": 1}, {"a": 1}, True),
    ({"x-a": 1}, {}, True),
    ({"x-a": 1, "x-match": "all-with-x"}, {}, False),
    ({"x-a": 1, "x-match": "all-with-x"}, {"x-a": 1}, True),
    ({"x-a": 1, "x-match": "any-with-x"}, {"x-a": 1, "b": 2}, True),
    ({"x-a": 1, "x-match": "any"}, {"x-a": 1}, False),
]


@pytest.mark.rule("0-9-1r#027")
@pytest.mark.parametrize(("arguments", "headers", "fits"), HEADERS)
def test_headers_exchanges_go_by_the_bindings_arguments(
    peer: Peer, arguments: dict[str, Any], headers: dict[str, Any], fits: bool
) -> None:
    bound(peer, "q", "amq.headers", "ignored", **arguments)
    peer.publish("amq.headers", "some key", b"body", BasicProperties(headers=headers))
    assert peer.count("q") == int(fits)


def test_an_alternate_exchange_takes_what_finds_no_queue(peer: Peer) -> None:
    exchange(peer, "last", "fanout")
    exchange(peer, "x", "direct", arguments={"alternate-exchange": "last"})
    bound(peer, "found", "x", "k")
    bound(peer, "rest", "last")
    peer.publish("x", "k", b"1", mandatory=True).publish("x", "other", b"2", mandatory=True)
    assert (peer.get("found").body, peer.get("rest").body) == (b"1", b"2")
    assert peer.count("rest") == 0
    peer.ask(m.ExchangeDelete("last"))
    peer.publish("x", "other", b"3", mandatory=True)
    assert peer.expect_content(m.BasicReturn, reply_code=312).body == b"3"
