"""The broker's vhosts and totals."""

from __future__ import annotations

from typing import ClassVar

from harebell.base.gauge import Gauge
from harebell.model.broker import DEFAULT_VHOST, Broker
from harebell.model.limits import QUEUES_PER_TICK
from harebell.model.queue.contract import Queue
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


class Ticking(Queue):
    """Notes its ticks."""

    ticked: ClassVar[list[str]] = []

    def tick(self) -> None:
        self.ticked.append(self.name)


def test_the_periodic_work_of_very_many_queues_takes_several_ticks() -> None:
    made, ticked = broker(), Ticking.ticked
    vhosts = (made.vhosts[DEFAULT_VHOST], made.add_vhost("other"))
    for number in range(2 * QUEUES_PER_TICK + 1):
        vhost = vhosts[number % 2]
        vhost.ticking[f"q-{number}"] = Ticking(f"q-{number}", vhost.name)
    made.tick()
    assert len(ticked) == QUEUES_PER_TICK
    gone = vhosts[1].ticking.pop("q-1")
    gone.deleted = True
    made.tick()
    made.tick()
    assert sorted(ticked) == sorted({f"q-{n}" for n in range(2 * QUEUES_PER_TICK + 1)} - {"q-1"})
    made.tick()
    assert len(ticked) == 3 * QUEUES_PER_TICK
