"""Publishes over 1.0: credit, windows, order, and what each outcome means to the program."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.limits import CLOSE_TIMEOUT_SECONDS
from harebell.client.errors import (
    ClientClosed,
    ConnectionLost,
    NotFound,
    PublishNacked,
    PublishReturned,
)
from harebell.client.limits import LINKS_FOR_ROUTES
from harebell.client.message import outgoing
from harebell.client.protocol.confirms import MANDATORY, Confirm
from harebell.client.protocol.v1.session import CoreSession1
from harebell.wire.v1 import composites as c
from tests.unit.client.protocol.v1.broker import Broker, octets, sections

GONE = c.Error(condition="amqp:not-found", description="no exchange 'x'")
FULL = c.Error(condition="amqp:resource-limit-exceeded", description="queue 'q' is full")
RABBITMQ_3 = c.Open(
    container_id="b", max_frame_size=4096, properties={"product": "RabbitMQ", "version": "3.10.8"}
)


def publish(
    session: CoreSession1, body: bytes = b"x", exchange: str = "", key: str = "q", **more: Any
) -> Confirm:
    """Publish one message."""
    flags = MANDATORY if more.pop("mandatory", False) else 0
    return session.publish_one(outgoing(body, exchange, key, more), flags)


def outcome(first: int, state: object, last: int | None = None) -> c.Disposition:
    """What the broker says of our deliveries."""
    return c.Disposition(role=True, first=first, last=last, settled=True, state=state)


def test_an_accepted_message_is_confirmed() -> None:
    broker = Broker()
    session = broker.session()
    confirm = publish(session, b"hello", content_type="a/b", persistent=True)
    (attach,) = broker.taken(c.Attach)
    assert (attach.target.address, attach.snd_settle_mode, attach.role) == ("/queues/q", 0, False)
    ((transfer, found),) = broker.messages()
    assert (transfer.delivery_id, transfer.settled, transfer.more) == (0, False, False)
    assert [section.descriptor for section in found] == [0x70, 0x73, 0x75]
    assert found[-1].value == b"hello"
    assert not confirm.done
    broker.say(outcome(0, c.Accepted()))
    confirm.value()


def test_outcomes_of_a_range_confirm_all_of_it_and_of_no_other() -> None:
    broker = Broker()
    session = broker.session()
    confirms = [publish(session) for _ in range(5)]
    broker.say(outcome(1, c.Accepted(), last=3))
    assert [confirm.done for confirm in confirms] == [False, True, True, True, False]
    broker.say(outcome(0, c.Accepted(), last=(1 << 31) - 1))
    assert all(confirm.done for confirm in confirms)


def test_a_released_message_was_unroutable() -> None:
    broker = Broker()
    session = broker.session()
    dropped, returned = publish(session), publish(session, b"back", mandatory=True)
    broker.say(outcome(0, c.Released(), last=1))
    dropped.value()
    with pytest.raises(PublishReturned, match="312 NO_ROUTE") as caught:
        returned.value()
    assert caught.value.message.body == b"back"


def test_a_rejected_message_was_not_taken_and_the_error_says_why() -> None:
    broker = Broker()
    session = broker.session()
    first, second = publish(session), publish(session)
    broker.say(outcome(0, c.Rejected(error=FULL)), outcome(1, c.Modified()))
    with pytest.raises(PublishNacked, match="queue 'q' is full"):
        first.value()
    with pytest.raises(PublishNacked, match="number 2"):
        second.value()


def test_an_outcome_that_is_not_settled_is_settled_by_us() -> None:
    broker = Broker()
    session = broker.session()
    confirm = publish(session)
    broker.say(c.Disposition(role=True, first=0, state=c.Accepted()))
    confirm.value()
    (settled,) = broker.taken(c.Disposition)
    assert (settled.role, settled.first, settled.settled) == (False, 0, True)


def test_without_confirms_messages_are_settled_and_returned_ones_are_reported() -> None:
    broker = Broker()
    session = broker.session(confirms=False)
    returned: list[PublishReturned] = []
    session.on_return = returned.append
    publish(session).value()
    publish(session, b"back", mandatory=True).value()
    assert [transfer.settled for transfer, _ in broker.messages()] == [True, False]
    broker.say(outcome(1, c.Released()))
    assert [error.message.body for error in returned] == [b"back"]


def test_an_exchange_that_does_not_exist_fails_the_publish_alone() -> None:
    broker = Broker()
    broker.refuses["/exchanges/x/k"] = GONE
    session = broker.session()
    lost, fine = publish(session, exchange="x", key="k"), publish(session)
    broker.settle()
    with pytest.raises(NotFound, match="no exchange 'x'"):
        lost.value()
    assert len(broker.messages()) == 1
    broker.say(outcome(0, c.Accepted()))
    fine.value()


def test_a_queue_that_does_not_exist_is_no_route() -> None:
    broker = Broker()
    broker.refuses["/queues/q"] = GONE
    session = broker.session()
    dropped, returned = publish(session), publish(session, mandatory=True)
    broker.settle()
    dropped.value()
    with pytest.raises(PublishReturned):
        returned.value()
    del broker.refuses["/queues/q"]
    publish(session)
    assert len(broker.messages()) == 1


def test_without_confirms_a_missing_exchange_ends_the_channel() -> None:
    broker = Broker()
    broker.refuses["/exchanges/x/k"] = GONE
    session = broker.session(confirms=False)
    publish(session, exchange="x", key="k")
    broker.settle()
    with pytest.raises(NotFound):
        session.check_open()
    assert len(broker.taken(c.End)) == 1


def test_a_link_that_the_broker_ends_fails_what_waits_for_its_outcome() -> None:
    broker = Broker()
    session = broker.session()
    confirm = publish(session, exchange="x", key="k")
    broker.settle()
    broker.say(c.Detach(handle=10, closed=True, error=GONE))
    with pytest.raises(NotFound):
        confirm.value()


def test_publishes_wait_for_credit_in_the_order_of_the_program() -> None:
    broker = Broker(credit=0)
    session = broker.session()
    flows: list[bool] = []
    session.on_flow = flows.append
    publish(session, b"1", key="a")
    publish(session, b"2", key="b")
    publish(session, b"3", key="a")
    assert broker.messages() == []
    assert flows == [False]
    broker.say(broker.flow(11, 5))
    assert broker.messages() == [], "the message for a is before it"
    broker.say(broker.flow(10, 1))
    assert [found[-1].value for _, found in broker.messages()] == [b"1", b"2"]
    broker.say(broker.flow(10, 2, 1))
    assert [found[-1].value for _, found in broker.messages()] == [b"3"]
    assert flows == [False, True]


def test_a_window_of_the_broker_counts_frames_also_within_a_message() -> None:
    broker = Broker()
    broker.window = 2
    session = broker.session()
    confirm = publish(session, b"x" * 10_000)
    publish(session, b"after")
    broker.settle()
    first = [each for each in broker.heard if isinstance(each[0], c.Transfer)]
    assert [transfer.more for transfer, _ in first] == [True, True]
    broker.taken(c.Transfer)
    broker.say(broker.flow(10, 50, 1, taken=2))
    rest = [each for each in broker.heard if isinstance(each[0], c.Transfer)]
    assert [transfer.more for transfer, _ in rest] == [False, False]
    assert (rest[0][0].delivery_id, rest[1][0].delivery_id) == (None, 1)
    payload = b"".join(part for _, part in (*first, rest[0]))
    assert sections(payload)[-1].value == b"x" * 10_000
    broker.say(outcome(0, c.Accepted()))
    confirm.value()


def test_a_window_of_0_blocks_the_publishers() -> None:
    broker = Broker()
    session = broker.session()
    publish(session)
    broker.messages()
    broker.window = 0
    broker.say(broker.flow(10, 50, 1, taken=1))
    assert broker.core.blocked is not None
    publish(session)
    assert broker.messages() == []
    broker.window = 9
    broker.say(broker.flow(10, 50, 1, taken=1))
    assert broker.core.blocked is None
    assert len(broker.messages()) == 1


def test_a_drain_uses_up_the_credit() -> None:
    broker = Broker()
    session = broker.session()
    publish(session)
    broker.messages()
    drain = broker.flow(10, 50, 1, taken=1)
    drain.drain = True
    broker.taken(c.Flow)
    broker.say(drain)
    (flow,) = broker.taken(c.Flow)
    assert (flow.handle, flow.delivery_count, flow.link_credit, flow.drain) == (0, 51, 0, True)
    publish(session)
    assert broker.messages() == []


def test_many_routes_share_the_anonymous_terminus() -> None:
    broker = Broker()
    session = broker.session()
    for number in range(LINKS_FOR_ROUTES + 2):
        publish(session, exchange="x", key=f"k {number}", message_id="m")
    targets = [attach.target.address for attach in broker.taken(c.Attach)]
    assert targets[0] == "/exchanges/x/k%200"
    assert targets[LINKS_FOR_ROUTES:] == [None]
    found = [found for _, found in broker.messages()]
    assert [each[0].value[2:3] for each in found[-3:]] == [
        [], [f"/exchanges/x/k%20{LINKS_FOR_ROUTES}"], [f"/exchanges/x/k%20{LINKS_FOR_ROUTES + 1}"]
    ]  # fmt: skip
    assert found[-1][0].value[0] == "m"


def test_rabbitmq_3_has_its_own_addresses() -> None:
    broker = Broker(opened=RABBITMQ_3)
    session = broker.session()
    publish(session, exchange="a/b", key="k")
    publish(session)
    targets = [attach.target.address for attach in broker.taken(c.Attach)]
    assert targets == ["/exchange/a%2Fb", "/queue"]
    subjects = [found[0].value[3] for _, found in broker.messages()]
    assert subjects == ["k", "q"]


def test_a_close_waits_until_all_is_sent() -> None:
    broker = Broker(credit=0)
    session = broker.session(confirms=False)
    publish(session, b"last").value()
    closed = broker.core.close(0.0)
    assert (broker.taken(c.Close), closed.done) == ([], False)
    broker.say(broker.flow(10, 5))
    assert len(broker.messages()) == 1
    assert closed.done
    with pytest.raises(ClientClosed):
        session.check_open()


def test_a_close_of_a_channel_waits_until_all_is_sent() -> None:
    broker = Broker(credit=0)
    session = broker.session(confirms=False)
    publish(session, b"last").value()
    closed = session.close()
    assert broker.taken(c.End) == []
    broker.say(broker.flow(10, 5))
    kinds = [type(each) for each, _ in broker.heard if isinstance(each, c.Transfer | c.End)]
    assert kinds == [c.Transfer, c.End]
    closed.value()


def test_a_session_that_ends_before_all_is_sent_ends_once() -> None:
    broker = Broker(credit=0)
    session = broker.session(confirms=False)
    publish(session, b"lost").value()
    closed = session.close()
    broker.say(c.End())
    closed.value()
    assert len(broker.taken(c.End)) == 1
    assert not broker.core.finished


def test_a_close_of_a_broker_that_gives_no_credit_ends_by_time() -> None:
    broker = Broker(credit=0)
    publish(broker.session(confirms=False))
    closed = broker.core.close(0.0)
    broker.core.tick(CLOSE_TIMEOUT_SECONDS)
    broker.settle()
    assert closed.done


def test_unconfirmed_publishes_of_a_lost_connection_can_be_repeated() -> None:
    broker = Broker()
    session = broker.session(keep=True)
    confirm = publish(session, b"kept")
    broker.core.eof()
    assert not confirm.done
    ((_, _, message, _),) = session.confirms.take_over()
    assert message.body == b"kept"


def test_unconfirmed_publishes_of_a_lost_connection_fail() -> None:
    broker = Broker()
    confirm = publish(broker.session())
    broker.core.eof()
    with pytest.raises(ConnectionLost):
        confirm.value()


def test_an_outcome_for_what_was_never_sent_changes_nothing() -> None:
    broker = Broker()
    session = broker.session()
    confirm = publish(session)
    broker.core.receive(octets(outcome(7, c.Accepted(), last=900)), 0.0)
    assert not confirm.done
