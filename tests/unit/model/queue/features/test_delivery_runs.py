"""Consumers of a busy queue get runs of messages, and all of them get as many."""

from __future__ import annotations

from itertools import groupby

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.model.editor import Editor
from harebell.model.limits import (
    RUN_AFTER,
    RUN_CONSUMERS,
    RUN_GAP_MS,
    RUN_LOOK_MS,
    RUN_MESSAGES,
    RUN_MS,
)
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, headers_of, message

BURST = 10 * RUN_CONSUMERS


class Shared:
    """A queue with many consumers, and what they get, in order."""

    def __init__(self, consumers: int = RUN_CONSUMERS, *, no_ack: bool = False) -> None:
        self.clock = Clock(1_700_000_000_000)
        host = VHost("/", MemoryStore(Gauge()), Editor(headers_of), self.clock)
        self.queue = host.declare_queue("q")
        self.order: list[str] = []
        order = self.order

        class Noting(Taker):
            def deliver(self, message: Message, position: int, redelivered: bool) -> int:
                order.append(self.tag)
                return super().deliver(message, position, redelivered)

        self.takers = [
            Noting(self.queue, str(number), no_ack=no_ack, prefetch=0)
            for number in range(consumers)
        ]
        for taker in self.takers:
            self.queue.add_consumer(taker)

    def burst(self, count: int = BURST) -> list[int]:
        """Publish so many in one millisecond; how many each consumer in turn got in a row."""
        self.order.clear()
        for number in range(count):
            self.queue.publish(message(b"%d" % number))
        return [len(list(same)) for _, same in groupby(self.order)]

    def acknowledge(self, count: int) -> None:
        """Count acknowledgements, as the channels do."""
        self.queue.counters.ack += count

    def look(self) -> None:
        """Let the time pass after which a burst is looked at, and send a little one."""
        self.clock.advance(RUN_LOOK_MS)
        self.burst(RUN_AFTER)
        self.clock.advance(1)


def test_turns_are_strict_while_nobody_acknowledges() -> None:
    shared = Shared()
    for _ in range(3):
        shared.look()
        assert set(shared.burst()) == {1}


def test_a_run_is_what_a_consumer_took_in_its_time() -> None:
    shared = Shared()
    shared.look()
    shared.acknowledge(4 * RUN_CONSUMERS * RUN_LOOK_MS // RUN_MS)
    shared.look()
    runs = shared.burst()
    assert set(runs[:RUN_AFTER]) == {1}, "a small burst is shared by as many as there are"
    assert set(runs[RUN_AFTER + 1 : -1]) == {4}


def test_a_burst_goes_on_in_the_next_milliseconds_only_if_it_was_more_than_a_small_one() -> None:
    shared = Shared()
    shared.look()
    shared.acknowledge(4 * RUN_CONSUMERS * RUN_LOOK_MS // RUN_MS)
    shared.look()
    shared.burst()
    shared.clock.advance(RUN_GAP_MS)
    assert max(shared.burst(RUN_AFTER)) == 4
    # That was a small burst, so the next one begins with strict turns.
    shared.clock.advance(1)
    assert max(shared.burst(RUN_AFTER)) == 1
    shared.burst()
    shared.clock.advance(RUN_GAP_MS + 1)
    assert set(shared.burst()[:RUN_AFTER]) == {1}


def test_all_get_as_many_give_or_take_a_run() -> None:
    shared = Shared()
    shared.look()
    shared.acknowledge(RUN_MESSAGES * RUN_CONSUMERS * RUN_LOOK_MS)
    shared.look()
    runs = shared.burst(100 * RUN_CONSUMERS)
    assert max(runs) == RUN_MESSAGES
    counts = [len(taker.got) for taker in shared.takers]
    assert max(counts) - min(counts) <= RUN_MESSAGES + 1


def test_without_acknowledgements_the_deliveries_count() -> None:
    shared = Shared(no_ack=True)
    shared.look()
    shared.burst(2 * RUN_CONSUMERS * RUN_LOOK_MS // RUN_MS)
    shared.look()
    assert max(shared.burst()) == 2


def test_turns_are_strict_again_when_consumers_take_little() -> None:
    shared = Shared()
    shared.look()
    shared.acknowledge(RUN_MESSAGES * RUN_CONSUMERS * RUN_LOOK_MS)
    shared.look()
    assert max(shared.burst()) > 1
    shared.look()
    assert set(shared.burst()) == {1}


def test_few_consumers_take_strict_turns() -> None:
    shared = Shared(RUN_CONSUMERS - 1)
    shared.look()
    shared.acknowledge(RUN_MESSAGES * RUN_CONSUMERS * RUN_LOOK_MS)
    shared.look()
    assert set(shared.burst()) == {1}


def test_a_consumer_without_credit_ends_its_run() -> None:
    shared = Shared()
    shared.look()
    shared.acknowledge(RUN_MESSAGES * RUN_CONSUMERS * RUN_LOOK_MS)
    shared.look()
    for taker in shared.takers:
        taker.credit = 3
    runs = shared.burst(2 * RUN_CONSUMERS)
    assert max(runs) == 3
    assert all(taker.credit >= 0 for taker in shared.takers)
