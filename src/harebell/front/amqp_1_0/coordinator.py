"""The coordinator of transactions: a target that declares and discharges them (AMQP 1.0 4.1).

    declare      -> declared, with a txn-id
    discharge    -> accepted when the commit is on disk, or at once for a rollback; rejected with
                    the reason if nothing was committed

A coordinator that is detached rolls back what it has declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.message import Properties
from harebell.base.slices import Slices, stepped
from harebell.front.amqp_1_0.errors import (
    DECODE_ERROR,
    INVALID_FIELD,
    NOT_IMPLEMENTED,
    LinkError,
    composite,
)
from harebell.front.amqp_1_0.receiving import ReceivingLink
from harebell.front.amqp_1_0.transactions import LocalTransaction, Transactions
from harebell.model.queue.contract import PENDING
from harebell.wire.v1.composites import (
    Attach,
    Coordinator,
    Declare,
    Declared,
    Discharge,
    Rejected,
)
from harebell.wire.v1.performatives import composite_of
from harebell.wire.v1.sections import VALUE, body_sections
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session

_CAPABILITIES = (Symbol("amqp:local-transactions"), Symbol("amqp:multi-txns-per-ssn"))
_REJECTED = "amqp:rejected:list"


def attach(session: Session, asked: Attach) -> Attach:
    """Make a link to the coordinator; return the answer.

    Raises:
        LinkError: invalid-field, it has no source.
    """
    if asked.source is None:
        raise LinkError(INVALID_FIELD, "attach: source is mandatory for a coordinator")
    if session.transaction is None:
        session.transaction = Transactions(session)
    outcomes = getattr(asked.source, "outcomes", None) or (_REJECTED,)
    link = CoordinatorLink(session, asked.name, asked.handle, None)
    link.mode = asked.snd_settle_mode
    link.rejects = _REJECTED in outcomes
    session.links[asked.handle] = link
    return Attach(
        asked.name,
        asked.handle,
        True,
        snd_settle_mode=asked.snd_settle_mode,
        source=asked.source,
        target=Coordinator(_CAPABILITIES),
        max_message_size=link.message_max,
    )


class CoordinatorLink(ReceivingLink):
    """A link by which transactions are declared and discharged.

    Attributes:
        rejects: whether its sender knows the outcome rejected; if not, the link is detached.
        declared: the transactions that were declared over it and are open.
    """

    rejects = True

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.declared: dict[bytes, LocalTransaction] = {}

    def begin_state(self, state: bytes) -> None:
        """Refuse a state: what comes here is no part of a transaction itself."""
        if state:
            raise LinkError(INVALID_FIELD, "a transfer to the coordinator has no state")

    def take(
        self, number: int, settled: bool, tag: bytes, properties: Properties, body: bytes
    ) -> int:
        """Declare or discharge a transaction.

        Raises:
            LinkError: it is neither, or it is settled, or refused where that is no outcome.
        """
        if settled:
            raise LinkError(INVALID_FIELD, "declare and discharge are never settled")
        wish = _wish(body, properties.family)
        try:
            if isinstance(wish, Declare):
                self._declare(number, wish)
            else:
                self._discharge(number, wish)
        except LinkError as error:
            self._refuse(number, error)
        return 0

    def _answer(self, number: int, outcome: bytes) -> None:
        self.unconfirmed += 1
        self.session.outcomes.refused(self, number, outcome)
        self.session.enlist()

    def _refuse(self, number: int, error: LinkError) -> None:
        if not self.rejects:
            raise error
        outcome = Rejected(composite(error.condition, error.text, error.info))
        self._answer(number, outcome.encoded())

    def _declare(self, number: int, wish: Declare) -> None:
        if wish.global_id is not None:
            raise LinkError(
                NOT_IMPLEMENTED, "declare: global-id: there are local transactions only"
            )
        transaction = self.session.transaction.declare()
        self.declared[transaction.name] = transaction
        self._answer(number, Declared(transaction.name).encoded())

    def _discharge(self, number: int, wish: Discharge) -> None:
        session = self.session
        transactions: Transactions = session.transaction
        transaction = transactions.end(wish.txn_id)
        self.declared.pop(wish.txn_id, None)
        if wish.fail:
            self._perform(transactions.undoing(transaction), number)
            return
        self._perform(self._committing(transactions, transaction), number)

    def _committing(self, transactions: Transactions, transaction: LocalTransaction) -> Slices[Any]:
        """Commit, or roll back where that cannot be; return the bits or the error."""
        try:
            return (yield from transactions.committing(transaction))
        except LinkError as error:
            yield from transactions.undoing(transaction)
            return error

    def _perform(self, work: Slices[Any], number: int) -> None:
        """Do the work in slices, then tell the outcome."""
        session = self.session

        def done(result: Any) -> None:
            if session.ended or session.links.get(self.handle) is not self:
                return
            if isinstance(result, LinkError):
                try:
                    self._refuse(number, result)
                except LinkError as error:
                    self.fail(error)
                return
            self.unconfirmed += 1
            pending = bool((result or 0) & PENDING)
            session.outcomes.accepted(self, number, pending)
            session.enlist()

        registry = session.connection.registry
        session.connection.perform(stepped(work, registry.work, TRANSACTION_SLICE, done))

    def end(self) -> None:
        """Roll back what was declared over the link and not discharged."""
        super().end()
        transactions: Transactions = self.session.transaction
        names, self.declared = list(self.declared), {}
        if self.session.ended:
            # `Transactions.forget` does it for the whole session.
            return
        connection = self.session.connection
        for name in names:
            work = transactions.undoing(transactions.end(name))
            connection.perform(stepped(work, connection.registry.work, TRANSACTION_SLICE, bool))


def _wish(body: bytes, family: int) -> Declare | Discharge:
    """Return what the body of a message to the coordinator asks for.

    Raises:
        LinkError: decode-error.
    """
    for section in body_sections(body, family):
        if section.code == VALUE:
            wish = composite_of(section.value)
            if isinstance(wish, Declare | Discharge):
                return wish
    raise LinkError(DECODE_ERROR, "a message to the coordinator must be declare or discharge")
