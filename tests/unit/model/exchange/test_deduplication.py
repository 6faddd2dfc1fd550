"""A deduplication exchange is a fanout for what was not seen before."""

from __future__ import annotations

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.dedup_cache import HEADER
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import ACCEPTED, PENDING, Queue, unrouted
from harebell.model.vhost import VHost
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.model.memory import HandStore
from tests.unit.model.things import message, vhost, with_headers

SIZE = {"x-cache-size": 10}
REJECT = "reject-publish"


def published(where: VHost, exchange: Exchange, value: str) -> tuple[Queue, ...]:
    """Publish a message with a value; the queues that it was routed to."""
    sent = with_headers({HEADER: value})
    queues = where.router.route(exchange, sent)
    for queue in queues:
        queue.publish(sent)
    return queues


def stored(value: str) -> Message:
    """A persistent message with a value."""
    properties = BasicProperties(delivery_mode=2, headers={HEADER: value})
    return Message("x", "", parse_properties(encode_properties(properties)), b"")


def test_a_value_is_routed_once() -> None:
    sales = vhost()
    exchange = sales.declare_exchange("x", "x-message-deduplication", arguments=SIZE)
    queue = sales.declare_queue("q")
    sales.bind("x", queue, "whatever")
    assert [published(sales, exchange, v) for v in ("a", "a", "b")] == [(queue,), (), (queue,)]
    assert sales.router.route(exchange, message()) == (queue,)


def test_two_exchanges_remember_each_for_itself() -> None:
    sales = vhost()
    queue = sales.declare_queue("q")
    for name in ("x", "y"):
        exchange = sales.declare_exchange(name, "x-message-deduplication", arguments=SIZE)
        sales.bind(name, queue, "")
        assert published(sales, exchange, "a") == (queue,)


def test_a_value_that_was_only_routed_is_no_duplicate_later() -> None:
    sales = vhost()
    exchange = sales.declare_exchange("x", "x-message-deduplication", arguments=SIZE)
    queue = sales.declare_queue("q")
    sales.bind("x", queue, "")
    for _ in range(2):
        assert sales.router.route(exchange, with_headers({HEADER: "a"})) == (queue,)


@pytest.mark.parametrize("refuses_first", [True, False])
def test_a_value_is_known_if_all_queues_take_it(refuses_first: bool) -> None:
    sales = vhost()
    exchange = sales.declare_exchange("x", "x-message-deduplication", arguments=SIZE)
    full = sales.declare_queue("full", arguments={"x-max-length": 0, "x-overflow": REJECT})
    taker = sales.declare_queue("taker")
    for queue in (full, taker) if refuses_first else (taker, full):
        sales.bind("x", queue, "")
    for _ in range(2):
        assert set(published(sales, exchange, "a")) == {full, taker}
    sales.unbind("x", full, "")
    assert published(sales, exchange, "a") == (taker,)
    assert published(sales, exchange, "a") == ()


def test_a_duplicate_waits_for_the_disk_as_long_as_the_message_that_was_kept() -> None:
    gauge = Gauge()
    store = HandStore(gauge)
    broker = Broker(store, gauge, EDITOR.headers_of, EDITOR, Clock())
    sales = broker.vhosts["/"]
    exchange = sales.declare_exchange("x", "x-message-deduplication", durable=True, arguments=SIZE)
    queue = sales.declare_queue("q", durable=True)
    sales.bind("x", queue, "")
    first, *repeats = (stored("a") for _ in range(3))
    assert sales.router.route(exchange, first) == (queue,)
    assert queue.publish(first) == PENDING
    assert sales.router.route(exchange, repeats[0]) == ()
    assert unrouted(repeats[0]) == PENDING
    store.finish(store.begin())
    assert sales.router.route(exchange, repeats[1]) == ()
    assert unrouted(repeats[1]) == ACCEPTED


@pytest.mark.parametrize("size", [None, 0, True, "many", "-1", 2**70])
def test_a_size_that_bounds_nothing_is_refused(size: object) -> None:
    with pytest.raises(Refusal) as caught:
        vhost().declare_exchange("x", "x-message-deduplication", arguments={"x-cache-size": size})
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
