"""Local transactions: declare, post, retire, discharge (AMQP 1.0 4)."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.limits import TRANSACTION_SLICE
from harebell.front.common.kept import kept_bytes
from harebell.front.limits import TRANSACTIONS_PER_SESSION
from harebell.wire.v09.methods import QueueDeclare, QueueDeclareOk
from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import value_section
from harebell.wire.v1.values import Symbol
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1

_CONTROL = 9
_SENDER = 0
_RECEIVER = 1
_UNKNOWN = "amqp:transaction:unknown-id"
_ROLLBACK = "amqp:transaction:rollback"


class Controller:
    """A link to the coordinator."""

    def __init__(self, peer: Peer1, **fields: Any) -> None:
        self.peer = peer
        self.answer = peer.attach_sender(None, _CONTROL, target=c.Coordinator(), **fields)

    def send(self, wish: Any, **fields: Any) -> int:
        """A message to the coordinator."""
        return self.peer.transfer_payload(_CONTROL, value_section(wish), **fields)

    def outcome(self, wish: Any) -> Any:
        """The outcome of a message to the coordinator."""
        number = self.send(wish)
        return self.peer.expect(c.Disposition, role=True, first=number, settled=True).state

    def declare(self) -> bytes:
        """Declare a transaction; return its txn-id."""
        outcome = self.outcome(c.Declare())
        assert isinstance(outcome, c.Declared), outcome
        return outcome.txn_id

    def discharge(self, txn: bytes, *, fail: bool = False) -> Any:
        """End a transaction; return the outcome."""
        return self.outcome(c.Discharge(txn, fail))


@pytest.fixture
def controller(peer1: Peer1) -> Controller:
    return Controller(peer1)


def _ready(peer: Peer, queue: str) -> int:
    peer.send(QueueDeclare(queue=queue, passive=True))
    return peer.expect(QueueDeclareOk).message_count


def _post(peer: Peer1, txn: bytes, body: bytes = b"x", **fields: Any) -> int:
    state = c.TransactionalState(txn)
    return peer.transfer(_SENDER, body, state=state, **fields)


def _posted(peer: Peer1, txn: bytes, number: int) -> None:
    state = c.TransactionalState(txn, c.Accepted())
    peer.expect(c.Disposition, first=number, settled=True, state=state)


@pytest.mark.rule("1.0#160", "1.0#161")
def test_the_coordinator_declares_and_discharges_transactions(controller: Controller) -> None:
    target = controller.answer.target
    assert isinstance(target, c.Coordinator)
    assert "amqp:local-transactions" in target.capabilities
    first, second = controller.declare(), controller.declare()
    assert first != second
    assert controller.discharge(first) == c.Accepted()
    assert controller.discharge(second, fail=True) == c.Accepted()


@pytest.mark.rule("1.0#159")
def test_a_coordinator_without_a_source_is_refused(peer1: Peer1) -> None:
    asked = c.Attach("c", 0, False, target=c.Coordinator(), initial_delivery_count=0)
    peer1.expect_refused(asked, "amqp:invalid-field", "source is mandatory")


@pytest.mark.rule("1.0#165", "1.0#169", "1.0#171")
def test_what_is_posted_is_there_after_the_commit(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    for _ in range(3):
        _posted(peer1, txn, _post(peer1, txn))
    _post(peer1, txn, settled=True)
    peer1.quiet()
    assert _ready(peer, queue) == 0
    assert controller.discharge(txn) == c.Accepted()
    assert _ready(peer, queue) == 4


@pytest.mark.rule("1.0#165")
def test_what_is_posted_is_dropped_by_a_rollback(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    _posted(peer1, txn, _post(peer1, txn))
    assert controller.discharge(txn, fail=True) == c.Accepted()
    assert _ready(peer, queue) == 0
    # The link goes on outside of transactions.
    number = peer1.transfer(_SENDER, b"y")
    peer1.expect(c.Disposition, first=number, state=c.Accepted())
    assert _ready(peer, queue) == 1


@pytest.mark.rule("1.0#169")
def test_a_posting_may_take_several_transfers(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    number = _post(peer1, txn, more=True)
    peer1.transfer_payload(_SENDER, b"", delivery_tag=None, state=c.TransactionalState(txn))
    _posted(peer1, txn, number)
    assert _ready(peer, queue) == 0
    controller.discharge(txn)
    assert _ready(peer, queue) == 1


@pytest.mark.rule("1.0#173")
@pytest.mark.parametrize("settled", [True, False])
def test_what_is_accepted_is_gone_after_the_commit(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller, settled: bool
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=5)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    txn = controller.declare()
    state = c.TransactionalState(txn, c.Accepted())
    peer1.send(c.Disposition(True, number, settled=settled, state=state))
    peer1.quiet()
    number_of_discharge = controller.send(c.Discharge(txn))
    if not settled:
        peer1.expect(c.Disposition, role=False, first=number, settled=True, state=c.Accepted())
    peer1.expect(c.Disposition, first=number_of_discharge, state=c.Accepted())
    peer1.send(c.Detach(_RECEIVER, True))
    peer1.expect(c.Detach, handle=_RECEIVER)
    assert _ready(peer, queue) == 0


@pytest.mark.rule("1.0#173")
def test_after_a_rollback_an_unsettled_delivery_is_unsettled_again(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=5)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    txn = controller.declare()
    state = c.TransactionalState(txn, c.Accepted())
    peer1.send(c.Disposition(True, number, state=state))
    assert controller.discharge(txn, fail=True) == c.Accepted()
    # It is still the receiver's own, and can be accepted.
    assert _ready(peer, queue) == 0
    peer1.send(c.Disposition(True, number, settled=True, state=c.Accepted()))
    peer1.quiet()
    peer1.send(c.Detach(_RECEIVER, True))
    peer1.expect(c.Detach, handle=_RECEIVER)
    assert _ready(peer, queue) == 0


def test_after_a_rollback_a_settled_delivery_comes_again(
    queue: str, peer1: Peer1, controller: Controller
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=5)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    txn = controller.declare()
    state = c.TransactionalState(txn, c.Accepted())
    peer1.send(c.Disposition(True, number, settled=True, state=state))
    discharge = controller.send(c.Discharge(txn, True))
    again = peer1.expect_transfer(handle=_RECEIVER)
    assert again.payload.endswith(b"x")
    peer1.expect(c.Disposition, first=discharge, state=c.Accepted())
    peer1.send(c.Disposition(True, again.value.delivery_id, settled=True, state=c.Accepted()))


@pytest.mark.parametrize(
    ("outcome", "ready"),
    [
        (c.Rejected(), 0),
        (c.Modified(undeliverable_here=True), 0),
        (c.Released(), 1),
        (c.Modified(), 1),
        (c.Modified(True), 1),
    ],
)
def test_every_outcome_takes_effect_at_the_commit(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller, outcome: Any, ready: int
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=1)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    txn = controller.declare()
    state = c.TransactionalState(txn, outcome)
    peer1.send(c.Disposition(True, number, settled=True, state=state))
    peer1.quiet()
    assert _ready(peer, queue) == 0
    assert controller.discharge(txn) == c.Accepted()
    assert _ready(peer, queue) == ready


@pytest.mark.rule("1.0#166", "1.0#170")
def test_an_unknown_transaction_is_refused(
    queue: str, peer1: Peer1, controller: Controller
) -> None:
    outcome = controller.discharge(b"none")
    assert isinstance(outcome, c.Rejected)
    assert outcome.error.condition == _UNKNOWN
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    _post(peer1, b"none")
    peer1.expect_error(c.Detach, _UNKNOWN)
    peer1.send(c.Detach(_SENDER, True))
    # One that has ended is unknown, too.
    txn = controller.declare()
    controller.discharge(txn)
    assert controller.discharge(txn).error.condition == _UNKNOWN


@pytest.mark.rule("1.0#172")
def test_a_settled_posting_without_a_queue_fails_the_commit(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    peer1.attach_sender("/exchanges/amq.direct/nowhere", _SENDER)
    peer1.attach_sender(f"/queues/{queue}", 5)
    peer1.transfer(5, b"x", state=c.TransactionalState(txn), settled=True)
    _post(peer1, txn, settled=True)
    outcome = controller.discharge(txn)
    assert isinstance(outcome, c.Rejected)
    assert outcome.error.condition == _ROLLBACK
    assert _ready(peer, queue) == 0


def test_an_unsettled_posting_without_a_queue_is_released(
    peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    peer1.attach_sender("/exchanges/amq.direct/nowhere", _SENDER)
    number = _post(peer1, txn)
    state = c.TransactionalState(txn, c.Released())
    peer1.expect(c.Disposition, first=number, settled=True, state=state)
    assert controller.discharge(txn) == c.Accepted()


def test_a_topic_takes_postings_that_nobody_listens_to(
    peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    target = c.Target("nowhere", capabilities=(Symbol("topic"),))
    peer1.attach_sender(None, _SENDER, target=target)
    _posted(peer1, txn, _post(peer1, txn))
    _post(peer1, txn, settled=True)
    assert controller.discharge(txn) == c.Accepted()


def test_a_full_queue_fails_the_commit_as_a_whole(
    peer: Peer, name: str, peer1: Peer1, controller: Controller
) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    peer.send(QueueDeclare(queue=name, durable=True, arguments=arguments))
    peer.expect(QueueDeclareOk)
    txn = controller.declare()
    peer1.attach_sender(f"/queues/{name}", _SENDER)
    for _ in range(2):
        _posted(peer1, txn, _post(peer1, txn))
    outcome = controller.discharge(txn)
    assert isinstance(outcome, c.Rejected)
    assert outcome.error.condition == _ROLLBACK
    assert _ready(peer, name) == 0


@pytest.mark.rule("1.0#167")
@pytest.mark.parametrize("closed", [True, False])
def test_a_coordinator_that_is_detached_rolls_back(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller, closed: bool
) -> None:
    txn = controller.declare()
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    _posted(peer1, txn, _post(peer1, txn))
    peer1.send(c.Detach(_CONTROL, closed))
    peer1.expect(c.Detach, handle=_CONTROL)
    again = Controller(peer1)
    assert again.discharge(txn).error.condition == _UNKNOWN
    assert _ready(peer, queue) == 0


@pytest.mark.rule("1.0#167")
def test_the_end_of_a_session_rolls_back(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=5)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    txn = controller.declare()
    state = c.TransactionalState(txn, c.Accepted())
    peer1.send(c.Disposition(True, number, settled=True, state=state))
    _posted(peer1, txn, _post(peer1, txn))
    peer1.send(c.End())
    peer1.expect(c.End)
    assert _ready(peer, queue) == 1


@pytest.mark.rule("1.0#163")
def test_a_settled_declare_is_an_error(controller: Controller) -> None:
    controller.send(c.Declare(), settled=True)
    controller.peer.expect_error(c.Detach, "amqp:invalid-field", "never settled")
    controller.peer.send(c.Detach(_CONTROL, True))


@pytest.mark.rule("1.0#164")
def test_there_are_no_distributed_transactions(controller: Controller) -> None:
    outcome = controller.outcome(c.Declare("global"))
    assert isinstance(outcome, c.Rejected)
    assert outcome.error.condition == "amqp:not-implemented"


@pytest.mark.rule("1.0#162")
def test_a_controller_that_knows_no_rejected_is_detached(peer1: Peer1) -> None:
    source = c.Source(outcomes=(Symbol("amqp:accepted:list"),))
    controller = Controller(peer1, source=source)
    controller.send(c.Declare("global"))
    peer1.expect_error(c.Detach, "amqp:not-implemented", "global-id")
    peer1.send(c.Detach(_CONTROL, True))


@pytest.mark.rule("1.0#175")
def test_acquiring_in_a_transaction_is_not_implemented(
    queue: str, peer1: Peer1, controller: Controller
) -> None:
    txn = controller.declare()
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER)
    peer1.give(_RECEIVER, 1, properties={Symbol("txn-id"): txn})
    peer1.expect_error(c.Detach, "amqp:not-implemented", "txn-id")
    peer1.send(c.Detach(_RECEIVER, True))


@pytest.mark.rule("1.0#174")
def test_a_delivery_is_in_one_transaction_only(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=1)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    first, second = controller.declare(), controller.declare()
    for txn, outcome in ((first, c.Accepted()), (second, c.Released())):
        state = c.TransactionalState(txn, outcome)
        peer1.send(c.Disposition(True, number, settled=True, state=state))
    controller.discharge(second)
    assert _ready(peer, queue) == 0
    controller.discharge(first)
    assert _ready(peer, queue) == 0


def test_open_transactions_of_a_session_are_limited(controller: Controller) -> None:
    for _ in range(TRANSACTIONS_PER_SESSION):
        controller.declare()
    outcome = controller.outcome(c.Declare())
    assert outcome.error.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize("body", [c.Accepted(), "text", None])
def test_anything_else_is_no_message_to_the_coordinator(controller: Controller, body: Any) -> None:
    controller.send(body)
    controller.peer.expect_error(c.Detach, "amqp:decode-error", "declare or discharge")
    controller.peer.send(c.Detach(_CONTROL, True))


@pytest.mark.rule("1.0#109")
def test_a_state_that_is_no_transaction(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", state=c.Accepted())
    peer1.expect_error(c.Detach, "amqp:invalid-field", "transactional-state")
    peer1.send(c.Detach(_SENDER, True))


def test_two_sessions_have_transactions_of_their_own(connect1: Connect1, queue: str) -> None:
    peer = connect1().open().begin(0).begin(1)
    txn = Controller(peer).declare()
    peer.attach_sender(f"/queues/{queue}", _SENDER, channel=1)
    peer.transfer(_SENDER, b"x", channel=1, state=c.TransactionalState(txn))
    peer.expect_error(c.Detach, _UNKNOWN, channel=1)
    peer.send(c.Detach(_SENDER, True), channel=1)


def test_a_session_that_ends_within_a_rollback_gives_everything_back(
    memory: MemorySite, memory1: Connect1
) -> None:
    peer = memory1().open().begin()
    controller = Controller(peer)
    peer.attach_sender("q", _SENDER)
    count = 3 * TRANSACTION_SLICE
    for _ in range(count):
        peer.transfer(_SENDER, b"x", settled=True)
        peer.maybe()
    peer.attach_receiver("q", _RECEIVER, credit=count)
    for _ in range(count):
        peer.expect_transfer(handle=_RECEIVER)
    txn = controller.declare()
    state = c.TransactionalState(txn, c.Accepted())
    peer.send(c.Disposition(True, 0, count - 1, settled=True, state=state))
    (connection,) = memory.registry.connections
    (session,) = connection.channels.values()
    transactions = session.transaction
    work = transactions.undoing(transactions.end(txn))
    next(work)
    peer.send(c.End())
    while not isinstance(peer.next().value, c.End):
        pass
    for _ in work:
        pass
    queue = memory.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (count, 0)


@pytest.mark.parametrize("how", ["end", "loss"])
def test_a_session_that_ends_gives_back_in_slices_what_was_retired(
    memory: MemorySite, memory1: Connect1, how: str
) -> None:
    peer = memory1().open().begin()
    controller = Controller(peer)
    peer.attach_sender("q", _SENDER)
    count = 1_000
    for _ in range(count):
        peer.transfer(_SENDER, b"x", settled=True)
        peer.maybe()
    peer.attach_receiver("q", _RECEIVER, credit=count)
    for _ in range(count):
        peer.expect_transfer(handle=_RECEIVER)
    state = c.TransactionalState(controller.declare(), c.Accepted())
    peer.send(c.Disposition(True, 0, count - 1, settled=True, state=state))
    state.outcome = None
    peer.transfer(_SENDER, b"y", settled=True, state=state)
    turns = memory.registry.turns
    turns.limit(100, lambda: None)
    if how == "end":
        peer.send(c.End())
    else:
        peer.drop()
    needed = 0
    while turns.busy:
        turns.next_turn()
        memory.turn()
        needed += 1
    assert needed > 5
    if how == "end":
        peer.expect(c.End)
    queue = memory.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (count, 0)


def test_a_rollback_requeues_what_a_detached_link_had(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=1)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    txn = controller.declare()
    state = c.TransactionalState(txn, c.Accepted())
    peer1.send(c.Disposition(True, number, state=state), c.Detach(_RECEIVER, True))
    peer1.expect(c.Detach, handle=_RECEIVER)
    assert controller.discharge(txn, fail=True) == c.Accepted()
    assert _ready(peer, queue) == 1


@pytest.mark.parametrize("outcome", [c.Received(0, 0), c.Error(Symbol("x")), "text"])
def test_a_wrong_outcome_ends_the_session_and_the_delivery_is_ready_again(
    peer: Peer, queue: str, peer1: Peer1, controller: Controller, outcome: Any
) -> None:
    peer1.attach_sender(f"/queues/{queue}", _SENDER)
    peer1.transfer(_SENDER, b"x", settled=True)
    peer1.attach_receiver(f"/queues/{queue}", _RECEIVER, credit=1)
    number = peer1.expect_transfer(handle=_RECEIVER).value.delivery_id
    state = c.TransactionalState(controller.declare(), outcome)
    peer1.send(c.Disposition(True, number, settled=True, state=state))
    peer1.expect_error(c.End, "amqp:invalid-field", "Unrecognised outcome")
    peer1.send(c.End())
    assert _ready(peer, queue) == 1


def test_what_is_posted_and_retired_counts_for_the_memory_of_a_connection(
    memory: MemorySite, memory1: Connect1
) -> None:
    peer = memory1().open().begin()
    controller = Controller(peer)
    peer.attach_sender("q", _SENDER)
    peer.transfer(_SENDER, b"x", settled=True)
    peer.attach_receiver("q", _RECEIVER, credit=1)
    number = peer.expect_transfer(handle=_RECEIVER).value.delivery_id
    (connection,) = memory.registry.connections
    before = kept_bytes(connection)
    txn = controller.declare()
    _posted(peer, txn, _post(peer, txn, bytes(10_000)))
    assert kept_bytes(connection) >= before + 10_000
    state = c.TransactionalState(txn, c.Accepted())
    peer.send(c.Disposition(True, number, settled=True, state=state))
    peer.quiet()
    assert kept_bytes(connection) >= before + 10_000
    controller.discharge(txn)
    assert kept_bytes(connection) < before
