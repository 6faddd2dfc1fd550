"""How much a broker may have of everything is asked where something new is made."""

from __future__ import annotations

import pytest

from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.front.convert import headers_of
from harebell.model.broker import Broker
from harebell.model.settings.ceilings import Ceilings, Declared
from harebell.store.log.memory import MemoryStore

PREDECLARED = 7 + 2
"""Exchanges of a vhost from its beginning, and those that the first has beside."""


def made(ceilings: Ceilings) -> Broker:
    broker = Broker(MemoryStore(Gauge()), Gauge(), headers_of)
    broker.limit(ceilings)
    return broker


def test_there_are_no_more_vhosts_than_may_be() -> None:
    broker = made(Ceilings(vhosts=2))
    second = broker.add_vhost("two")
    with pytest.raises(Refusal, match=r"^cannot create vhost 'three': vhost limit of 2 is reach"):
        broker.add_vhost("three")
    assert broker.add_vhost("two") is second
    broker.delete_vhost(second)
    assert broker.add_vhost("three").name == "three"


def test_queues_of_all_vhosts_count() -> None:
    broker = made(Ceilings(queues=2))
    first, second = broker.vhosts["/"], broker.add_vhost("two")
    first.declare_queue("a")
    second.declare_queue("b")
    text = r"^cannot declare queue 'c': queue limit in cluster \(2\) is reached$"
    for vhost in (first, second):
        with pytest.raises(Refusal, match=text):
            vhost.check_room("c")
    second.drop_queue(second.queues["b"])
    first.check_room("c")


def test_exchanges_of_all_vhosts_count_with_those_that_a_vhost_begins_with() -> None:
    broker = made(Ceilings(exchanges=PREDECLARED + 1))
    vhost = broker.vhosts["/"]
    made_first = vhost.declare_exchange("a", "direct")
    text = (
        f"^cannot declare exchange 'b' in vhost '/': exchange limit of {PREDECLARED + 1} is reached"
    )
    with pytest.raises(Refusal, match=text):
        vhost.declare_exchange("b", "direct")
    assert vhost.declare_exchange("a", "direct") is made_first
    vhost.delete_exchange("a")
    assert vhost.declare_exchange("b", "direct").name == "b"


def test_existing_objects_stay_when_a_limit_comes() -> None:
    broker = made(Ceilings())
    vhost = broker.vhosts["/"]
    for name in "abc":
        vhost.declare_queue(name)
    broker.limit(Ceilings(vhosts=0, queues=1, exchanges=1))
    assert sorted(vhost.queues) == ["a", "b", "c"]
    with pytest.raises(Refusal):
        vhost.check_room("d")
    with pytest.raises(Refusal):
        broker.add_vhost("two")


def test_a_copy_of_a_broker_that_lacks_something_has_the_same_room() -> None:
    broker = made(Ceilings(vhosts=3, queues=3, exchanges=30))
    vhost = broker.vhosts["/"]
    vhost.declare_queue("a")
    vhost.declare_queue("b")
    copy = made(Ceilings())
    lacking = broker.ceilings.beyond(copy.ceilings)
    copy.limit(broker.ceilings.copy())
    copy.ceilings.elsewhere = lambda: lacking
    there = copy.vhosts["/"]
    there.check_room("c")
    there.declare_queue("c")
    with pytest.raises(Refusal, match=r"'d': queue limit"):
        there.check_room("d")


def test_every_limit_may_be_missing() -> None:
    broker = made(Ceilings())
    for number in range(20):
        vhost = broker.add_vhost(f"v{number}")
        vhost.check_room("q")
        vhost.declare_exchange("x", "fanout")
    assert made(broker.ceilings.copy()).add_vhost("more").name == "more"


def test_objects_of_other_owners_count_also_after_the_limits_were_changed() -> None:
    broker = made(Ceilings(vhosts=3, queues=3, exchanges=2 * PREDECLARED))
    broker.ceilings.elsewhere = lambda: Declared(2, 2, PREDECLARED)
    for _ in range(2):
        vhost = broker.vhosts["/"]
        with pytest.raises(Refusal, match="vhost limit of 3"):
            broker.add_vhost("two")
        vhost.check_room("a")
        vhost.declare_queue("a")
        with pytest.raises(Refusal, match=r"queue limit in cluster \(3\)"):
            vhost.check_room("b")
        with pytest.raises(Refusal, match=f"exchange limit of {2 * PREDECLARED}"):
            vhost.declare_exchange("x", "fanout")
        vhost.drop_queue(vhost.queues["a"])
        broker.limit(broker.ceilings.copy())
