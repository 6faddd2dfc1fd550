"""The passes of the sampler over a broker in memory, with a clock in the test's hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harebell.admin.sampling_plan import OF_OBJECTS
from harebell.admin.statistics import Range
from harebell.base.slices import at_once
from harebell.front import limits
from harebell.management.statistics import sampler
from harebell.management.statistics.sampler import Sampler
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


class Sampled:
    """A broker in memory and its sampler."""

    def __init__(self) -> None:
        self.world = World()
        self.figures = {"mem_used": 1000}
        self.woken = 0
        self.sampler = Sampler(
            self.world.broker, self.world.registry, lambda: dict(self.figures), self._wake
        )

    def _wake(self) -> None:
        self.woken += 1

    def peer(self) -> OctetPeer:
        peer = self.world.peer()
        peer.ask(m.QueueDeclare("q"))
        return peer

    def look(self, seconds: int = 5) -> None:
        """A pass some seconds later."""
        self.world.clock.advance(seconds * 1000)
        at_once(self.sampler.take(self.world.clock.ms))

    def queue(self) -> object:
        return self.world.broker.vhosts["/"].queues["q"]


def test_rates_of_queue_exchange_channel_vhost_and_broker_agree_and_decay() -> None:
    site = Sampled()
    peer = site.peer()
    site.look()
    for number in range(10):
        peer.give(publish(b"%d" % number))
    site.look()
    vhost = site.world.broker.vhosts["/"]
    channel = peer.connection.channels[1]
    rates = [site.sampler.series(thing).rate("publish") for thing in (site.queue(), channel, "/")]
    assert rates == [2.0, 2.0, 2.0]
    assert site.sampler.broker().rate("publish") == 2.0
    assert site.sampler.series(vhost.exchanges[""]).rate("publish_in") == 2.0
    assert site.sampler.series(site.queue()).rate("messages_ready") == 2.0
    assert site.sampler.series(peer.connection).rate("recv_oct") > 0
    site.look()
    assert site.sampler.series(site.queue()).rate("publish") == 0.0
    assert site.sampler.broker().rate("publish") == 0.0
    assert site.sampler.series(peer.connection).rate("recv_oct") == 0.0


def test_things_without_traffic_have_no_history() -> None:
    site = Sampled()
    peer = site.world.peer()
    for number in range(50):
        peer.ask(m.QueueDeclare(f"q{number}"))
    site.look()
    site.look()
    queues = site.world.broker.vhosts["/"].queues
    assert not any(site.sampler.tracked(queue) for queue in queues.values())
    peer.give(publish(b"1", key="q7"))
    site.look()
    assert [name for name, queue in queues.items() if site.sampler.tracked(queue)] == ["q7"]


def test_a_deleted_queue_is_forgotten_and_an_idle_one_after_the_retention() -> None:
    site = Sampled()
    peer = site.peer()
    peer.ask(m.QueueDeclare("other"))
    peer.give(publish(b"1") + publish(b"2", key="other"))
    site.look()
    queue, other = site.queue(), site.world.broker.vhosts["/"].queues["other"]
    peer.send(m.QueueDelete("other"))
    site.look()
    assert site.sampler.tracked(queue)
    assert not site.sampler.tracked(other)
    site.look(OF_OBJECTS[0].seconds + 1)
    assert not site.sampler.tracked(queue)


def test_only_some_things_have_a_history_and_all_have_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = Sampled()
    peer = site.world.peer()
    site.look()
    monkeypatch.setattr(sampler, "STATISTICS_HISTORIES", 4)
    for number in range(10):
        peer.ask(m.QueueDeclare(f"q{number}"))
        peer.give(publish(b"1", key=f"q{number}"))
    site.look()
    series = [site.sampler.series(q) for q in site.world.broker.vhosts["/"].queues.values()]
    assert [each.rate("publish") for each in series] == [0.2] * 10
    kept = [each for each in series if each.samples("publish", Range(5, 5), 0)]
    assert 0 < len(kept) <= 4


def test_a_pass_over_many_queues_is_cut_in_slices() -> None:
    site = Sampled()
    peer = site.world.peer()
    for number in range(1_000):
        peer.send(m.QueueDeclare(f"q{number}", nowait=True))
    slices = list(site.sampler.take(site.world.clock.ms))
    assert len(slices) >= 1_000 // limits.STATISTICS_SLICE_OBJECTS


def test_what_one_queue_counts_by_exchange_is_cut_in_slices() -> None:
    site = Sampled()
    peer = site.peer()
    names = [f"x{number}" for number in range(3 * limits.STATISTICS_SLICE_OBJECTS)]
    for name in names:
        peer.send(m.ExchangeDeclare(name, type="fanout", nowait=True))
        peer.send(m.QueueBind(queue="q", exchange=name, nowait=True))
        peer.give(publish(b"1", exchange=name))
    keys = [(site.queue(), name) for name in names]
    passing = site.sampler.take(site.world.clock.ms)
    sampled = [0, *(sum(site.sampler.tracked(key) for key in keys) for _ in passing)]
    assert sampled[-1] == len(names)
    assert max(b - a for a, b in pairwise(sampled)) <= limits.STATISTICS_SLICE_OBJECTS


def test_the_channels_of_one_connection_are_cut_in_slices() -> None:
    site = Sampled()
    peer = site.world.peer()
    before = len(list(site.sampler.take(site.world.clock.ms)))
    for number in range(2, 2 + 3 * limits.STATISTICS_SLICE_OBJECTS):
        peer.send(m.ChannelOpen(), channel=number)
    assert len(list(site.sampler.take(site.world.clock.ms))) - before >= 3


def test_totals_stay_when_a_queue_and_its_connection_go() -> None:
    site = Sampled()
    peer = site.peer()
    peer.give(publish(b"1"))
    site.look()
    peer.connection.eof()
    site.look()
    assert site.sampler.broker().rate("publish") == 0.0
    (newest, _) = site.sampler.broker().samples("publish", Range(5, 5), 0)
    assert newest[1] == 1


def test_asking_for_rates_starts_the_passes() -> None:
    site = Sampled()
    assert site.sampler.node().rate("mem_used") == 0.0
    assert site.woken == 1
    site.look()
    site.figures["mem_used"] = 6000
    site.look()
    assert site.sampler.node().rate("mem_used") == 1000.0


def test_a_queue_is_idle_since_its_last_change() -> None:
    site = Sampled()
    peer = site.peer()
    site.look()
    started = site.world.clock.ms
    counters = site.world.broker.vhosts["/"].queues["q"].counters
    assert site.sampler.idle_since(counters.moved_at) == started
    peer.give(publish(b"1"))
    site.look()
    assert site.sampler.idle_since(counters.moved_at) is None
    moved = site.world.clock.ms
    site.look()
    assert site.sampler.idle_since(counters.moved_at) == moved
