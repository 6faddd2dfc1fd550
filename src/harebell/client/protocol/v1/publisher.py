"""Publishes of a session: the links that they go over, in which order, and their outcomes.

    accepted                 confirmed
    released, or the queue   unroutable: returned if it was mandatory, else dropped and confirmed
    named does not exist
    rejected, modified       not taken
    the link ended           not taken, with its error

Each exchange and key has a link, while there are not too many; others go by the anonymous
terminus. Publishes leave in the order of the program: one whose link has no credit holds back those
after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    NotFound,
    PublishNacked,
    PublishReturned,
)
from harebell.client.limits import LINKS_FOR_ROUTES
from harebell.client.message import ReturnedMessage
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import OPEN, ChannelPhase, Mode
from harebell.client.protocol.confirms import MANDATORY, ConfirmTracker
from harebell.client.protocol.v1.addresses import Addresses
from harebell.client.protocol.v1.conditions import NOT_FOUND, text_of
from harebell.client.protocol.v1.endpoint import Endpoint
from harebell.client.protocol.v1.links import LinkEnd, Outgoing, SenderLink
from harebell.client.protocol.v1.messages import outgoing
from harebell.client.protocol.v1.transactions import Transactions
from harebell.wire.v1.composites import Accepted, Error, Rejected, Released, Target

_NO_ROUTE = 312


class _Publish(Outgoing):
    """A publish without its outcome.

    Args:
        payload, settled, state: as of `Outgoing`.
        message: what is published.
        mandatory: whether it comes back if it is unroutable.
        sequence: its number among the confirms; 0 if it is not confirmed.
    """

    __slots__ = ("mandatory", "message", "sequence")

    def __init__(
        self, payload: bytes, settled: bool, state: bytes, message: WireMessage, mandatory: bool,
        sequence: int,
    ) -> None:  # fmt: skip
        super().__init__(payload, settled=settled, state=state)
        self.message = message
        self.mandatory = mandatory
        self.sequence = sequence


class PublishingChannel(Protocol):
    """The client's channel, as its publishing side uses it."""

    mode: Mode
    state: ChannelPhase
    confirms: ConfirmTracker
    on_return: Callable[[PublishReturned], None] | None

    def sent(self, *, all_of_it: bool) -> None:
        """Handle that publishes were sent, or that some wait for credit now."""

    def fail(self, error: AMQPError) -> None:
        """End the channel because of an error for which no call waits."""


