"""What a queue of any kind has acknowledged is in it, was given to somebody, or has died.

Random calls on queues with every combination of kind and features. A publish that was acknowledged
and is not there has to be a duplicate of a message that was there at that moment.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.dedup_cache import HEADER
from harebell.model.queue.contract import REJECTED
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.model.memory import HandStore
from tests.unit.model.things import Taker

CLASSIC: dict[str, Any] = {}
QUORUM: dict[str, Any] = {"x-queue-type": "quorum"}
PRIORITIES: dict[str, Any] = {"x-max-priority": 2}
KEYS: dict[str, Any] = {"x-group-key": "routing_key"}
HOLDER = "holder"


def options(**choices: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Each argument by itself, or none of them."""
    found = [{f"x-{name.replace('_', '-')}": value} for name, value in choices.items()]
    return st.sampled_from([{}, *found])


class Acknowledged(RuleBasedStateMachine):
    """One queue, whose dead letters another one keeps."""

    @initialize(
        kind=st.sampled_from([CLASSIC, QUORUM, PRIORITIES, KEYS]),
        overflow=st.sampled_from(["drop-head", "reject-publish", "reject-publish-dlx"]),
        limit=options(max_length=2, max_length_bytes=20) | options(max_length=0),
        ttl=st.sampled_from([None, 0, 5]),
        again=options(retry_delays=[3], delivery_limit=1),
        strategy=st.sampled_from(["at-most-once", "at-least-once"]),
    )
    def begin(
        self,
        kind: dict[str, Any],
        overflow: str,
        limit: dict[str, Any],
        ttl: int | None,
        again: dict[str, Any],
        strategy: str,
    ) -> None:
        gauge = Gauge()
        self.clock = Clock(1_700_000_000_000)
        self.clock.advance(1)
        self.store = HandStore(gauge)
        self.broker = Broker(self.store, gauge, EDITOR.headers_of, EDITOR, self.clock)
        vhost = self.vhost = self.broker.vhosts["/"]
        self.dead = vhost.declare_queue("dead", durable=True)
        arguments = {
            "x-message-deduplication": True,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
            **kind,
            **limit,
        }
        if ttl is not None:
            arguments["x-message-ttl"] = ttl
        quorum = kind is QUORUM
        if quorum:
            arguments["x-dead-letter-strategy"] = strategy
        if limit and not (quorum and overflow == "reject-publish-dlx"):
            arguments["x-overflow"] = overflow
        if "x-delivery-limit" not in again or quorum:
            arguments |= again
        self.queue = vhost.declare_queue("q", durable=True, arguments=arguments)
        self.keyed = kind is KEYS
        self.number = 0
        self.kept: set[bytes] = set()
        self.given: set[bytes] = set()
        self.taker: Taker | None = None
        self.out: list[int] = []
        self.group = self.broker.leases.open(vhost, self.queue, "g", 0, HOLDER)
        self.staged: set[bytes] = set()

    # --- what there is --------------------------------------------------------------------------

    def inside(self, queue: Any) -> dict[bytes, Any]:
        """The bodies of the messages in a queue with their values, whatever their state."""
        found = {}
        for _, order in queue.order.levels():
            log, position = order.log, order.log.first()
            while position < log.end():
                message = log.read(position)
                if message is not None:
                    headers = EDITOR.headers_of(message) if message.has_headers else {}
                    found[message.body] = headers.get(HEADER)
                position = log.next(position + 1)
        return found

    def message(self, value: int | None, priority: int, key: str) -> Message:
        self.number += 1
        headers = None if value is None else {HEADER: value}
        properties = BasicProperties(headers=headers, priority=priority, delivery_mode=2)
        raw = parse_properties(encode_properties(properties))
        return Message("", key, raw, b"%09d" % self.number)

    def got(self) -> None:
        if self.taker is not None:
            for body, position, _ in self.taker.got:
                self.given.add(body)
                if position >= 0:
                    self.out.append(position)
            self.taker.got.clear()

    @invariant()
    def nothing_is_lost(self) -> None:
        if self.number:
            self.got()
            there = {*self.inside(self.queue), *self.inside(self.dead), *self.given}
            assert not self.kept - there

    # --- messages in ----------------------------------------------------------------------------

    values = st.sampled_from([None, 1, 2, 3])
    priorities = st.integers(0, 2)
    keys = st.sampled_from(["a", "b"])

    @rule(value=values, priority=priorities, key=keys)
    def publish(self, value: int | None, priority: int, key: str) -> None:
        before = self.inside(self.queue)
        message = self.message(value, priority, key)
        outcome = self.queue.publish(message)
        self.got()
        repeated = value is not None and value in before.values()
        if outcome & REJECTED:
            assert message.body not in self.inside(self.queue)
        elif repeated:
            assert message.body not in {*self.inside(self.queue), *self.given}
        else:
            self.kept.add(message.body)

    @precondition(lambda self: not self.queue.staging)
    @rule()
    def begin_batch(self) -> None:
        self.queue.begin_batch()

    @precondition(lambda self: self.queue.staging)
    @rule(value=values, priority=priorities, key=keys)
    def stage(self, value: int | None, priority: int, key: str) -> None:
        before = self.inside(self.queue)
        message = self.message(value, priority, key)
        self.queue.stage(message)
        if value is None or value not in before.values():
            self.staged.add(message.body)

    @precondition(lambda self: self.queue.staging)
    @rule(roll_back=st.booleans())
    def end_batch(self, roll_back: bool) -> None:
        if roll_back:
            self.queue.roll_back_batch()
        else:
            self.queue.commit_batch()
            self.kept |= self.staged
        self.staged.clear()

    # --- messages out ---------------------------------------------------------------------------

    @precondition(lambda self: self.taker is None)
    @rule(no_ack=st.booleans(), credit=st.integers(1, 3))
    def consume(self, no_ack: bool, credit: int) -> None:
        self.taker = Taker(self.queue, credit=credit, no_ack=no_ack and not self.keyed)
        self.queue.add_consumer(self.taker)

    @precondition(lambda self: self.taker is not None)
    @rule()
    def cancel(self) -> None:
        self.got()
        self.queue.remove_consumer(self.taker)
        self.taker = None

    @rule()
    def get(self) -> None:
        one = self.queue.get()
        if one is not None:
            self.given.add(one[0].body)
            self.out.append(one[1])

    @precondition(lambda self: self.out)
    @rule(
        which=st.integers(0, 9),
        how=st.sampled_from(["settle", "requeue", "requeue_returned", "reject", "time_out"]),
    )
    def settle(self, which: int, how: str) -> None:
        position = self.out.pop(which % len(self.out))
        getattr(self.queue, how)(position)
        self.queue.drain()

    @rule(count=st.integers(1, 3))
    def claim(self, count: int) -> None:
        before = self.inside(self.queue)
        if self.broker.leases.claim(self.group, count, 0, HOLDER) is not None:
            self.given |= set(before)

    @precondition(lambda self: self.group.claims)
    @rule(commit=st.booleans())
    def end_claim(self, commit: bool) -> None:
        number = next(iter(self.group.claims))
        if commit:
            self.broker.leases.commit(self.group, number, HOLDER)
        else:
            self.broker.leases.release(self.group, number, HOLDER)
        self.queue.drain()

    @rule()
    def purge(self) -> None:
        before = self.inside(self.queue)
        self.queue.purge()
        self.given |= set(before)

    # --- time -----------------------------------------------------------------------------------

    @rule(ms=st.integers(0, 6))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        self.broker.timers.run()
        self.store.finish(self.store.begin())
        self.broker.committed()
        self.queue.tick()


TestAcknowledged = Acknowledged.TestCase
TestAcknowledged.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
