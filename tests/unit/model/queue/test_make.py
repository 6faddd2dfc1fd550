"""The factory of queues: kinds by their arguments, each over the log of its identity."""

from __future__ import annotations

import pytest

from harebell.base.gauge import Gauge
from harebell.model.queue.classic import ClassicQueue
from harebell.model.queue.make import kind_of, make_queue
from harebell.store.memory import MemoryStore


def test_a_queue_is_classic_unless_its_arguments_say_otherwise():
    assert kind_of({}) == "classic"
    assert kind_of({"x-queue-type": "classic"}) == "classic"


def test_a_queue_is_made_with_its_options_and_keeps_the_identity_of_its_log():
    store = MemoryStore(Gauge())
    identity = store.new_identity()
    options = {"durable": True, "auto_delete": True, "owner": None, "arguments": {"x-a": 1}}
    queue = make_queue("classic", "orders", "/", store, identity, options)
    assert isinstance(queue, ClassicQueue)
    assert (queue.name, queue.vhost, queue.identity) == ("orders", "/", identity)
    assert queue.durable
    assert queue.auto_delete
    assert queue.arguments == {"x-a": 1}


def test_an_unknown_kind_is_named():
    with pytest.raises(LookupError, match="no queue kind 'ring'"):
        make_queue("ring", "q", "/", MemoryStore(Gauge()), "0" * 32, {"durable": True})