class Publisher:
    """The publishing side of a session.

    Args:
        session: the client's channel.
        endpoint: the session on the wire.
        addresses: those that the broker understands.
        transactions: the present transaction.
    """

    def __init__(
        self, session: PublishingChannel, endpoint: Endpoint, addresses: Addresses,
        transactions: Transactions,
    ) -> None:  # fmt: skip
        self._session = session
        self._endpoint = endpoint
        self._addresses = addresses
        self._transactions = transactions
        self._links: dict[tuple[str | None, bool], SenderLink] = {}
        self._waiting: deque[tuple[SenderLink, _Publish]] = deque()
        # The link of a message that is sent in part.
        self._busy: SenderLink | None = None
        self._unsettled = 0
        self._refused: AMQPError | None = None
        self._then: Callable[[AMQPError | None], None] | None = None

    @property
    def waiting(self) -> bool:
        """Whether messages wait for credit or for a place in the broker's window."""
        return bool(self._waiting) or (self._busy is not None and bool(self._busy.pending))

    def publish(self, message: WireMessage, flags: int, sequence: int) -> None:
        """Send a message, or let it wait for its turn.

        Args:
            message: what is published.
            flags: MANDATORY or 0.
            sequence: its number among the confirms; 0 if it is not confirmed.
        """
        mandatory = bool(flags & MANDATORY)
        state = b""
        transacted = self._session.mode is Mode.TRANSACTION
        if transacted:
            if not self._transactions.txn_id:
                raise ClientClosed("the channel has no transaction: the broker ended it")
            state = self._transactions.state().encoded()
        settled = not (sequence or mandatory or transacted)
        route = self._addresses.route(message.exchange, message.routing_key)
        link = self._links.get((route.target, settled))
        if link is None or link.closed:
            if len(self._links) >= LINKS_FOR_ROUTES:
                self._links = {key: each for key, each in self._links.items() if not each.closed}
            if len(self._links) >= LINKS_FOR_ROUTES:
                route = self._addresses.anonymous(route)
            link = self._link(route.target, settled)
        publish = _Publish(outgoing(message, route), settled, state, message, mandatory, sequence)
        if not settled:
            self._unsettled += 1
        self._waiting.append((link, publish))
        self.advance()

    def _link(self, target: str | None, settled: bool) -> SenderLink:
        link = self._links.get((target, settled))
        if link is not None and not link.closed:
            return link
        made = self._endpoint.attach_sender(
            Target(address=target), lambda error: self._ended(made, error), self._outcome,
            settled=settled,
        )  # fmt: skip

        def opened(call: Call[LinkEnd]) -> None:
            if call.error is not None:
                self._ended(made, call.error)

        made.opening.when_done(opened)
        self._links[target, settled] = made
        return made

    def advance(self) -> None:
        """Send what waits, as far as credit and window go."""
        endpoint, waiting = self._endpoint, self._waiting
        while waiting and not (self._busy is not None and self._busy.pending):
            link, publish = waiting[0]
            if link.credit <= 0 or endpoint.remote_window <= 0 or not link.attached:
                break
            del waiting[0]
            self._busy = link
            endpoint.post(link, publish)
        self._session.sent(all_of_it=not self.waiting)

    def _ended(self, link: SenderLink, error: AMQPError) -> None:
        """Handle the end of a link, or that the broker has refused it."""
        lost = [publish for each, publish in self._waiting if each is link]
        self._waiting = deque(pair for pair in self._waiting if pair[0] is not link)
        for publish in lost:
            if not publish.settled:
                self._outcome(publish, error)
            elif not _is_unroutable(publish.message, error) and self._session.state is OPEN:
                # No call waits for its outcome: the channel ends, as in other versions.
                self._session.fail(error)
                return
        self.advance()

    def _outcome(self, publish: _Publish, outcome: Any) -> None:
        """Handle the outcome of a publish, or the error of its link."""
        self._unsettled -= 1
        session = self._session
        if session.state is not OPEN:
            # The channel has ended: its tracker of confirms decides what becomes of them.
            return
        error = _error_of(publish, outcome)
        if publish.sequence:
            session.confirms.settle_as(publish.sequence, error)
        elif isinstance(error, PublishReturned):
            if session.on_return is not None:
                session.on_return(error)
        elif error is not None:
            self._refused = self._refused or error
        self._settle()

    def when_settled(self, then: Callable[[AMQPError | None], None]) -> None:
        """Act when all publishes have an outcome, with the error of the first refused one."""
        self._then = then
        self._settle()

    def _settle(self) -> None:
        then = self._then
        if then is not None and not self._unsettled:
            error, self._refused, self._then = self._refused, None, None
            then(error)


def _error_of(publish: _Publish, outcome: Any) -> AMQPError | None:
    """Return the error of a publish for its outcome; None if it was taken, or dropped."""
    if outcome is None or isinstance(outcome, Accepted):
        return None
    if isinstance(outcome, Released) or _is_unroutable(publish.message, outcome):
        return _returned(publish.message) if publish.mandatory else None
    if isinstance(outcome, AMQPError):
        return outcome
    return PublishNacked(
        publish.sequence, text_of(outcome.error) if isinstance(outcome, Rejected) else "modified"
    )


def _is_unroutable(message: WireMessage, outcome: Any) -> bool:
    """True if the outcome, or the error of a link, says that the queue does not exist."""
    if message.exchange:
        return False
    if isinstance(outcome, Rejected):
        error = outcome.error
        return isinstance(error, Error) and error.condition == NOT_FOUND
    return isinstance(outcome, NotFound)


def _returned(message: WireMessage) -> PublishReturned:
    properties = Properties(message.raw, message.delivery_mode, message.priority)
    returned = ReturnedMessage(message.body, message.exchange, message.routing_key, properties)
    return PublishReturned(_NO_ROUTE, "NO_ROUTE", returned)
