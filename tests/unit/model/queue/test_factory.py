"""The factory of queues: kinds by their arguments, each over the log of its identity."""

from __future__ import annotations

from typing import ClassVar

import pytest

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.base.ports import Log
from harebell.model.queue.factory import kind_of, make_queue
from harebell.model.queue.queue import MessageQueue
from harebell.store.log.memory import MemoryStore


def test_a_queue_is_classic_unless_its_arguments_say_otherwise():
    assert kind_of({}) == "classic"
    assert kind_of({"x-queue-type": "classic"}) == "classic"
    assert kind_of({"x-max-priority": 3}) == "priority"


def test_a_queue_is_made_with_its_options_and_keeps_the_identity_of_its_log():
    store = MemoryStore(Gauge())
    identity = store.new_identity()
    options = {"durable": True, "auto_delete": True, "owner": None, "arguments": {"x-a": 1}}
    queue = make_queue("classic", "orders", "/", store, identity, options)
    assert isinstance(queue, MessageQueue)
    assert (queue.name, queue.vhost, queue.identity) == ("orders", "/", identity)
    assert queue.durable
    assert queue.auto_delete
    assert queue.arguments == {"x-a": 1}


def test_an_unknown_kind_is_named():
    with pytest.raises(LookupError, match="no queue kind 'ring'"):
        make_queue("ring", "q", "/", MemoryStore(Gauge()), "0" * 32, {"durable": True})


def test_a_priority_queue_opens_a_log_for_each_level_that_is_used():
    class Recording(MemoryStore):
        opened: ClassVar[list[str]] = []

        def open_log(self, identity: str, *, durable: bool, segment_bytes: int = 0) -> Log:
            self.opened.append(identity)
            return super().open_log(identity, durable=durable, segment_bytes=segment_bytes)

    store = Recording(Gauge())
    options = {"durable": True, "arguments": {"x-max-priority": 0}}
    queue = make_queue("priority", "q", "/", store, "abc", options)
    assert isinstance(queue, MessageQueue)
    queue.publish(Message("", "", Properties(b"", 0, 200), b""))
    assert store.opened == ["abc-1"]
    make_queue("priority", "q", "/", store, "abc", options, restored=True)
    assert store.opened == ["abc-1", "abc-0", "abc-1"]
