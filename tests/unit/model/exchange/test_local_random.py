"""A local random exchange has classic queues only, under the empty key."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.binding import Binding
from harebell.model.exchange.fanout import FanoutExchange
from tests.unit.model.things import priority_queue, queue, vhost


def test_a_local_random_exchange_refuses_keys_exchanges_and_other_queue_types() -> None:
    where = vhost()
    exchange = where.declare_exchange("r", "x-local-random")
    quorum = where.declare_queue("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    for destination, key, text in (
        (queue(), "k", "Non empty binding 'k' key not permitted"),
        (FanoutExchange("f"), "", "Destination not found"),
        (quorum, "", "Queue type rabbit_quorum_queue not valid for this exchange type"),
    ):
        with pytest.raises(Refusal) as refused:
            exchange.bind(Binding(exchange, destination, key, {}))
        assert (refused.value.kind, refused.value.text) == (ErrorKind.PRECONDITION_FAILED, text)
    assert exchange.bindings == {}
    assert exchange.bind(Binding(exchange, priority_queue(), "", {}))
