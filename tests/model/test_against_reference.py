"""The broker and the reference do the same, whatever clients ask for."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from harebell.base import impl
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.disk_driver import DiskDriver
from tests.model.driver import Driver
from tests.model.peer import call, publish
from tests.model.things import Exchange, Message
from tests.model.topology import SELECTOR

# Uncompiled it is the same code, and takes longer.
_USUAL = "200" if impl.chosen() == impl.NATIVE else "60"
EXAMPLES = int(os.environ.get("HAREBELL_MODEL_EXAMPLES", _USUAL))
SOAK_EXAMPLES = int(os.environ.get("HAREBELL_MODEL_SOAK_EXAMPLES", "3000"))
STEPS = 50

PLACES = st.tuples(st.integers(0, 2), st.integers(1, 2))
OWN_EXCHANGES = ("x0", "x1", "x2")
EXCHANGES = st.sampled_from((*OWN_EXCHANGES, *OWN_EXCHANGES, "amq.topic", "amq.fanout", ""))
QUEUES = st.sampled_from(("q0", "q1", "q2"))
KEYS = st.sampled_from(("q0", "q1", "a", "a.b", "a.b.c", "", "a."))
PATTERNS = st.sampled_from(("q0", "a", "a.b", "a.*", "*.b", "#", "a.#", "#.c", "*", "#.b.#", ""))
ARGUMENTS = st.sampled_from(
    (
        {},
        {"h": 1},
        {"x-match": "any", "h": 1, "i": "s"},
        {"x-match": "all", "h": None, "x-y": 1},
        SELECTOR,
    )
)
HEADERS = st.sampled_from(({}, {}, {"h": 1}, {"h": True}, {"i": "s"}, {"h": 1, "i": "s"}))
TAGS = st.sampled_from(("c0", "c1", "c2"))
BITS = st.booleans()
SELDOM = st.integers(0, 7).map(lambda n: n == 0)


class SameAsReference(RuleBasedStateMachine):
    """Any operations, from three connections with two channels each."""

    durable = False

    def __init__(self) -> None:
        super().__init__()
        self.driver = self.make_driver()
        self.bodies = 0

    def make_driver(self) -> Driver:
        return Driver()

    def run(self, at: tuple[int, int], method: m.Method, operation: str, *rest: Any) -> Any:
        return self.driver.run(at, call(at[1], method), operation, *rest)

    @initialize()
    def some_topology(self) -> None:
        at = (0, 1)
        self.driver.ensure(at)
        for name in ("q0", "q1"):
            declare = m.QueueDeclare(queue=name, durable=self.durable)
            self.run(at, declare, "declare_queue", name, self.durable, False, False)
        for name, kind in zip(OWN_EXCHANGES, ("topic", "direct", "headers"), strict=True):
            wanted = Exchange(kind, self.durable)
            method = m.ExchangeDeclare(exchange=name, type=kind, durable=self.durable)
            self.run(at, method, "declare_exchange", name, wanted)

    # --- topology -------------------------------------------------------------------------------

    @rule(
        at=PLACES,
        name=EXCHANGES,
        kind=st.sampled_from(("direct", "fanout", "topic", "headers")),
        durable=SELDOM,
        auto_delete=SELDOM,
        internal=SELDOM,
        alternate=st.one_of(st.none(), EXCHANGES),
    )
    def declare_exchange(
        self,
        at: tuple[int, int],
        name: str,
        kind: str,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        alternate: str | None,
    ) -> None:
        self.driver.ensure(at)
        arguments = {} if alternate is None else {"alternate-exchange": alternate}
        method = m.ExchangeDeclare(
            exchange=name,
            type=kind,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=arguments,
        )
        wanted = Exchange(kind, durable, auto_delete, internal, alternate)
        self.run(at, method, "declare_exchange", name, wanted)

    @rule(at=PLACES, name=EXCHANGES, if_unused=BITS)
    def delete_exchange(self, at: tuple[int, int], name: str, if_unused: bool) -> None:
        self.driver.ensure(at)
        method = m.ExchangeDelete(exchange=name, if_unused=if_unused)
        self.run(at, method, "delete_exchange", name, if_unused)

    @rule(at=PLACES, name=EXCHANGES)
    def check_exchange(self, at: tuple[int, int], name: str) -> None:
        self.driver.ensure(at)
        method = m.ExchangeDeclare(exchange=name, type="direct", passive=True)
        self.run(at, method, "check_exchange", name)

    @rule(at=PLACES, name=QUEUES, durable=SELDOM, exclusive=SELDOM, auto_delete=SELDOM)
    def declare_queue(
        self, at: tuple[int, int], name: str, durable: bool, exclusive: bool, auto_delete: bool
    ) -> None:
        self.driver.ensure(at)
        durable ^= self.durable
        method = m.QueueDeclare(
            queue=name, durable=durable, exclusive=exclusive, auto_delete=auto_delete
        )
        self.run(at, method, "declare_queue", name, durable, exclusive, auto_delete)

    @rule(at=PLACES, name=QUEUES)
    def check_queue(self, at: tuple[int, int], name: str) -> None:
        self.driver.ensure(at)
        self.run(at, m.QueueDeclare(queue=name, passive=True), "check_queue", name)

    @rule(at=PLACES, queue=QUEUES, source=EXCHANGES, key=PATTERNS, arguments=ARGUMENTS, undo=SELDOM)
    def bind_queue(
        self,
        at: tuple[int, int],
        queue: str,
        source: str,
        key: str,
        arguments: dict[str, Any],
        undo: bool,
    ) -> None:
        self.driver.ensure(at)
        kind, operation = (m.QueueUnbind, "unbind_queue") if undo else (m.QueueBind, "bind_queue")
        method = kind(queue=queue, exchange=source, routing_key=key, arguments=arguments)
        self.run(at, method, operation, queue, source, key, arguments)

    @rule(at=PLACES, to=EXCHANGES, source=EXCHANGES, key=PATTERNS, arguments=ARGUMENTS, undo=SELDOM)
    def bind_exchange(
        self,
        at: tuple[int, int],
        to: str,
        source: str,
        key: str,
        arguments: dict[str, Any],
        undo: bool,
    ) -> None:
        self.driver.ensure(at)
        kind, operation = (
            (m.ExchangeUnbind, "unbind_exchange") if undo else (m.ExchangeBind, "bind_exchange")
        )
        method = kind(destination=to, source=source, routing_key=key, arguments=arguments)
        self.run(at, method, operation, to, source, key, arguments)

    @rule(at=PLACES, name=QUEUES)
    def purge(self, at: tuple[int, int], name: str) -> None:
        self.driver.ensure(at)
        self.run(at, m.QueuePurge(queue=name), "purge", name)

    @rule(at=PLACES, name=QUEUES, if_unused=BITS, if_empty=BITS)
    def delete_queue(self, at: tuple[int, int], name: str, if_unused: bool, if_empty: bool) -> None:
        self.driver.ensure(at)
        method = m.QueueDelete(queue=name, if_unused=if_unused, if_empty=if_empty)
        self.run(at, method, "delete_queue", name, if_unused, if_empty)

    # --- messages -------------------------------------------------------------------------------

    def _publish(
        self, at: tuple[int, int], exchange: str, key: str, headers: dict[str, Any], must: bool
    ) -> None:
        self.driver.ensure(at)
        self.bodies += 1
        body = b"%d" % self.bodies
        persistent = self.bodies % 4 > 0
        mode = 2 if persistent else None
        properties = BasicProperties(headers=headers or None, delivery_mode=mode)
        octets = publish(at[1], exchange, key, body, mandatory=must, properties=properties)
        message = Message(exchange, key, body, headers, persistent)
        self.driver.run(at, octets, "publish", message, must)

    @rule(at=PLACES, exchange=EXCHANGES, key=KEYS, headers=HEADERS, must=BITS)
    def publish(
        self, at: tuple[int, int], exchange: str, key: str, headers: dict[str, Any], must: bool
    ) -> None:
        self._publish(at, exchange, key, headers, must)

    @rule(at=PLACES, queue=QUEUES, count=st.integers(1, 5))
    def publish_to_queue(self, at: tuple[int, int], queue: str, count: int) -> None:
        for _ in range(count):
            self._publish(at, "", queue, {}, True)

    @rule(at=PLACES, name=QUEUES, no_ack=BITS)
    def get(self, at: tuple[int, int], name: str, no_ack: bool) -> None:
        self.driver.ensure(at)
        self.run(at, m.BasicGet(queue=name, no_ack=no_ack), "get", name, no_ack)

    @rule(at=PLACES, name=QUEUES, count=st.integers(2, 4))
    def get_some_and_give_them_back(self, at: tuple[int, int], name: str, count: int) -> None:
        """What comes back lies where it was: the first is the first again."""
        for _ in range(count):
            self.get(at, name, False)
        self.settle(at, 0, True, "nack", True)
        self.get(at, name, False)

    @rule(
        at=PLACES,
        name=QUEUES,
        tag=TAGS,
        no_ack=BITS,
        exclusive=SELDOM,
        priority=st.sampled_from((0, 0, 0, 5, -1)),
    )
    def consume(
        self,
        at: tuple[int, int],
        name: str,
        tag: str,
        no_ack: bool,
        exclusive: bool,
        priority: int,
    ) -> None:
        self.driver.ensure(at)
        method = m.BasicConsume(
            queue=name,
            consumer_tag=tag,
            no_ack=no_ack,
            exclusive=exclusive,
            arguments={"x-priority": priority} if priority else {},
        )
        events = self.run(at, method, "consume", name, tag, no_ack, exclusive, priority)
        told = [e.method.NAME for e in events if getattr(e.method, "consumer_tag", "") == tag]
        if "basic.deliver" in told:
            assert told[0] == "basic.consume-ok", "a delivery came before consume-ok"

    @rule(at=PLACES, tag=TAGS)
    def cancel(self, at: tuple[int, int], tag: str) -> None:
        self.driver.ensure(at)
        self.run(at, m.BasicCancel(consumer_tag=tag), "cancel", tag)

    @rule(at=PLACES, count=st.integers(0, 3), whole_channel=SELDOM)
    def qos(self, at: tuple[int, int], count: int, whole_channel: bool) -> None:
        self.driver.ensure(at)
        if whole_channel and self.driver.reference.channels[at].transaction is not None:
            return
        method = m.BasicQos(prefetch_count=count, global_=whole_channel)
        self.run(at, method, "qos", count, whole_channel)

    @rule(
        at=PLACES,
        pick=st.integers(0, 20),
        multiple=BITS,
        kind=st.sampled_from(("ack", "ack", "nack", "reject")),
        requeue=BITS,
    )
    def settle(
        self, at: tuple[int, int], pick: int, multiple: bool, kind: str, requeue: bool
    ) -> None:
        self.driver.ensure(at)
        tags = sorted(self.driver.reference.channels[at].unacked)
        # Mostly a tag that is out; now and then "all", or one that is not.
        tag = 0 if pick == 0 else 99_999 if pick == 20 or not tags else tags[pick % len(tags)]
        if pick == 20 and tags:
            return
        if tag == 99_999 and pick % 5:
            return
        method: m.Method
        if kind == "ack":
            method = m.BasicAck(tag, multiple)
        elif kind == "nack":
            method = m.BasicNack(tag, multiple, requeue)
        else:
            multiple = False
            method = m.BasicReject(tag, requeue)
        self.run(at, method, "settle", tag, multiple, kind == "ack", requeue)

    @rule(at=PLACES, requeue=st.sampled_from((True, True, True, False)))
    def recover(self, at: tuple[int, int], requeue: bool) -> None:
        self.driver.ensure(at)
        self.run(at, m.BasicRecover(requeue=requeue), "recover", requeue)

    # --- confirms, transactions, ends -----------------------------------------------------------

    @rule(at=PLACES)
    def confirm(self, at: tuple[int, int]) -> None:
        self.driver.ensure(at)
        self.run(at, m.ConfirmSelect(), "confirm")

    @rule(at=st.just((0, 2)))
    def select(self, at: tuple[int, int]) -> None:
        self.driver.ensure(at)
        if not self.driver.reference.channels[at].prefetch_global:
            self.run(at, m.TxSelect(), "select")

    @rule(at=st.just((0, 2)))
    def commit(self, at: tuple[int, int]) -> None:
        self.driver.ensure(at)
        self.run(at, m.TxCommit(), "commit")

    @rule(at=st.just((0, 2)))
    def rollback(self, at: tuple[int, int]) -> None:
        self.driver.ensure(at)
        self.run(at, m.TxRollback(), "rollback")

    @rule(at=PLACES)
    def close_channel(self, at: tuple[int, int]) -> None:
        self.driver.ensure(at)
        self.run(at, m.ChannelClose(reply_code=200), "close_channel")

    @rule(number=st.integers(0, 2))
    def vanish(self, number: int) -> None:
        if number in self.driver.links:
            self.driver.vanish(number)

    @invariant()
    def both_have_the_same_state(self) -> None:
        self.driver.check_state()

    def teardown(self) -> None:
        self.driver.finish()


def _settings(examples: int, *, same_every_time: bool) -> settings:
    return settings(
        derandomize=same_every_time,
        database=None,
        max_examples=examples,
        stateful_step_count=STEPS,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        print_blob=True,
    )


class SameAfterRestarts(SameAsReference):
    """The same over a disk; the broker ends and another goes on, again and again."""

    durable = True

    def make_driver(self) -> DiskDriver:
        return DiskDriver()

    @rule(clean=BITS, at=PLACES, name=QUEUES)
    def restart(self, clean: bool, at: tuple[int, int], name: str) -> None:
        assert isinstance(self.driver, DiskDriver)
        self.driver.restart(clean=clean)
        self.check_queue(at, name)


@pytest.mark.timeout(1_800)
def test_a_broker_on_a_disk_goes_on_after_restarts_as_the_reference_says() -> None:
    run_state_machine_as_test(SameAfterRestarts, settings=_settings(EXAMPLES, same_every_time=True))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_broker_on_a_disk_does_what_the_reference_says_for_a_long_time() -> None:
    run_state_machine_as_test(
        SameAfterRestarts, settings=_settings(SOAK_EXAMPLES, same_every_time=False)
    )


@pytest.mark.timeout(1_800)
def test_the_broker_does_what_the_reference_says() -> None:
    run_state_machine_as_test(SameAsReference, settings=_settings(EXAMPLES, same_every_time=True))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_the_broker_does_what_the_reference_says_for_a_long_time() -> None:
    run_state_machine_as_test(
        SameAsReference, settings=_settings(SOAK_EXAMPLES, same_every_time=False)
    )
