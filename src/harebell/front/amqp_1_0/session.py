"""A session: its windows, its links, and the deliveries that its peer has not settled.

    window         transfers that may still come     next id    outgoing_id, incoming_id
    remote_window  transfers that the peer takes     (AMQP 1.0 2.5.6: both count frames)

Numbers are kept as they grow, and travel modulo 2^32. Transfers for which the peer has no window
wait in `backlog`; everything else goes past them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Done, Py, i32, i64, i64_or_minus_1, isize
from harebell.base.counters import Counters
from harebell.front.amqp_1_0.errors import (
    INTERNAL_ERROR,
    UNATTACHED_HANDLE,
    WINDOW_VIOLATION,
    AmqpError,
    ConnectionFault,
    LinkError,
    SessionError,
    composite,
    of_link,
)
from harebell.front.amqp_1_0.outcomes import Outcomes
from harebell.front.common.channel_details import ChannelDetails
from harebell.front.common.errors import describe
from harebell.front.common.unacked import Unacked, UnackedDeliveries
from harebell.front.limits import INCOMING_WINDOW, OUTPUT_HIGH_BYTES, OUTPUT_STOP_BYTES
from harebell.kernels.performatives import ECHO
from harebell.model.queue.contract import Queue
from harebell.model.router import Router
from harebell.wire.v1.composites import Detach, End, Flow, Released

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.model.vhost import VHost

SERIALS = 1 << 32
"""The serial numbers of 1.0 are numbers modulo this."""
_MASK: i64 = SERIALS - 1
_HALF: i64 = 1 << 31
_WINDOW: i32 = INCOMING_WINDOW
_RENEW: i32 = INCOMING_WINDOW // 2
_OUTPUT_HIGH: isize = OUTPUT_HIGH_BYTES
_OUTPUT_STOP: isize = OUTPUT_STOP_BYTES
_ECHO: i32 = ECHO


def near(serial: i64, number: i64) -> i64_or_minus_1:
    """Return the number next to another one that a serial stands for (RFC 1982)."""
    return number + ((serial - number + _HALF) & _MASK) - _HALF


class Session:
    """A session.

    Args:
        connection: the connection it belongs to.
        number: its channel, for both directions.
        incoming_id: next-outgoing-id of the peer.
        remote_window: incoming-window of the peer.

    Attributes:
        vhost, router: of its connection.
        counters: of its messages.
        details: the counters by exchange and by queue.
        links: the attached links, by the handle of the peer, which is that of the broker, too.
        receiver: the link that the last transfer came to; None if links have gone since.
        detached: the handles of links that the broker has detached, until the peer has.
        consumers: those of the links that get messages from a queue, by their tags.
        unacked: deliveries that are not settled, by delivery-id.
        next_tag: the delivery-id of the next delivery.
        outcomes: the outcomes of what the peer sends.
        window: transfers that the peer may still send.
        remote_window: transfers that it still takes.
        incoming_id: the id of the peer's next transfer.
        outgoing_id: the id of the next transfer to it.
        backlog: the rests of deliveries for which the window or the output has no room yet; None
            without any.
        renewing: links that may be due for credit.
        kept: detached links that expire with the session.
        unfinished: octets of messages that have come in part, and of answers without credit.
        ended: whether it has ended.
        transaction: its local transactions (`Transactions`); None before the first.
        confirms, prefetch, prefetch_global: for listings: 1.0 has links instead.
    """

    def __init__(
        self, connection: Connection, number: i32, incoming_id: i64, remote_window: i64
    ) -> None:
        assert connection.vhost is not None, "sessions begin on open connections"
        self.connection = connection
        self.number = number
        self.vhost: VHost = connection.vhost
        self.router: Router = connection.vhost.router
        self.counters = Counters()
        self.details: ChannelDetails | None = ChannelDetails()
        self.links: dict[int, Any] = {}
        self.receiver: Any = None
        self.detached: Py[set[int]] = set()
        self.consumers: dict[str, Any] = {}
        self.unacked = UnackedDeliveries()
        self.next_tag: i64 = 0
        self.outcomes = Outcomes(connection, number)
        self.window: i32 = 0
        self.remote_window = remote_window
        self.incoming_id = incoming_id
        self.outgoing_id: i64 = 0
        self.backlog: Py[deque[Any] | None] = None
        self.renewing: list[Any] = []
        self.kept: Py[dict[Any, None]] = {}
        self.unfinished: i64 = 0
        self.ended = False
        self._enlisted = False
        self.transaction: Any = None
        self.confirms: Any = None
        self.prefetch: i32 = 0
        self.prefetch_global: i32 = 0

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""
        user: User = self.connection.user
        return user

    # --- the end of a turn ----------------------------------------------------------------------

    def enlist(self) -> Done:
        """Have outcomes, credit and windows sent at the end of the turn."""
        if not self._enlisted:
            self._enlisted = True
            self.connection.reporting.append(self)
        return 0

    def report(self) -> None:
        """Send outcomes, then credit, then the window."""
        self._enlisted = False
        if self.ended:
            return
        self.outcomes.report()
        if self.renewing:
            links, self.renewing = self.renewing, []
            for link in links:
                link.renew()
        if self.window <= _RENEW and self._may_come():
            self.report_window()

    # --- the windows ----------------------------------------------------------------------------

    def count_incoming(self, count: i32) -> Done:
        """Count transfers of the peer.

        Raises:
            SessionError: window-violation, they are too many.
        """
        self.incoming_id += count
        self.window -= count
        if self.connection.blocked:
            self.connection.count_while_blocked()
        if self.window < 0:
            raise SessionError(WINDOW_VIOLATION, "a transfer beyond the incoming-window")
        return self.enlist()

    def announced(self) -> i64:
        """Return the window of the peer as it is told of it, which is open as far as it can be.

        While memory is short it is closed. What the peer has sent before it knew that is taken, as
        far as the window was open.
        """
        if not self._may_come():
            return 0
        self.window = _WINDOW
        return _WINDOW

    def _may_come(self) -> C[bool]:
        """True if transfers may come: memory is not short, or some have to come to their end."""
        connection = self.connection
        return not connection.blocked or connection.registry.publishers.finishing is connection

    def send_flow(
        self, handle: i64, delivery_count: i64, credit: i64, available: i64, drain: bool
    ) -> Done:
        """Write the state of the session, and of a link; -1 for what is left out."""
        connection = self.connection
        connection.frames.flow(
            self.number,
            self.incoming_id & _MASK,
            self.announced(),
            self.outgoing_id & _MASK,
            _MASK,
            handle,
            -1 if delivery_count < 0 else delivery_count & _MASK,
            credit,
            available,
            drain,
            False,
        )
        if not connection.dirty:
            connection.touch()
        if connection.out.size > _OUTPUT_STOP:
            # A peer that asks for flows without reading would fill the broker's memory.
            connection.scanner.hold = True
        return 0

    def flow(self, handle: int, delivery_count: int, credit: int) -> Flow:
        """Return the state of the session and of a link, for a flow with more to say."""
        return Flow(
            self.incoming_id % SERIALS,
            self.announced(),
            self.outgoing_id % SERIALS,
            SERIALS - 1,
            handle,
            delivery_count % SERIALS,
            min(credit, SERIALS - 1),
        )

    def report_window(self) -> None:
        """Send the state of the session."""
        if not self.ended:
            self.send_flow(-1, -1, -1, -1, False)

    def take_flow(
        self,
        next_incoming_id: i64,
        incoming_window: i64,
        next_outgoing_id: i64,
        handle: i64,
        delivery_count: i64,
        credit: i64,
        flags: i32,
    ) -> Done:
        """Take the state of the session from the peer, and with a handle that of a link.

        Args:
            next_incoming_id: of the peer; -1 if it has had no transfer.
            incoming_window: of the peer.
            next_outgoing_id: of the peer.
            handle: of the link; -1 for none.
            delivery_count: of the link; -1 if it was left out.
            credit: of the link; -1 if it was left out.
            flags: DRAIN, ECHO.
        """
        link: Any = None
        shut: bool = self.remote_window <= 0 or self.backlog is not None
        try:
            first: i64 = 0 if next_incoming_id < 0 else near(next_incoming_id, self.outgoing_id)
            if first > self.outgoing_id:
                raise _ahead(next_incoming_id, self.outgoing_id)
            self.remote_window = max(first + incoming_window - self.outgoing_id, 0)
            self.incoming_id = near(next_outgoing_id, self.incoming_id)
            if shut:
                self.send_backlog()
            if handle >= 0:
                link = self.link_of(handle, "flow")
                if link is not None:
                    link.take_flow(delivery_count, credit, flags)
            elif flags & _ECHO:
                self.report_window()
        except Exception as error:
            self.caught(error, link)
            return 0
        if shut and self.remote_window > 0 and self.backlog is None:
            self.serve()
        return 0

    # --- deliveries -----------------------------------------------------------------------------

    def can_send(self) -> C[bool]:
        """True if the peer has a window, and the connection's output has space."""
        if self.ended or self.remote_window <= 0 or self.backlog is not None:
            # A flow of the peer goes on with it.
            return False
        connection = self.connection
        if connection.congested or connection.out.size >= _OUTPUT_HIGH:
            connection.starved = True
            return False
        return True

    def accept(self, low: i64, high: i64) -> Done:
        """Settle deliveries run by run: their number is not the work. Then serve their queues."""
        unacked = self.unacked
        number: i64 = unacked.next_from(low)
        queue: Queue | None = None
        while number <= high and unacked.count:
            member: Unacked | None = unacked.member(number)
            if member is None:
                number = unacked.next_from(number)
                continue
            count: i64 = unacked.take_run(number, high)
            self.counters.ack += count
            member.settle_some(number, count)
            number += count
            # Deliveries of one queue mostly follow each other: it is served once for all of them.
            if member.queue is not queue:
                if queue is not None and not queue.deleted:
                    queue.drain()
                queue = member.queue
        if queue is not None and not queue.deleted:
            queue.drain()
        return 0

    def send_parts(self, parts: Any) -> None:
        """Write the transfers of a delivery (`Parts`), those without room in later turns."""
        if self.backlog is None:
            self.backlog = deque()
        self.backlog.append(parts)
        self.send_backlog()

    def send_outcome(self, number: int, outcome: bytes) -> None:
        """Write the outcome of a delivery that its sender has to settle."""
        self.connection.frames.disposition(self.number, True, number, number, False, outcome)
        self.connection.touch()

    def settled_by_sender(self, first: int, last: int) -> None:
        """Take it that the peer has settled deliveries which it has sent."""
        for link in self.links.values():
            unsettled = getattr(link, "unsettled", None)
            if unsettled is not None and unsettled.settle(first, last):
                link.renew()

    def send_backlog(self) -> None:
        """Write waiting transfers as far as the window of the peer and the output reach."""
        connection, backlog = self.connection, self.backlog
        while backlog and self.remote_window > 0:
            if connection.congested or connection.out.size >= _OUTPUT_HIGH:
                connection.starved = True
                return
            self.remote_window -= 1
            self.outgoing_id += 1
            parts = backlog[0]
            connection.out.raw(parts.next_frame())
            connection.touch()
            if parts.done:
                backlog.popleft()
        if not backlog:
            self.backlog = None

    def serve(self) -> Done:
        """Serve the consumers; one that gets a message goes last the next time."""
        self.send_backlog()
        consumers, out = self.consumers, self.connection.out
        for tag, consumer in list(consumers.items()):
            if consumer.queue.deleted:
                continue
            before = out.size
            consumer.serve()
            if out.size > before and consumers.get(tag) is consumer:
                consumers[tag] = consumers.pop(tag)
        return 0

    # --- errors ---------------------------------------------------------------------------------

    def link_of(self, handle: int, what: str) -> Any:
        """Return the link of a handle; None if the broker has detached it.

        Raises:
            SessionError: unattached-handle, there is none.
        """
        link = self.links.get(handle)
        if link is None and handle not in self.detached:
            text = f"{what} for the handle {handle}, which has no link"
            raise SessionError(UNATTACHED_HANDLE, text)
        return link

    def caught(self, error: Exception, link: Any = None) -> None:
        """Detach a link, end the session or close the connection because of an error.

        Args:
            error: what happened.
            link: the link whose input it was; None for input of the session.
        """
        found = of_link(error)
        if found is None:
            self.connection.log("error", f"{self.connection.peer}: {describe(error)}")
            found = SessionError(INTERNAL_ERROR, "internal error")
        if isinstance(found, ConnectionFault):
            self.connection.caught(found)
        elif isinstance(found, LinkError) and link is not None:
            link.fail(found)
        else:
            self.fail(found)

    def fail(self, error: AmqpError) -> None:
        """End the session because of an error: its input is dropped until the peer's end."""
        if self.ended:
            return
        connection = self.connection
        connection.log(
            "error",
            f"{connection.peer}: session {self.number} ended: {error.condition}: {error.text}",
        )
        self.outcomes.close()
        self.ended = True
        connection.send(self.number, End(composite(error.condition, error.text, error.info)))
        connection.ending.add(self.number)
        if connection.channels.get(self.number) is self:
            del connection.channels[self.number]
        self.close()

    def detach(self, link: Any, error: AmqpError) -> None:
        """Detach a link because of an error: its input is dropped until the peer detaches."""
        self.connection.handlers.forget_link(link)
        self.links.pop(link.handle, None)
        self.receiver = None
        self.detached.add(link.handle)
        self.drop_backlog(link.handle)
        detach = Detach(link.handle, True, composite(error.condition, error.text, error.info))
        self.connection.send(self.number, detach)

    def drop_backlog(self, handle: int) -> None:
        """Drop the waiting transfers of a link."""
        if self.backlog is not None:
            left = [each for each in self.backlog if each.handle != handle]
            self.backlog = deque(left) if left else None

    def overdue(self, entry: Unacked, text: str) -> None:
        """Take back a delivery that is not settled for too long; the peer is told."""
        late = self.unacked.take(entry.tag)
        if late is None:
            return
        late.time_out()
        number = entry.tag % SERIALS
        self.connection.log("warning", f"{self.connection.peer}: {text}")
        released = Released().encoded()
        self.connection.frames.disposition(self.number, False, number, number, True, released)
        self.connection.touch()
        if not entry.queue.deleted:
            entry.queue.drain()

    def cancel_forbidden(self) -> None:
        """Detach the links whose queues the user may not read any more."""
        for link in list(self.links.values()):
            link.check_again()

    # --- end ------------------------------------------------------------------------------------

    def close(self) -> None:
        """End: links are removed, deliveries are requeued. `ended` is set already."""
        self.connection.handlers.close_session(self)


def _ahead(claimed: int, sent: int) -> SessionError:
    """Make the error for a peer that speaks of transfers which were not sent."""
    text = f"next-incoming-id ({claimed}) is ahead of next-outgoing-id ({sent % SERIALS})"
    return SessionError(WINDOW_VIOLATION, text)
