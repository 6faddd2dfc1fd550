"""What is declared comes back after a restart: durable things and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import StoreError
from harebell.base.gauge import Gauge
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, headers_of, message


class RestartedStore(MemoryStore):
    """A store in memory whose definitions a second broker finds again, and its logs too."""

    def __init__(self) -> None:
        super().__init__(Gauge())
        self.logs: dict[str, Any] = {}

    def open_log(self, identity: str, *, durable: bool, **options: Any) -> Any:
        if identity not in self.logs or not durable:
            opened = super().open_log(identity, durable=durable, **options)
            self.logs[identity] = opened
        return self.logs[identity]

    def broker(self) -> Broker:
        """A new process over the same store."""
        broker = Broker(self, Gauge(), headers_of)
        assert broker.restore() == []
        return broker

    def rows(self) -> int:
        kinds = ("vhost", "exchange", "queue", "binding")
        return sum(len(list(self.definitions.load(kind))) for kind in kinds)


def shown(broker: Broker) -> dict[str, Any]:
    """A broker's topology as plain values."""
    return {
        name: {
            "exchanges": [
                (e.name, e.KIND, e.durable, e.auto_delete, e.internal, dict(e.arguments))
                for e in vhost.exchanges.values()
            ],
            "queues": [
                (q.name, q.kind, q.durable, q.auto_delete, q.identity, dict(q.arguments))
                for q in vhost.queues.values()
            ],
            "bindings": [
                (b.source.name, b.destination.name, b.routing_key, dict(b.arguments))
                for b in vhost.bindings()
            ],
        }
        for name, vhost in broker.vhosts.items()
    }


def test_a_durable_topology_comes_back_as_it_was() -> None:
    store = RestartedStore()
    before = store.broker()
    vhost = before.add_vhost("sales")
    vhost.declare_exchange("rest", "fanout", durable=True, internal=True)
    vhost.declare_exchange(
        "orders", "headers", durable=True, arguments={"alternate-exchange": "rest"}
    )
    queue = vhost.declare_queue("paid", durable=True, auto_delete=True, arguments={"x-a": [1, "b"]})
    vhost.bind("orders", queue, "k", {"paid": True})
    vhost.bind("orders", queue, "k", {"paid": 1})
    vhost.bind("orders", vhost.exchange("rest"), "")
    vhost.bind("amq.topic", queue, "a.#")
    after = store.broker()
    assert shown(after) == shown(before)
    assert after.vhosts["sales"].exchange("orders").alternate == "rest"


def test_a_restored_topology_routes_and_can_be_taken_apart() -> None:
    store = RestartedStore()
    vhost = store.broker().vhosts["/"]
    vhost.declare_exchange("e", "topic", durable=True, auto_delete=True)
    vhost.bind("e", vhost.declare_queue("q", durable=True), "a.*", {"x": 1})
    vhost = store.broker().vhosts["/"]
    found = vhost.router.route(vhost.exchange("e"), message(key="a.b", exchange="e"))
    assert [queue.name for queue in found] == ["q"]
    vhost.delete_queue("q")
    assert "e" not in vhost.exchanges
    assert store.rows() == 0


def test_transient_definitions_leave_nothing_behind() -> None:
    store = RestartedStore()
    vhost = store.broker().vhosts["/"]
    vhost.declare_exchange("e", "direct")
    vhost.declare_exchange("kept", "direct", durable=True)
    vhost.bind("e", vhost.declare_queue("q", durable=True), "k")
    vhost.bind("kept", vhost.declare_queue("passing"), "k")
    vhost.bind("kept", vhost.exchange("e"), "k")
    owner = object()
    vhost.bind("kept", vhost.declare_queue("mine", durable=True, exclusive=True, owner=owner), "k")
    vhost.drop_owned(owner)
    after = shown(store.broker())["/"]
    assert [queue[0] for queue in after["queues"]] == ["q"]
    assert [exchange[0] for exchange in after["exchanges"]][-1] == "kept"
    assert after["bindings"] == []


def test_a_queue_that_goes_with_its_last_consumer_takes_its_rows_along() -> None:
    store = RestartedStore()
    vhost = store.broker().vhosts["/"]
    queue = vhost.declare_queue("q", durable=True, auto_delete=True)
    vhost.bind("amq.direct", queue, "k")
    assert store.rows() == 2
    taker = Taker(queue)
    queue.add_consumer(taker)
    vhost.remove_consumer(taker)
    assert store.rows() == 0


def test_deleting_an_exchange_removes_the_bindings_at_both_of_its_sides() -> None:
    store = RestartedStore()
    vhost = store.broker().vhosts["/"]
    middle = vhost.declare_exchange("middle", "fanout", durable=True)
    vhost.bind("amq.fanout", middle, "")
    vhost.bind("middle", vhost.declare_queue("q", durable=True), "")
    vhost.delete_exchange("middle")
    assert store.rows() == 1


def test_unbinding_removes_the_one_row_with_those_arguments() -> None:
    store = RestartedStore()
    vhost = store.broker().vhosts["/"]
    queue = vhost.declare_queue("q", durable=True)
    for arguments in ({"a": 1}, {"a": True}, {}):
        vhost.bind("amq.headers", queue, "k", arguments)
    vhost.unbind("amq.headers", queue, "k", {"a": True})
    bindings = shown(store.broker())["/"]["bindings"]
    assert [binding[3] for binding in bindings] == [{"a": 1}, {}]


def test_only_a_change_that_was_written_down_has_a_ticket() -> None:
    store = RestartedStore()
    vhost = store.broker().vhosts["/"]
    vhost.declare_queue("passing")
    assert vhost.recorder.ticket == 0
    store.commit.ticket = 7
    vhost.declare_queue("kept", durable=True)
    assert vhost.recorder.ticket == 7
    store.commit.ticket = 8
    vhost.declare_queue("kept", durable=True)
    assert vhost.recorder.ticket == 7
    vhost.delete_queue("kept")
    assert vhost.recorder.ticket == 8


def test_a_binding_without_its_ends_is_told_and_left_out() -> None:
    store = RestartedStore()
    key = ("/", "amq.direct", "queue", "gone", "k", "")
    store.definitions.put("binding", key, {"arguments": {}})
    broker = Broker(store, Gauge(), headers_of)
    (sentence,) = broker.restore()
    assert "'amq.direct' to queue 'gone'" in sentence
    assert list(broker.vhosts["/"].bindings()) == []


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        ("queue", {"kind": "ring", "identity": "0" * 32}, "queue 'x' in vhost '/' of type 'ring'"),
        ("exchange", {"type": "x-ring", "internal": False}, "exchange 'x' in vhost '/' of type"),
    ],
)
def test_definitions_unknown_to_this_version_stop_the_start(
    kind: str, fields: dict[str, Any], named: str
) -> None:
    store = RestartedStore()
    store.definitions.put(kind, ("/", "x"), {"auto_delete": False, "arguments": {}, **fields})
    with pytest.raises(StoreError, match=named):
        Broker(store, Gauge(), headers_of).restore()
