"""A deduplication exchange is a fanout for what was not seen before."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.dedup_cache import HEADER
from tests.unit.model.things import message, vhost, with_headers

SIZE = {"x-cache-size": 10}


def test_a_value_is_routed_once() -> None:
    sales = vhost()
    exchange = sales.declare_exchange("x", "x-message-deduplication", arguments=SIZE)
    queue = sales.declare_queue("q")
    sales.bind("x", queue, "whatever")
    routed = [sales.router.route(exchange, with_headers({HEADER: v})) for v in ("a", "a", "b")]
    assert routed == [(queue,), (), (queue,)]
    assert sales.router.route(exchange, message()) == (queue,)


def test_two_exchanges_remember_each_for_itself() -> None:
    sales = vhost()
    queue = sales.declare_queue("q")
    for name in ("x", "y"):
        exchange = sales.declare_exchange(name, "x-message-deduplication", arguments=SIZE)
        sales.bind(name, queue, "")
        assert sales.router.route(exchange, with_headers({HEADER: "a"})) == (queue,)


@pytest.mark.parametrize("size", [None, 0, True, "many", "-1", 2**70])
def test_a_size_that_bounds_nothing_is_refused(size: object) -> None:
    with pytest.raises(Refusal) as caught:
        vhost().declare_exchange("x", "x-message-deduplication", arguments={"x-cache-size": size})
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
