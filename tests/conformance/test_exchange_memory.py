"""Exchanges that remember, over the wire: recent history, and messages that are routed once."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite

HISTORY = "x-recent-history"
ONCE = "x-message-deduplication"


def _exchange(peer: Peer, kind: str, name: str = "x", **arguments: Any) -> None:
    peer.ask(m.ExchangeDeclare(name, kind, arguments={k.replace("_", "-"): v
                                                      for k, v in arguments.items()}))  # fmt: skip


def _bound(peer: Peer, queue: str, key: str = "", exchange: str = "x") -> None:
    peer.queue(queue)
    peer.ask(m.QueueBind(queue, exchange, key))


def _bodies(peer: Peer, queue: str) -> list[bytes]:
    return [peer.get(queue).body for _ in range(peer.count(queue))]


def _numbered(peer: Peer, count: int) -> list[bytes]:
    for number in range(count):
        peer.publish("x", f"key-{number}", b"%d" % number)
    return [b"%d" % number for number in range(count)]


def _with(**headers: Any) -> BasicProperties:
    return BasicProperties(headers={k.replace("_", "-"): v for k, v in headers.items()})


# --- recent history -------------------------------------------------------------------------------


def test_a_newcomer_gets_the_last_20_messages_in_their_order(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    bodies = _numbered(peer, 25)
    _bound(peer, "q")
    assert _bodies(peer, "q") == bodies[-20:]
    peer.publish("x", "any", b"live")
    assert _bodies(peer, "q") == [b"live"]


def test_a_kept_message_is_as_it_was_published(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    peer.publish("x", "its key", b"body", BasicProperties(content_type="a/b", priority=3))
    _bound(peer, "q", "another key")
    found = peer.get("q")
    assert (found.method.exchange, found.method.routing_key) == ("x", "its key")
    assert not found.method.redelivered
    assert found.properties == BasicProperties(content_type="a/b", priority=3)


def test_the_length_says_how_many_messages_are_kept(peer: Peer) -> None:
    _exchange(peer, HISTORY, x_recent_history_length=3)
    bodies = _numbered(peer, 5)
    _bound(peer, "q")
    assert _bodies(peer, "q") == bodies[-3:]


def test_a_message_that_is_not_to_be_stored_is_routed_all_the_same(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    _bound(peer, "q")
    peer.publish("x", "", b"secret", _with(x_recent_history_no_store=True))
    peer.publish("x", "", b"kept", _with(x_recent_history_no_store=False))
    _bound(peer, "late")
    assert _bodies(peer, "q") == [b"secret", b"kept"]
    assert _bodies(peer, "late") == [b"kept"]


def test_the_history_does_not_tell_of_blind_keys(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    peer.publish("x", "", b"1", BasicProperties(headers={"BCC": ["hidden"], "a": 1}))
    _bound(peer, "q")
    assert peer.get("q").properties.headers == {"a": 1}


def test_binding_what_is_bound_brings_nothing_again_and_another_key_does(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    peer.publish("x", "", b"1")
    _bound(peer, "q")
    _bound(peer, "q")
    assert _bodies(peer, "q") == [b"1"]
    _bound(peer, "q", "other")
    assert _bodies(peer, "q") == [b"1"]


def test_an_exchange_that_is_bound_routes_the_history_as_its_own_messages(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    _exchange(peer, "direct", "next")
    _bound(peer, "q", "key-1", "next")
    _numbered(peer, 3)
    peer.ask(m.ExchangeBind("next", "x", ""))
    assert _bodies(peer, "q") == [b"1"]


def test_a_consumer_gets_the_history_at_the_binding(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    peer.publish("x", "", b"1")
    peer.queue("q")
    peer.consume("q", no_ack=True)
    peer.send(m.QueueBind("q", "x", "", nowait=True))
    peer.expect_delivery(b"1")


@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_a_transaction_is_in_the_history_from_its_commit_on(
    peer: Peer, bound: bool, committed: bool
) -> None:
    _exchange(peer, HISTORY)
    if bound:
        _bound(peer, "there")
    peer.ask(m.TxSelect())
    _numbered(peer, 2)
    _bound(peer, "before")
    peer.ask(m.TxCommit() if committed else m.TxRollback())
    _bound(peer, "after")
    assert _bodies(peer, "before") == []
    assert _bodies(peer, "after") == ([b"0", b"1"] if committed else [])


def test_a_refused_message_is_in_the_history_when_a_queue_takes_it(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    _full(peer, "q")
    peer.ask(m.QueueBind("q", "x", ""))
    peer.publish("x", "", b"refused")
    assert peer.get("q").body == b"in the way"
    peer.publish("x", "", b"taken")
    _bound(peer, "late")
    assert _bodies(peer, "late") == [b"taken"]


def test_an_unroutable_message_is_in_the_history_of_every_exchange_that_it_came_to(
    peer: Peer,
) -> None:
    _exchange(peer, HISTORY)
    _exchange(peer, HISTORY, "y")
    peer.ask(m.ExchangeBind("y", "x", ""))
    _numbered(peer, 1)
    _bound(peer, "q", "", "y")
    assert _bodies(peer, "q") == [b"0"]


def test_a_dead_letter_is_in_the_history_once(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    peer.queue("dying", arguments={"x-dead-letter-exchange": "x"})
    peer.publish("", "dying", b"letter")
    peer.send(m.BasicReject(peer.get("dying", no_ack=False).method.delivery_tag, requeue=False))
    _bound(peer, "q")
    assert _bodies(peer, "q") == [b"letter"]


def test_an_exchange_that_is_declared_anew_has_no_history(peer: Peer) -> None:
    _exchange(peer, HISTORY)
    peer.publish("x", "", b"1")
    peer.ask(m.ExchangeDelete("x"))
    _exchange(peer, HISTORY)
    _bound(peer, "q")
    assert peer.count("q") == 0


@pytest.mark.parametrize(
    ("length", "shown"), [(0, "0"), (-1, "-1"), ("3", '<<"3">>'), (True, "true"), (2.5, "2.5")]
)
def test_a_history_length_that_is_none_is_refused(peer: Peer, length: Any, shown: str) -> None:
    peer.send(m.ExchangeDeclare("x", HISTORY, arguments={"x-recent-history-length": length}))
    peer.expect_channel_close(
        406,
        f"PRECONDITION_FAILED - Invalid argument {shown}, 'x-recent-history-length' must be a "
        "positive integer",
        "exchange.declare",
    )


# --- once only ------------------------------------------------------------------------------------


def test_a_message_is_routed_once_and_its_duplicate_is_confirmed(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _bound(peer, "q", "whatever")
    peer.ask(m.ConfirmSelect())
    for number in (1, 2):
        peer.publish("x", "", b"same", _with(x_deduplication_header="id-1"))
        peer.expect(m.BasicAck, delivery_tag=number)
    peer.publish("x", "", b"other", _with(x_deduplication_header="id-2"))
    peer.expect(m.BasicAck, delivery_tag=3)
    assert _bodies(peer, "q") == [b"same", b"other"]


def test_messages_without_the_header_are_no_duplicates(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _bound(peer, "q")
    for _ in range(2):
        peer.publish("x", "", b"plain")
        peer.publish("x", "", b"headed", _with(other="id"))
    assert _bodies(peer, "q") == [b"plain", b"headed"] * 2


def test_a_value_that_had_to_make_room_may_come_again(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=2)
    _bound(peer, "q")
    for value in (1, 2, 3, 1, 3):
        peer.publish("x", "", b"%d" % value, _with(x_deduplication_header=value))
    assert _bodies(peer, "q") == [b"1", b"2", b"3", b"1"]


def test_a_mandatory_duplicate_comes_back(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=2)
    _bound(peer, "q")
    for _ in range(2):
        peer.publish("x", "k", b"same", _with(x_deduplication_header="id"), mandatory=True)
    returned = peer.expect_content(m.BasicReturn, reply_code=312, routing_key="k")
    assert returned.body == b"same"


def _same(peer: Peer, body: bytes, exchange: str = "x") -> None:
    peer.publish(exchange, "", body, _with(x_deduplication_header="id"))


def _full(peer: Peer, queue: str) -> None:
    """A queue with room for one message, which is taken."""
    peer.queue(queue, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.publish("", queue, b"in the way")


def test_a_value_that_a_queue_refused_is_no_duplicate_later(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _full(peer, "q")
    _bound(peer, "spare")
    peer.ask(m.QueueBind("q", "x", ""))
    peer.ask(m.ConfirmSelect())
    _same(peer, b"refused")
    peer.expect(m.BasicNack, delivery_tag=1)
    assert peer.get("q").body == b"in the way"
    _same(peer, b"repeated")
    peer.expect(m.BasicAck, delivery_tag=2)
    _same(peer, b"a duplicate")
    peer.expect(m.BasicAck, delivery_tag=3)
    assert _bodies(peer, "q") == [b"repeated"]


def test_a_value_that_came_when_nothing_was_bound_is_no_duplicate_later(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _same(peer, b"to nobody")
    _bound(peer, "q")
    _same(peer, b"to somebody")
    _same(peer, b"a duplicate")
    assert _bodies(peer, "q") == [b"to somebody"]


def test_a_value_that_was_rolled_back_is_no_duplicate_later(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _bound(peer, "q")
    peer.ask(m.TxSelect())
    _same(peer, b"rolled back")
    peer.ask(m.TxRollback())
    _same(peer, b"committed")
    peer.ask(m.TxCommit())
    _same(peer, b"a duplicate")
    peer.ask(m.TxCommit())
    assert _bodies(peer, "q") == [b"committed"]


def test_a_transaction_has_a_value_once(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _bound(peer, "q")
    peer.ask(m.TxSelect())
    for body in (b"first", b"second"):
        _same(peer, body)
    peer.ask(m.TxCommit())
    assert _bodies(peer, "q") == [b"first"]


def test_a_duplicate_of_the_same_transaction_takes_the_ways_of_a_duplicate(peer: Peer) -> None:
    _exchange(peer, "fanout", "again")
    _bound(peer, "duplicates", "", "again")
    _exchange(peer, ONCE, x_cache_size=10, alternate_exchange="again")
    _exchange(peer, ONCE, "alone", x_cache_size=10)
    _exchange(peer, "fanout", "before")
    _bound(peer, "direct", "", "before")
    for exchange in ("x", "alone"):
        peer.ask(m.ExchangeBind(exchange, "before", ""))
        _bound(peer, exchange, "", exchange)
    peer.ask(m.TxSelect())
    for body in (b"first", b"second"):
        _same(peer, body, "before")
    peer.ask(m.TxCommit())
    assert _bodies(peer, "direct") == [b"first", b"second"]
    assert _bodies(peer, "x") == _bodies(peer, "alone") == [b"first"]
    assert _bodies(peer, "duplicates") == [b"second"]


def test_a_mandatory_duplicate_of_the_same_transaction_comes_back(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _bound(peer, "q")
    peer.ask(m.TxSelect())
    for _ in range(2):
        peer.publish("x", "k", b"same", _with(x_deduplication_header="id"), mandatory=True)
    peer.send(m.TxCommit())
    returned = peer.expect_content(m.BasicReturn, reply_code=312, routing_key="k")
    assert returned.body == b"same"
    peer.expect(m.TxCommitOk)
    assert peer.count("q") == 1


def test_a_duplicate_with_blind_keys_is_routed_again_by_all_of_its_keys(peer: Peer) -> None:
    _exchange(peer, "direct", "before")
    _exchange(peer, ONCE, x_cache_size=10)
    peer.ask(m.ExchangeBind("x", "before", "k"))
    _bound(peer, "q")
    _bound(peer, "blind", "b", "before")
    peer.ask(m.TxSelect())
    for body in (b"first", b"second"):
        peer.publish("before", "k", body, _with(x_deduplication_header="id", BCC=["b"]))
    peer.ask(m.TxCommit())
    assert _bodies(peer, "q") == [b"first"]
    assert _bodies(peer, "blind") == [b"first", b"second"]


def test_a_value_that_another_exchange_passes_on_is_no_duplicate_if_it_was_refused(
    peer: Peer,
) -> None:
    _exchange(peer, ONCE, x_cache_size=10)
    _exchange(peer, "fanout", "before")
    peer.ask(m.ExchangeBind("x", "before", ""))
    _full(peer, "q")
    peer.ask(m.QueueBind("q", "x", ""))
    _same(peer, b"refused", "before")
    assert peer.get("q").body == b"in the way"
    for body in (b"repeated", b"a duplicate"):
        _same(peer, body, "before")
    assert _bodies(peer, "q") == [b"repeated"]


def test_duplicates_go_to_the_alternate_exchange(peer: Peer) -> None:
    _exchange(peer, "fanout", "again")
    _bound(peer, "duplicates", "", "again")
    _exchange(peer, ONCE, x_cache_size=2, alternate_exchange="again")
    _bound(peer, "q")
    for body in (b"first", b"second"):
        peer.publish("x", "", body, _with(x_deduplication_header="id"))
    assert _bodies(peer, "q") == [b"first"]
    assert _bodies(peer, "duplicates") == [b"second"]


def _again(peer: Peer, **headers: Any) -> int:
    """Publish with a header once more; how many messages there are then."""
    peer.publish("x", "", b"", _with(x_deduplication_header="id", **headers))
    return peer.count("q")


def test_a_value_is_remembered_for_the_time_to_live(memory_peer: Peer, memory: MemorySite) -> None:
    peer = memory_peer
    _exchange(peer, ONCE, x_cache_size=10, x_cache_ttl=1_000)
    _bound(peer, "q")
    clock = memory.broker.clock
    assert _again(peer) == 1
    clock.ms += 999
    assert _again(peer) == 1
    clock.ms += 1
    assert _again(peer, x_cache_ttl=5_000) == 2
    clock.ms += 4_999
    assert _again(peer) == 2
    clock.ms += 1
    assert _again(peer) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"),
        (
            {"x-cache-size": 0},
            "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0",
        ),
        (
            {"x-cache-size": 1, "x-cache-ttl": "soon"},
            "Invalid argument, 'x-cache-ttl' must be an integer greater than 0",
        ),
        (
            {"x-cache-size": "10", "x-cache-persistence": "tape"},
            "Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'",
        ),
    ],
)
def test_a_memory_without_bounds_is_refused(
    peer: Peer, arguments: dict[str, Any], text: str
) -> None:
    peer.send(m.ExchangeDeclare("x", ONCE, arguments=arguments))
    peer.expect_channel_close(406, f"PRECONDITION_FAILED - {text}", "exchange.declare")


def test_numbers_may_be_written_as_text(peer: Peer) -> None:
    _exchange(peer, ONCE, x_cache_size="1", x_cache_ttl="100000", x_cache_persistence="memory")
    _bound(peer, "q")
    for value in ("a", "b", "b", "a"):
        peer.publish("x", "", value.encode(), _with(x_deduplication_header=value))
    assert _bodies(peer, "q") == [b"a", b"b", b"a"]
