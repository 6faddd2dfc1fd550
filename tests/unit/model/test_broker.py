"""The broker's vhosts and totals."""

from __future__ import annotations

from harebell.base.gauge import Gauge
from harebell.model.broker import DEFAULT_VHOST, Broker
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, headers_of, message


def broker() -> Broker:
    gauge = Gauge()
    return Broker(MemoryStore(gauge), gauge, headers_of)


def test_there_is_a_default_vhost_and_adding_it_again_keeps_it() -> None:
    made = broker()
    default = made.vhosts[DEFAULT_VHOST]
    default.declare_queue("q")
    assert made.add_vhost(DEFAULT_VHOST) is default
    assert "q" in default.queues


def test_vhosts_do_not_see_each_others_things() -> None:
    made = broker()
    made.add_vhost("other").declare_queue("q")
    assert "q" not in made.vhosts[DEFAULT_VHOST].queues


def test_totals_count_over_all_vhosts() -> None:
    made = broker()
    for vhost in (made.vhosts[DEFAULT_VHOST], made.add_vhost("other")):
        queue = vhost.declare_queue("q")
        for _ in range(3):
            queue.publish(message(b"x"))
        queue.add_consumer(Taker(queue, credit=1))
    predeclared = len(made.add_vhost("third").exchanges)
    assert made.totals() == {
        "queues": 2,
        "exchanges": 3 * predeclared + 2,  # those of events and of the log are in the first
        "consumers": 2,
        "messages_ready": 4,
        "messages_unacknowledged": 2,
        "messages_leased": 0,
    }
