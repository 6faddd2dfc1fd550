"""Queues with `x-expires` go when nobody used them for that long."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.errors import Refusal
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.settings.policy import Policy
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker

QUORUM = {"x-queue-type": "quorum"}


class Here:
    """A vhost in memory and its clock."""

    def __init__(self) -> None:
        self.clock = Clock(1_700_000_000_000)
        gauge = Gauge()
        self.broker = Broker(MemoryStore(gauge), gauge, EDITOR.headers_of, EDITOR, self.clock)
        self.vhost: VHost = self.broker.vhosts["/"]

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        self.broker.timers.run()


@pytest.fixture
def here() -> Here:
    return Here()


def declared(here: Here, **arguments: Any) -> Any:
    named = {"x-expires": 100, **arguments}
    durable = named.get("x-queue-type") == "quorum"
    queue = here.vhost.declare_queue("q", arguments=named, durable=durable)
    queue.declared()
    return queue


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 2}, QUORUM])
def test_a_queue_that_nobody_uses_goes(here: Here, arguments: dict[str, Any]) -> None:
    queue = declared(here, **arguments)
    queue.publish(Message("", "q", Properties(b"\0\0"), b"m"))
    here.pass_ms(99)
    assert here.vhost.queue("q") is queue
    here.pass_ms(1)
    with pytest.raises(Refusal, match="no queue 'q' in vhost '/'"):
        here.vhost.queue("q")
    assert queue.deleted


def test_its_messages_are_not_dead_lettered(here: Here) -> None:
    dead = here.vhost.declare_queue("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    declared(here, **to_dead).publish(Message("", "q", Properties(b"\0\0"), b"m"))
    here.pass_ms(100)
    assert ("q" in here.vhost.queues, dead.ready_count()) == (False, 0)


def test_a_consumer_uses_a_queue_as_long_as_it_is_there(here: Here) -> None:
    queue = declared(here)
    taker = Taker(queue)
    queue.add_consumer(taker)
    here.pass_ms(1_000)
    here.vhost.remove_consumer(taker)
    here.pass_ms(99)
    assert not queue.deleted
    here.pass_ms(1)
    assert queue.deleted


def test_get_uses_a_queue_even_when_it_finds_nothing(here: Here) -> None:
    queue = declared(here)
    here.pass_ms(60)
    assert queue.get() is None
    here.pass_ms(60)
    assert not queue.deleted
    here.pass_ms(40)
    assert queue.deleted


def test_publishing_does_not_use_a_queue(here: Here) -> None:
    queue = declared(here)
    here.pass_ms(60)
    queue.publish(Message("", "q", Properties(b"\0\0"), b"m"))
    here.pass_ms(40)
    assert queue.deleted


@pytest.mark.parametrize(("arguments", "goes"), [({}, False), (QUORUM, True)])
def test_declaring_again_uses_a_classic_queue_and_not_a_quorum_queue(
    here: Here, arguments: dict[str, Any], goes: bool
) -> None:
    queue = declared(here, **arguments)
    here.pass_ms(60)
    declared(here, **arguments)
    here.pass_ms(60)
    assert queue.deleted is goes


def test_the_shorter_of_argument_and_policy_holds(here: Here) -> None:
    queue = declared(here)
    policies = here.vhost.policies
    policies.put(Policy("p", "", "queues", 0, {"expires": 50}))
    here.pass_ms(49)
    policies.delete("p")
    here.pass_ms(99)
    assert not queue.deleted
    policies.put(Policy("p", "", "queues", 0, {"expires": 5_000}))
    here.pass_ms(100)
    assert queue.deleted


def test_a_policy_alone_lets_a_queue_go(here: Here) -> None:
    queue = here.vhost.declare_queue("q")
    policies = here.vhost.policies
    policies.put(Policy("p", "", "queues", 0, {"expires": 50}))
    here.pass_ms(40)
    policies.delete("p")
    here.pass_ms(10_000)
    assert not queue.deleted
    policies.put(Policy("p", "", "queues", 0, {"expires": 50}))
    here.pass_ms(50)
    assert queue.deleted


def test_a_stream_that_nobody_reads_goes(here: Here) -> None:
    arguments = {"x-queue-type": "stream", "x-stream-expires": 100}
    queue = here.vhost.declare_queue("s", arguments=arguments, durable=True)
    queue.publish(Message("", "s", Properties(b"\0\0"), b"m"))
    taker = Taker(queue)
    queue.add_consumer(taker)
    here.pass_ms(1_000)
    here.vhost.remove_consumer(taker)
    here.pass_ms(60)
    queue.span(0)
    here.pass_ms(60)
    queue.declared()
    here.pass_ms(99)
    assert not queue.deleted
    here.pass_ms(1)
    assert queue.deleted


def test_a_queue_that_was_deleted_does_not_take_its_successor_along(here: Here) -> None:
    declared(here)
    here.pass_ms(60)
    here.vhost.delete_queue("q")
    second = declared(here)
    here.pass_ms(60)
    assert not second.deleted
