"""The delaying exchange in memory: how long messages wait, and when they are safe."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.editor import Editor
from harebell.model.exchange.delayed import DelayedExchange, delay_of
from harebell.model.queue.contract import PENDING
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.model.memory import HandStore


@pytest.mark.parametrize(
    ("value", "delay"),
    [
        (1, 1),
        (5_000, 5_000),
        (4_294_967_295, 4_294_967_295),
        (4_294_967_296, 0),
        (0, 0),
        (-5, 0),
        ("250", 250),
        ("-250", 0),
        ("soon", 0),
        ("", 0),
        ("9" * 5_000, 0),
        (7.9, 7),
        (float("nan"), 0),
        (float("inf"), 0),
        (Decimal("8.5"), 8),
        (True, 0),
        (None, 0),
        ([1], 0),
    ],
)
def test_a_delay_is_a_number_of_milliseconds_in_any_form(value: Any, delay: int) -> None:
    assert delay_of({"x-delay": value}) == delay
    assert delay_of({}) == 0


class Here:
    """A broker in memory whose commits happen by hand, with a delaying exchange and a queue."""

    def __init__(self, editor: Editor = EDITOR) -> None:
        self.clock = Clock(1_700_000_000_000)
        gauge = Gauge()
        self.store = HandStore(gauge)
        self.broker = Broker(self.store, gauge, editor.headers_of, editor, self.clock)
        self.vhost = self.broker.vhosts["/"]
        arguments = {"x-delayed-type": "fanout"}
        found = self.vhost.declare_exchange(
            "later", "x-delayed-message", durable=True, arguments=arguments
        )
        assert isinstance(found, DelayedExchange)
        self.exchange = found
        assert found.held is not None
        self.held = found.held
        self.queue = self.vhost.declare_queue("q", durable=True)
        self.vhost.bind("later", self.queue, "")

    def publish(self, body: bytes, delay: int, mode: int = 2) -> int:
        properties = BasicProperties(headers={"x-delay": delay}, delivery_mode=mode)
        raw = parse_properties(encode_properties(properties))
        sent = Message("later", "k", raw, body)
        outcome = 0
        for queue in self.vhost.router.route(self.exchange, sent):
            outcome |= queue.publish(sent)
        return outcome

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        self.broker.timers.run()

    def commit(self) -> None:
        self.store.finish(self.store.begin())
        self.broker.committed()

    @property
    def logged(self) -> int:
        """Messages in the log of the exchange."""
        return self.held._log.live()


def test_a_message_leaves_the_log_when_its_queue_has_it_on_disk() -> None:
    here = Here()
    assert here.publish(b"m", 1_000) == PENDING
    assert here.store.commit.urgent is False  # memory; a log on disk asks for the commit itself
    here.pass_ms(999)
    assert (here.queue.ready_count(), here.exchange.delayed, here.logged) == (0, 1, 1)
    here.pass_ms(1)
    assert (here.queue.ready_count(), here.exchange.delayed, here.logged) == (1, 0, 1)
    assert here.store.commit.urgent
    here.commit()
    assert here.logged == 0


def test_what_is_due_is_sent_on_while_the_budget_lasts() -> None:
    here = Here()
    for number in range(200):
        here.publish(b"%d" % number, 1_000)
    here.clock.advance(1_000)
    turns = 0
    while here.exchange.delayed:
        here.broker.work.begin(500)
        here.broker.timers.run()
        assert here.broker.work.end() < 600
        turns += 1
    assert turns >= 8
    assert here.queue.ready_count() == 200


def test_headers_are_decoded_once_for_a_message_that_waits() -> None:
    decoded: list[bytes] = []

    def headers_of(message: Message) -> Any:
        decoded.append(message.body)
        return EDITOR.headers_of(message)

    here = Here(Editor(headers_of, with_headers=EDITOR.with_headers))
    here.publish(b"m", 1_000)
    assert decoded == [b"m"]
    here.publish(b"other", 2_000)
    here.publish(b"m", 1_000)
    assert decoded == [b"m", b"other", b"m"]
    here.pass_ms(1_000)
    assert (here.queue.ready_count(), here.exchange.delayed) == (2, 1)


def test_a_transient_message_leaves_the_log_at_once_when_its_queue_takes_it() -> None:
    here = Here()
    # It is safe while it waits, as with the plugin.
    assert here.publish(b"m", 1_000, mode=1) == PENDING
    here.pass_ms(1_000)
    assert (here.queue.ready_count(), here.logged) == (1, 0)


def test_a_full_quorum_queue_takes_what_waited_for_it() -> None:
    here = Here()
    arguments = {"x-queue-type": "quorum", "x-max-length": 1, "x-overflow": "reject-publish"}
    full = here.vhost.declare_queue("full", durable=True, arguments=arguments)
    here.vhost.bind("later", full, "")
    for _ in range(4):
        here.publish(b"m", 10)
    here.pass_ms(10)
    assert full.ready_count() == 4


def test_a_commit_that_came_too_early_lets_nothing_go() -> None:
    here = Here()
    here.publish(b"m", 10)
    early = here.store.begin()
    here.pass_ms(10)
    here.store.finish(early)
    here.broker.committed()
    assert here.logged == 1
    here.commit()
    assert here.logged == 0


def test_a_great_many_messages_go_on_in_turns() -> None:
    here = Here()
    for number in range(2_500):
        here.publish(b"%d" % number, 10)
    here.pass_ms(10)
    assert here.queue.ready_count() == 1_000
    here.pass_ms(0)
    here.pass_ms(0)
    assert (here.queue.ready_count(), here.exchange.delayed) == (2_500, 0)
    here.commit()
    assert here.logged == 0


def test_deleting_or_purging_drops_what_waits() -> None:
    here = Here()
    here.publish(b"1", 10)
    here.publish(b"2", 20)
    assert here.held.purge() == 2
    assert (here.logged, here.exchange.delayed) == (0, 0)
    here.publish(b"3", 10)
    here.vhost.delete_exchange("later")
    here.pass_ms(1_000)
    assert here.queue.ready_count() == 0
    assert here.held.deleted


def test_a_message_waits_no_longer_than_at_first_when_the_clock_was_set_back() -> None:
    here = Here()
    log = here.held._log
    sent = Message("later", "k", Properties(b"\0\0"), b"m")
    sent.timestamp = here.clock.ms + 86_400_000
    sent.due = sent.timestamp + 500
    log.append(sent)
    here.held._restore()
    assert here.exchange.held is not None
    here.pass_ms(499)
    assert here.queue.ready_count() == 0
    here.pass_ms(1)
    assert here.queue.ready_count() == 1
