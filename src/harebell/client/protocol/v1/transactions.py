"""Local transactions of a session: a link to the coordinator of the broker.

    declare -->                    <-- declared (txn-id)
    transfer (state: txn-id) -->   <-- disposition (state: txn-id, outcome)
    disposition (state: txn-id, outcome) -->
    discharge (txn-id) -->         <-- accepted

A channel in transactions always has one: the next is declared with each discharge.
"""

from __future__ import annotations

from typing import Any

from harebell.client.errors import AMQPError, closed_channel
from harebell.client.protocol.call import Call
from harebell.client.protocol.v1.conditions import ended_channel
from harebell.client.protocol.v1.endpoint import Endpoint
from harebell.client.protocol.v1.links import Outgoing, SenderLink
from harebell.wire.v1.composites import (
    Accepted,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    Rejected,
    TransactionalState,
)
from harebell.wire.v1.sections import value_section
from harebell.wire.v1.values import Symbol

_LOCAL = Symbol("amqp:local-transactions")
_FAILED = 406


class _Order(Outgoing):
    """A message for the coordinator, and what is done with its outcome."""

    __slots__ = ("call",)

    def __init__(self, order: Declare | Discharge) -> None:
        super().__init__(value_section(order))
        self.call: Call[Any] = Call()


class Transactions:
    """The coordinator link, and the present transaction.

    Args:
        endpoint: the session.

    Attributes:
        txn_id: the present transaction; b"" without one.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.txn_id = b""
        self._endpoint = endpoint
        self._link: SenderLink | None = None

    def begin(self) -> Call[None]:
        """Attach the link, and declare the first transaction."""
        target = Coordinator(capabilities=(_LOCAL,))
        self._link = self._endpoint.attach_sender(target, self._lost, _settled)
        return self._declare()

    def state(self, outcome: Any = None) -> TransactionalState:
        """Return the state of a delivery that is part of the present transaction."""
        return TransactionalState(txn_id=self.txn_id, outcome=outcome)

    def discharge(self, *, fail: bool) -> Call[None]:
        """End the transaction, and declare the next one; done when there is one."""
        ended: Call[None] = Call()
        order = _Order(Discharge(txn_id=self.txn_id, fail=fail))
        self._send(order)
        declared = self._declare()

        def discharged(call: Call[Any]) -> None:
            if call.error is not None:
                ended.fail(call.error)
            declared.when_done(lambda call: _follow(call, ended))

        order.call.when_done(discharged)
        return ended

    def _declare(self) -> Call[None]:
        order, declared = _Order(Declare()), Call[None]()

        def answered(call: Call[Any]) -> None:
            if call.error is None:
                self.txn_id = call.value().txn_id
            _follow(call, declared)

        order.call.when_done(answered)
        self._send(order)
        return declared

    def _send(self, order: _Order) -> None:
        if self._link is None or self._link.closed:
            order.call.fail(closed_channel(_FAILED, "the link to the coordinator has ended"))
            return
        self._endpoint.post(self._link, order)

    def _lost(self, error: AMQPError) -> None:
        self._link, self.txn_id = None, b""


def _follow(call: Call[Any], other: Call[None]) -> None:
    if call.error is not None:
        other.fail(call.error)
    else:
        other.succeed(None)


def _settled(order: _Order, outcome: Any) -> None:
    """Handle the outcome of a message for the coordinator."""
    if isinstance(outcome, Accepted | Declared):
        order.call.succeed(outcome)
    elif isinstance(outcome, Rejected):
        order.call.fail(ended_channel(outcome.error))
    elif isinstance(outcome, AMQPError):
        order.call.fail(outcome)
    else:
        order.call.fail(closed_channel(_FAILED, f"the coordinator answered {outcome!r}"))
