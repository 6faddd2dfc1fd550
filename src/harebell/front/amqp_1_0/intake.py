"""The input of a connection: pass what the scanner has read to sessions and links.

transfer, partial         ->  the link by which the broker receives
disposition, flow         ->  the session
frame                     ->  harebell.front.amqp_1_0.dispatch
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.authority import Undecided
from harebell.base.c_types import C, Done, Py, i32, i64
from harebell.base.message import Properties
from harebell.front.amqp_1_0 import dispatch, settling
from harebell.front.amqp_1_0.errors import (
    INVALID_FIELD,
    NOT_ALLOWED,
    NOT_IMPLEMENTED,
    LinkError,
    SessionError,
)
from harebell.front.amqp_1_0.partial_delivery import PartialDelivery
from harebell.front.amqp_1_0.receiving import ReceivingLink
from harebell.front.amqp_1_0.session import Session, near
from harebell.front.common.decisions import decide
from harebell.front.limits import SETTLED_AT_ONCE
from harebell.kernels.output import Passage
from harebell.kernels.performatives import (
    ABORTED,
    ACCEPTED,
    MORE,
    RESUME,
    SECOND,
    SETTLED,
    PerformativeSink,
)

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection

_SETTLED: i32 = SETTLED
_ACCEPTED: i32 = ACCEPTED
_AT_ONCE: i32 = SETTLED_AT_ONCE
_ABORTED: i32 = ABORTED
_MORE: i32 = MORE
_RESUME: i32 = RESUME
_SECOND: i32 = SECOND


class Intake(PerformativeSink):
    """Passes input from the scanner to the sessions.

    Args:
        connection: where the input comes from, and where errors end it.
        sessions: the sessions by channel; the connection changes it.
    """

    def __init__(self, connection: Connection, sessions: dict[int, Any]) -> None:
        self._connection: Py[Connection] = connection
        self._sessions = sessions
        # That of the last transfer, which mostly has the next one too.
        self._session: Session | None = None

    def break_cycle(self) -> None:
        """Break the reference cycle with the connection."""
        self._connection = None  # type: ignore[assignment]
        self._sessions = {}
        self._session = None

    def frame(self, channel: i32, kind: i32, body: bytes) -> Done:
        """Take a frame that is not passed on by field."""
        try:
            dispatch.take(self._connection, channel, kind, body)
        except Exception as error:
            self._connection.caught(error)
        return 0

    # --- transfers ------------------------------------------------------------------------------

    def transfer(
        self,
        channel: i32,
        handle: i64,
        delivery_id: i64,
        tag: bytes | None,
        message_format: i64,
        flags: i32,
        properties: Properties,
        body: bytes,
    ) -> Done:
        """Take a transfer with a whole message."""
        session: Session | None = self._session
        if session is None or session.number != channel or session.ended:
            session = self._session = self._sessions.get(channel)
        if session is None:
            self._no_session(channel, "transfer")
            return 0
        link: ReceivingLink | None = None
        try:
            session.count_incoming(1)
            link = session.receiver
            if link is None or link.handle != handle:
                link = session.receiver = self._receiver(session, handle)
                if link is None:
                    return 0
            settled: bool = flags & _SETTLED != 0
            # The conditions are here as well as behind them: the calls would cost each message.
            if delivery_id < 0:
                _check_first(delivery_id)
            link.begin_deliveries(1)
            link.check_settled(settled)
            if flags & _SECOND and not link.second:
                raise _not_second()
            if message_format > 0:
                _check_format(message_format)
            link.take(delivery_id, settled, b"" if tag is None else tag, properties, body)
        except Undecided as undecided:
            self._decide(undecided, session, link, delivery_id, flags, tag, properties, body)
        except Exception as error:
            session.caught(error, link)
        return 0

    def passage(self, channel: i32, handle: i64, flags: i32) -> C[Passage | None]:
        """Return the passage of settled transfers that repeat the last one."""
        session: Session | None = self._session
        if session is None or session.number != channel or session.ended:
            return None
        link: ReceivingLink | None = session.receiver
        # While memory is short each transfer is looked at.
        if link is None or link.handle != handle or self._connection.blocked:
            return None
        return link.passage(flags, link.exchange, link.key)

    def partial(
        self,
        channel: i32,
        handle: i64,
        delivery_id: i64,
        tag: bytes | None,
        message_format: i64,
        flags: i32,
        state: bytes,
        payload: bytes,
    ) -> Done:
        """Take a transfer with a part of a message, a state, or a malformed message."""
        session: Session | None = self._sessions.get(channel)
        if session is None:
            self._no_session(channel, "transfer")
            return 0
        link: Any = None
        about = (delivery_id, tag, message_format, flags, state, payload)
        try:
            session.count_incoming(1)
            link = self._receiver(session, handle)
            if link is not None:
                self._partial(session, link, *about)
        except Exception as error:
            session.caught(error, link)
        return 0

    def _partial(
        self,
        session: Session,
        link: Any,
        delivery_id: int,
        tag: bytes | None,
        message_format: int,
        flags: int,
        state: bytes,
        payload: bytes,
    ) -> None:
        delivery: PartialDelivery | None = link.partial
        if delivery is None:
            _check_first(delivery_id)
            link.begin_deliveries(1)
            _check_format(message_format)
            delivery = PartialDelivery(
                session, delivery_id, tag or b"", max(message_format, 0), state
            )
            delivery.resumed = flags & _RESUME != 0
            self._begin(link, delivery)
        else:
            delivery.check(delivery_id, tag, message_format)
        if flags & _ABORTED:
            # Dropped and settled, without an outcome (AMQP 1.0 2.7.5).
            link.end()
            return
        delivery.settled = delivery.settled or flags & _SETTLED != 0
        if delivery.size + len(payload) > link.message_max:
            size = delivery.size + len(payload)
            raise link.too_large(size)
        delivery.add(payload)
        # An unfinished message takes memory: the publisher may have to be stopped.
        self._connection.published = True
        if not flags & _MORE:
            self._complete(session, link, delivery, flags)

    def _begin(self, link: Any, delivery: PartialDelivery) -> None:
        connection = self._connection
        link.partial = delivery
        connection.scanner.pending += 1
        connection.registry.publishers.unfinished[connection] = None

    def _complete(self, session: Session, link: Any, delivery: PartialDelivery, flags: int) -> None:
        """Take a delivery whose last transfer has these flags."""
        link.partial = None
        self._connection.scanner.pending -= 1
        payload, content = delivery.take()
        if delivery.resumed:
            link.take_resumed(delivery.number, delivery.tag, delivery.settled)
            return
        # The settled flag of a later transfer counts as well (AMQP 1.0 2.7.5).
        link.check_settled(delivery.settled)
        if flags & _SECOND and not link.second:
            raise _not_second()
        properties, body = link.parsed(payload)
        if content is not None:
            body = content
        state = delivery.state
        link.begin_state(state)
        try:
            link.take(delivery.number, delivery.settled, delivery.tag, properties, body)
        except Undecided as undecided:
            flags = _SETTLED if delivery.settled else 0
            about = (delivery.number, flags, delivery.tag, properties, body, state)
            self._decide(undecided, session, link, *about)
        finally:
            link.begin_state(b"")

    def _receiver(self, session: Session, handle: int) -> Any:
        """Return the link of a transfer; None if the broker has detached it."""
        link = session.link_of(handle, "transfer")
        if link is not None and not isinstance(link, ReceivingLink):
            raise SessionError(NOT_ALLOWED, "a transfer to a link by which the broker sends")
        return link

    def _decide(
        self,
        undecided: Undecided,
        session: Session,
        link: Any,
        delivery_id: int,
        flags: int,
        tag: bytes | None,
        properties: Properties,
        body: bytes,
        state: bytes = b"",
    ) -> None:
        """Ask for a decision about a permission, and take the delivery again."""

        def again() -> None:
            if session.ended or session.links.get(link.handle) != link:
                return
            self._connection.broker.events.actor = session.user.name
            # The turn in which the transfer was counted is over.
            session.enlist()
            try:
                link.begin_state(state)
                link.take(delivery_id, flags & _SETTLED != 0, tag or b"", properties, body)
            except Undecided:
                # A second permission is undecided: the connection asks for it too.
                raise
            except Exception as error:
                session.caught(error, link)
            finally:
                link.begin_state(b"")

        decide(self._connection, undecided, again)

    # --- dispositions and flows -----------------------------------------------------------------

    def disposition(
        self,
        channel: i32,
        role: bool,
        first: i64,
        last: i64,
        settled: bool,
        outcome: i32,
        state: bytes,
    ) -> Done:
        """Take a disposition."""
        session: Session | None = self._sessions.get(channel)
        if session is None:
            self._no_session(channel, "disposition")
            return 0
        try:
            if role and outcome == _ACCEPTED and settled and 0 <= last - first < _AT_ONCE:
                # Nearly all of them; a range over the end of the numbers ends before it begins.
                low: i64 = near(first, session.next_tag)
                session.accept(low, min(low + last - first, session.next_tag - 1))
                return 0
            settling.take_fields(session, role, first, last, settled, outcome, state)
        except Exception as error:
            session.caught(error)
        return 0

    def flow(
        self,
        channel: i32,
        next_incoming_id: i64,
        incoming_window: i64,
        next_outgoing_id: i64,
        outgoing_window: i64,
        handle: i64,
        delivery_count: i64,
        link_credit: i64,
        available: i64,
        flags: i32,
    ) -> Done:
        """Take a flow without properties."""
        session: Session | None = self._sessions.get(channel)
        if session is None:
            self._no_session(channel, "flow")
            return 0
        session.take_flow(
            next_incoming_id,
            incoming_window,
            next_outgoing_id,
            handle,
            delivery_count,
            link_credit,
            flags,
        )
        return 0

    def _no_session(self, channel: int, shown: str) -> None:
        """Handle a frame on a channel without a session."""
        try:
            dispatch.check_session(self._connection, channel, shown)
        except Exception as error:
            self._connection.caught(error)


def _check_first(delivery_id: int) -> None:
    """Refuse a first transfer without a number.

    Raises:
        LinkError: invalid-field.
    """
    if delivery_id < 0:
        raise LinkError(INVALID_FIELD, "transfer: delivery-id is mandatory in a first transfer")


def _not_second() -> LinkError:
    text = "transfer: rcv-settle-mode is second on a link whose own is first"
    return LinkError(INVALID_FIELD, text)


def _check_format(message_format: int) -> None:
    """Refuse a message that is not one of AMQP.

    Raises:
        LinkError: not-implemented.
    """
    if message_format > 0:
        text = f"message-format {message_format:#x} is not known: only 0 is"
        raise LinkError(NOT_IMPLEMENTED, text)
