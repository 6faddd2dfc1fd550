"""Where a prepared branch publishes that is no queue of the vhost's list."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.bcc import BccMessage
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.exchange.delayed import DelayedExchange
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue
from harebell.model.xa.states import Status
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.model.memory import HandStore
from tests.unit.model.things import Taker, rest
from tests.unit.model.xa.xa_world import TX, Session, XaWorld


def properties(**headers: Any) -> Any:
    return parse_properties(encode_properties(BasicProperties(headers=headers, delivery_mode=2)))


class Delaying(XaWorld):
    """With an exchange that delays, and two queues behind it."""

    def __init__(self) -> None:
        gauge = Gauge()
        self.clock = Clock(1_700_000_000_000)
        self.broker = Broker(HandStore(gauge), gauge, EDITOR.headers_of, EDITOR, self.clock)
        self.branches = self.broker.branches
        self.vhost = self.broker.vhosts["/"]
        found = self.vhost.declare_exchange(
            "later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"}
        )
        assert isinstance(found, DelayedExchange)
        self.exchange = found
        self.seen, self.blind = self.queue("seen"), self.queue("blind")
        for queue in (self.seen, self.blind):
            self.vhost.bind("later", queue, queue.name)

    def branch(self, *messages: Message) -> None:
        session = Session(self)
        session.start(TX)
        for each in messages:
            found = self.vhost.router.route(self.exchange, each)
            session.work_on().publish(each, tuple(found), 0)
        session.end(TX)

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        self.broker.timers.run()


@pytest.mark.parametrize("prepared", [False, True])
def test_a_delayed_message_of_a_branch_waits_from_the_commit_on(prepared: bool) -> None:
    world = Delaying()
    delayed = properties(**{"x-delay": 1_000})
    world.branch(
        Message("later", "seen", delayed, b"late"), Message("later", "seen", properties(), b"now")
    )
    if prepared:
        assert world.prepare() is Status.OK
        world.pass_ms(2_000)
    assert (world.exchange.delayed, world.seen.ready_count()) == (0, 0)
    assert world.commit(one_phase=not prepared) is Status.OK
    assert world.exchange.delayed == 1
    assert rest(world.seen) == [b"now"]
    world.pass_ms(1_000)
    assert rest(world.seen) == [b"late"]


@pytest.mark.parametrize("prepared", [False, True])
def test_blind_keys_outlast_the_branch_and_the_delay(prepared: bool) -> None:
    world = Delaying()
    whole = properties(**{"x-delay": 1_000, "BCC": ["blind"]})
    seen = properties(**{"x-delay": 1_000})
    world.branch(BccMessage(Message("later", "seen", whole, b"both"), seen, whole))
    if prepared:
        world.prepare()
    world.commit(one_phase=not prepared)
    world.pass_ms(1_000)
    assert rest(world.seen) == [b"both"]
    assert rest(world.blind) == [b"both"]


def test_a_prepared_message_for_an_exchange_that_is_gone_by_then_is_dropped() -> None:
    world = Delaying()
    world.branch(Message("later", "seen", properties(**{"x-delay": 1_000}), b"late"))
    world.prepare()
    world.vhost.delete_exchange("later")
    assert world.commit() is Status.OK
    world.pass_ms(1_000)
    assert rest(world.seen) == []


def test_a_reply_reaches_the_requester_that_is_still_there() -> None:
    world = XaWorld()
    requester = ReplyQueue(REPLY_PREFIX + "x", "/", world.vhost.router.replies)
    taker = Taker(requester)
    requester.add_consumer(taker)
    gone = ReplyQueue(REPLY_PREFIX + "y", "/", world.vhost.router.replies)
    session = world.session()
    session.start(TX)
    session.publish(gone, b"to nobody")
    session.publish(requester, b"reply")
    session.end(TX)
    world.prepare()
    assert world.commit() is Status.OK
    assert taker.bodies == [b"reply"]
