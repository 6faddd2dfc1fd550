"""The eras of logs and of lease groups: each start begins one, and they go with the queue."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.eras import UNNAMED, shared_until
from harebell.base.gauge import Gauge
from harebell.base.ports import Store
from harebell.model.broker import Broker
from harebell.model.histories import ROWS
from harebell.model.queue.contract import Queue
from harebell.store.log.memory import MemoryStore
from tests.unit.model.test_definitions import RestartedStore
from tests.unit.model.things import headers_of, message

STREAM = {"x-queue-type": "stream"}


def declared(broker: Broker, arguments: dict[str, Any], *, durable: bool = True) -> Queue:
    return broker.vhosts["/"].declare_queue("q", durable=durable, arguments=arguments)


def rows(store: Store) -> dict[str, str]:
    return {key[0]: fields["list"] for key, fields in store.definitions.load(ROWS)}


def committed(store: MemoryStore, queue: Queue, count: int) -> None:
    for number in range(count):
        queue.publish(message(b"%d" % number))
    store.commit.done = store.commit.ticket
    queue.committed()


def eras_of(broker: Broker) -> list[str]:
    text = broker.histories.of(broker.vhosts["/"].queues["q"])
    return text.split()


@pytest.mark.parametrize("arguments", [STREAM, {}, {"x-max-priority": 2}])
def test_each_start_begins_an_era_where_the_log_ends(arguments: dict[str, Any]) -> None:
    store = RestartedStore()
    before = store.broker()
    queue = declared(before, arguments)
    (first,) = eras_of(before)
    assert first.endswith(":0")
    committed(store, queue, 3)
    end = queue.span(0).end
    assert eras_of(before) == [first], "the same process is the same era"
    again = store.broker()
    assert eras_of(again)[0] == first
    assert eras_of(again)[1].endswith(f":{end}")
    assert len(eras_of(again)) == 2
    # Nothing was appended: that era has no positions, and is not kept.
    assert [each.partition(":")[2] for each in eras_of(store.broker())] == ["0", str(end)]
    assert shared_until(" ".join(eras_of(again)), " ".join(eras_of(store.broker()))) == end


def test_a_stream_has_eras_from_its_declaration_on_and_other_queues_when_they_are_asked_for() -> (
    None
):
    store = RestartedStore()
    broker = store.broker()
    stream = declared(broker, STREAM)
    other = broker.vhosts["/"].declare_queue("other", durable=True)
    assert set(rows(store)) == {stream.identity}
    broker.histories.of(other)
    assert set(rows(store)) == {stream.identity, other.identity}
    for name in ("q", "other"):
        broker.vhosts["/"].drop_queue(broker.vhosts["/"].queues[name])
    assert rows(store) == {}


def test_a_stream_of_an_earlier_version_has_an_unnamed_era_up_to_its_end() -> None:
    store = RestartedStore()
    queue = declared(store.broker(), STREAM)
    committed(store, queue, 5)
    store.definitions.drop(ROWS, (queue.identity,))
    unnamed, first = eras_of(store.broker())
    assert unnamed == f"{UNNAMED}:0"
    assert first.endswith(":5")


def test_eras_of_a_log_that_is_gone_are_forgotten_by_the_next_start() -> None:
    store = RestartedStore()
    store.definitions.put(ROWS, ("f" * 32,), {"list": f"{'a' * 16}:0"})
    store.broker()
    assert rows(store) == {}


def test_a_transient_queue_has_eras_that_are_not_stored() -> None:
    store = MemoryStore(Gauge())
    broker = Broker(store, Gauge(), headers_of)
    queue = declared(broker, {}, durable=False)
    assert len(eras_of(broker)) == 1
    assert rows(store) == {}
    broker.vhosts["/"].drop_queue(queue)
    assert broker.histories._eras == {}


def test_a_lease_group_has_eras_of_its_claims_and_another_group_of_its_name_has_others() -> None:
    store = RestartedStore()
    before = store.broker()
    vhost = before.vhosts["/"]
    queue = declared(before, {})
    committed(store, queue, 6)
    opened = before.leases.open(vhost, queue, "g", 0, None)
    first = opened.eras
    for _ in range(2):
        assert before.leases.claim(opened, 1, 0, None) is not None
    for call in store.commit.closing:
        call()
    after = store.broker()
    restored = after.leases.find(after.vhosts["/"], after.vhosts["/"].queues["q"], "g")
    assert restored.eras.startswith(f"{first} ")
    assert restored.eras.endswith(":3")
    after.leases.forget(restored)
    again = after.leases.open(after.vhosts["/"], after.vhosts["/"].queues["q"], "g", 0, None)
    assert shared_until(first, again.eras) == 0
