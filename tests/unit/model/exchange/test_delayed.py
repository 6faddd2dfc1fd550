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
from harebell.model.limits import DELAYED_AGAIN_MAX_MS, DELAYED_AGAIN_MIN_MS
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

    def publish_with(self, body: bytes, **properties: Any) -> None:
        raw = parse_properties(encode_properties(BasicProperties(**properties)))
        sent = Message("later", "k", raw, body)
        for queue in self.vhost.router.route(self.exchange, sent):
            queue.publish(sent)

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


def test_due_messages_are_sent_on_while_the_budget_lasts() -> None:
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


@pytest.mark.parametrize("expiration", ["abc", "", "-1", "1.5", "9" * 200, "\u0661", " 1"])
def test_a_message_with_an_invalid_expiration_is_passed_on_without_one(expiration: str) -> None:
    here = Here()
    here.publish_with(b"bad", headers={"x-delay": 10}, expiration=expiration)
    here.publish(b"good", 10)
    here.publish(b"later", 20)
    here.pass_ms(10)
    here.pass_ms(10)
    found = [here.queue.get()[0] for _ in range(3)]
    assert [each.body for each in found] == [b"bad", b"good", b"later"]
    assert not found[0].due


def test_a_message_that_cannot_be_passed_on_stays_and_stops_no_other() -> None:
    broken = [True]

    def with_headers(message: Message, changes: Any) -> Message:
        if message.body == b"bad" and broken[0]:
            raise ValueError("cannot be encoded")
        return EDITOR.with_headers(message, changes)

    here = Here(Editor(EDITOR.headers_of, with_headers=with_headers))
    told: list[str] = []
    here.broker.failures.report = lambda name, text: told.append(text)
    here.publish(b"bad", 10)
    here.publish(b"good", 10)
    here.pass_ms(10)
    assert here.queue.get()[0].body == b"good"
    assert (here.exchange.delayed, here.logged) == (1, 2)
    here.pass_ms(DELAYED_AGAIN_MIN_MS)
    assert [text.partition("(")[0] for text in told] == [
        "Held._pass_on of 'amq.delayed-later' failed: ValueError: cannot be encoded "
    ]
    assert here.broker.failures.counts == {"Held._pass_on": 2}
    broken[0] = False
    here.pass_ms(DELAYED_AGAIN_MAX_MS)
    assert here.queue.get()[0].body == b"bad"
    here.commit()
    assert (here.exchange.delayed, here.logged) == (0, 0)


def test_a_full_queue_holds_up_its_own_messages_and_no_others() -> None:
    here = Here()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    full = here.vhost.declare_queue("full", durable=True, arguments=arguments)
    here.vhost.bind("later", full, "")
    for body in (b"1", b"2"):
        here.publish(body, 10)
    here.pass_ms(10)
    here.commit()
    assert (full.ready_count(), here.queue.ready_count()) == (1, 2)
    assert (here.exchange.delayed, here.logged) == (1, 1)
    here.pass_ms(DELAYED_AGAIN_MIN_MS)
    assert here.exchange.delayed == 1
    full.settle(full.get()[1])
    here.pass_ms(2 * DELAYED_AGAIN_MIN_MS)
    assert (here.exchange.delayed, here.logged) == (0, 1)
    here.commit()
    assert here.logged == 0
    assert full.get()[0].body == b"2"
    assert here.queue.ready_count() == 2  # it got no second copy


@pytest.mark.parametrize("alone", [True, False])
def test_a_message_that_is_tried_again_is_in_a_history_once(alone: bool) -> None:
    here = Here()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    full = here.vhost.declare_queue("full", arguments=arguments)
    full.publish(Message("", "full", Properties(b"\0\0"), b"in the way"))
    history = here.vhost.declare_exchange("history", "x-recent-history")
    here.vhost.bind("later", history, "")
    here.vhost.bind("later", full, "")
    if alone:
        here.vhost.unbind("later", here.queue, "")
    here.publish(b"1", 10)
    here.pass_ms(10)
    for _ in range(3):
        here.pass_ms(DELAYED_AGAIN_MAX_MS)
    assert here.exchange.delayed == 1
    full.settle(full.get()[1])
    here.pass_ms(DELAYED_AGAIN_MAX_MS)
    assert here.exchange.delayed == 0
    late = here.vhost.declare_queue("late")
    here.vhost.bind("history", late, "")
    assert late.ready_count() == 1


def test_a_refused_message_that_is_dead_lettered_does_not_wait() -> None:
    here = Here()
    dead = here.vhost.declare_queue("dead", durable=True)
    arguments = {
        "x-max-length": 0,
        "x-overflow": "reject-publish-dlx",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    here.vhost.bind("later", here.vhost.declare_queue("none", arguments=arguments), "")
    here.publish(b"m", 10)
    here.pass_ms(10)
    assert (here.exchange.delayed, dead.ready_count()) == (0, 1)


def test_a_delay_is_no_time_to_live_in_another_queue_of_the_same_message() -> None:
    here = Here()
    here.vhost.declare_exchange("all", "fanout")
    queue = here.vhost.declare_queue("now", durable=True)
    here.vhost.bind("all", here.exchange, "")
    here.vhost.bind("all", queue, "")
    properties = BasicProperties(headers={"x-delay": 10})
    sent = Message("all", "k", parse_properties(encode_properties(properties)), b"m")
    found = here.vhost.router.route(here.vhost.exchanges["all"], sent)
    for each in sorted(found, key=lambda each: each is queue):
        each.publish(sent)
    here.pass_ms(10)
    assert (queue.ready_count(), here.queue.ready_count()) == (1, 1)
