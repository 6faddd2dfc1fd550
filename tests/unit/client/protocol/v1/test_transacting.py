"""Local transactions over 1.0: the coordinator, and what belongs to a transaction."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.client.errors import ChannelClosed, ClientClosed, PublishNacked
from harebell.client.protocol.v1.session import CoreSession1
from harebell.wire.v1 import composites as c
from harebell.wire.v1.performatives import composite_of
from tests.unit.client.protocol.v1.broker import Broker
from tests.unit.client.protocol.v1.test_publishing import FULL, outcome, publish
from tests.unit.client.protocol.v1.test_receiving import Consumer


class Coordinator:
    """A broker with a session in transactions."""

    def __init__(self) -> None:
        self.broker = Broker()
        self.session: CoreSession1 = self.broker.session(confirms=False)
        self.begun = self.session.select_transactions()

    def orders(self) -> list[Any]:
        """What the client has told the coordinator since the last time."""
        found = []
        for transfer, sections in self.broker.messages():
            order = composite_of(sections[0].value)
            found.append((transfer.delivery_id, order))
        return found

    def declared(self, number: int, txn_id: bytes) -> None:
        """Answer a declare."""
        self.broker.say(outcome(number, c.Declared(txn_id=txn_id)))


def begun() -> Coordinator:
    """A session whose first transaction is there."""
    coordinator = Coordinator()
    assert coordinator.orders() == [(0, c.Declare())]
    coordinator.declared(0, b"t1")
    coordinator.begun.value()
    return coordinator


def test_a_transaction_is_declared_at_the_coordinator() -> None:
    coordinator = Coordinator()
    (attach,) = coordinator.broker.taken(c.Attach)
    assert attach.target == c.Coordinator(capabilities=("amqp:local-transactions",))
    assert not coordinator.begun.done
    coordinator.declared(0, b"t1")
    coordinator.begun.value()


def test_publishes_are_committed_when_the_broker_has_them_and_the_next_one_begins() -> None:
    coordinator = begun()
    broker, session = coordinator.broker, coordinator.session
    publish(session, b"both").value()
    ((transfer, _),) = broker.messages()
    assert (transfer.settled, transfer.state) == (False, c.TransactionalState(txn_id=b"t1"))
    commit = session.commit()
    assert coordinator.orders() == []
    provisional = c.TransactionalState(txn_id=b"t1", outcome=c.Accepted())
    broker.say(outcome(1, provisional))
    assert coordinator.orders() == [(2, c.Discharge(txn_id=b"t1")), (3, c.Declare())]
    broker.say(outcome(2, c.Accepted()))
    assert not commit.done
    coordinator.declared(3, b"t2")
    commit.value()
    publish(session)
    ((transfer, _),) = broker.messages()
    assert transfer.state.txn_id == b"t2"


def test_a_rollback_fails_the_transaction() -> None:
    coordinator = begun()
    rollback = coordinator.session.rollback()
    assert coordinator.orders() == [(1, c.Discharge(txn_id=b"t1", fail=True)), (2, c.Declare())]
    coordinator.broker.say(outcome(1, c.Accepted()))
    coordinator.declared(2, b"t2")
    rollback.value()


def test_a_refused_publish_fails_the_commit() -> None:
    coordinator = begun()
    publish(coordinator.session)
    coordinator.broker.messages()
    commit = coordinator.session.commit()
    rejected = c.TransactionalState(txn_id=b"t1", outcome=c.Rejected(error=FULL))
    coordinator.broker.say(outcome(1, rejected))
    assert coordinator.orders()[0] == (2, c.Discharge(txn_id=b"t1", fail=True))
    coordinator.broker.say(outcome(2, c.Accepted()))
    coordinator.declared(3, b"t2")
    with pytest.raises(PublishNacked, match="is full"):
        commit.value()


def test_an_acknowledgement_counts_with_the_commit() -> None:
    coordinator = begun()
    broker, session = coordinator.broker, coordinator.session
    Consumer(session, 1)
    broker.deliver(11, 0)
    broker.taken(c.Flow)
    session.ack(1)
    (provisional,) = broker.taken(c.Disposition)
    state = c.TransactionalState(txn_id=b"t1", outcome=c.Accepted())
    assert (provisional.settled, provisional.state) == (False, state)
    assert broker.taken(c.Flow) == [], "it still takes a place of the prefetch"
    commit = session.commit()
    broker.settle()
    broker.say(outcome(1, c.Accepted()))
    coordinator.declared(2, b"t2")
    commit.value()
    (settled,) = broker.taken(c.Disposition)
    assert (settled.first, settled.settled) == (0, True)
    assert [flow.link_credit for flow in broker.taken(c.Flow)] == [1]


def test_an_acknowledgement_that_is_rolled_back_can_be_made_again() -> None:
    coordinator = begun()
    broker, session = coordinator.broker, coordinator.session
    Consumer(session, 2)
    broker.deliver(11, 0)
    broker.deliver(11, 1)
    session.ack(1)
    session.rollback()
    broker.settle()
    broker.say(outcome(1, c.Accepted()))
    coordinator.declared(2, b"t2")
    broker.taken(c.Disposition)
    session.ack(2, multiple=True)
    (again,) = broker.taken(c.Disposition)
    assert (again.first, again.last, again.state.txn_id) == (0, 1, b"t2")


def test_a_broker_without_transactions_says_so() -> None:
    broker = Broker()
    broker.refuses[None] = c.Error(
        condition="amqp:not-implemented", description="Transactions not supported"
    )
    session = broker.session(confirms=False)
    begun = session.select_transactions()
    broker.settle()
    with pytest.raises(ChannelClosed, match="Transactions not supported"):
        begun.value()
    with pytest.raises(ClientClosed, match="no transaction"):
        publish(session)


def test_a_coordinator_that_ends_fails_the_commit() -> None:
    coordinator = begun()
    commit = coordinator.session.commit()
    error = c.Error(condition="amqp:transaction:timeout", description="too slow")
    coordinator.broker.say(c.Detach(handle=10, closed=True, error=error))
    with pytest.raises(ChannelClosed, match="too slow"):
        commit.value()
