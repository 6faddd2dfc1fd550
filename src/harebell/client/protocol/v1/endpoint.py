"""A session of AMQP 1.0, from the client's side: windows, delivery numbers and links.

    begin -->  <-- begin     attach, flow, transfer, disposition, detach ...     end -->  <-- end

A transfer needs the credit of its link and a place in the broker's window, which counts frames. A
message that has neither waits on its link.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from harebell.base.errors import ProtocolError
from harebell.base.message import Properties
from harebell.client.errors import AMQPError, ClientClosed
from harebell.client.limits import SESSION_WINDOW
from harebell.client.protocol.call import Call
from harebell.client.protocol.v1.conditions import ended_channel
from harebell.client.protocol.v1.frames import TRANSFER_HEAD_BYTES, transfer_frame
from harebell.client.protocol.v1.links import (
    HALF,
    NUMBERS,
    LinkEnd,
    OnMessage,
    Outgoing,
    ReceiverLink,
    SenderLink,
)
from harebell.kernels.performatives import (
    ABORTED,
    DRAIN,
    ECHO,
    MORE,
    SETTLED,
    PerformativeScanner,
)
from harebell.wire.v1.composites import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Source,
    Target,
    TransactionalState,
    Transfer,
)

_UNSETTLED, _SETTLED = 0, 1
_HANDLE_MAX = 0xFFFF_FFFF


class Wire(Protocol):
    """The connection, as its sessions use it."""

    frame_max: int
    scanner: PerformativeScanner

    def send(self, channel: int, performative: Any) -> None:
        """Append a performative to the output."""

    def send_raw(self, data: bytes) -> None:
        """Append a whole frame to the output."""

    def set_blocked(self, reason: str | None) -> None:
        """Note that the broker takes no messages now, or does again."""


class Owner(Protocol):
    """Gets what happens to the session as a whole."""

    def begun(self) -> None:
        """The broker has begun the session."""

    def ended(self, error: AMQPError | None) -> None:
        """The broker has ended the session; None answers our end."""

    def flowed(self) -> None:
        """Messages were sent that had waited, or the broker's window has changed."""


class Endpoint:
    """The protocol state of one session.

    Args:
        wire: the connection.
        channel: our channel number on the wire, from 0.
        owner: the client's channel.

    Attributes:
        remote_window: how many frames with transfers the broker takes now.
        unsettled: our deliveries without an outcome, by delivery-id, with their links.
    """

    def __init__(self, wire: Wire, channel: int, owner: Owner) -> None:
        self.channel = channel
        self.remote_window = 0
        self.unsettled: dict[int, tuple[SenderLink, Outgoing]] = {}
        self._wire = wire
        self._owner = owner
        self._ending = False
        self._handle_max = _HANDLE_MAX
        self._links: dict[int, LinkEnd] = {}
        self._named: dict[tuple[str, bool], LinkEnd] = {}
        self._remote: dict[int, LinkEnd] = {}
        self._made = 0
        self._next_out = 0
        self._next_delivery = 0
        self._next_in = 0
        self._window = SESSION_WINDOW

    # --- sending --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin the session."""
        self._send(
            Begin(next_outgoing_id=0, incoming_window=SESSION_WINDOW, outgoing_window=HALF - 1)
        )

    def end(self) -> None:
        """End the session; what still arrives is dropped."""
        self._ending = True
        self._send(End())

    def _send(self, performative: Any) -> None:
        self._wire.send(self.channel, performative)

    def attach_sender(
        self,
        target: Any,
        on_lost: Callable[[AMQPError], None],
        on_outcome: Callable[[Any, Any], None],
        *,
        settled: bool = False,
        name: str = "",
        source: str | None = None,
        properties: dict[Any, Any] | None = None,
    ) -> SenderLink:
        """Attach a link to the broker; its call `opening` has the answer.

        Args:
            target: a `Target` or a `Coordinator`.
            on_lost: as of `SenderLink`.
            on_outcome: as of `SenderLink`.
            settled: whether all its messages are settled.
            name: its name; "" makes one.
            source: our address.
            properties: those of the link.
        """
        link = SenderLink(name or self._name(), self._handle(), on_lost, on_outcome)
        attach = Attach(
            name=link.name,
            handle=link.handle,
            role=False,
            snd_settle_mode=_SETTLED if settled else _UNSETTLED,
            source=Source(address=source),
            target=target,
            initial_delivery_count=0,
            properties=properties,
        )
        self._attach(link, attach)
        return link

    def attach_receiver(
        self, source: Source, link: ReceiverLink, *, settled: bool, target: str | None = None,
        properties: dict[Any, Any] | None = None,
    ) -> ReceiverLink:  # fmt: skip
        """Attach a link from the broker, made with `receiver`; its call `opening` has the answer.

        Args:
            source: where its messages come from.
            link: its state.
            settled: whether the broker expects no outcomes.
            target: our address.
            properties: those of the link.
        """
        attach = Attach(
            name=link.name,
            handle=link.handle,
            role=True,
            snd_settle_mode=_SETTLED if settled else _UNSETTLED,
            source=source,
            target=Target(address=target),
            properties=properties,
        )
        self._attach(link, attach)
        return link

    def receiver(
        self,
        on_lost: Callable[[AMQPError], None],
        on_message: OnMessage,
        *,
        window: int = 0,
        counts: bool = False,
        name: str = "",
    ) -> ReceiverLink:
        """Return the state of a link for `attach_receiver`; arguments as of `ReceiverLink`."""
        handle = self._handle()
        return ReceiverLink(
            name or self._name(), handle, on_lost, on_message, window=window, counts=counts
        )

    def _attach(self, link: LinkEnd, attach: Attach) -> None:
        self._links[link.handle] = link
        self._named[link.name, link.is_receiver] = link
        self._send(attach)

    def _name(self) -> str:
        self._made += 1
        return f"harebell-{self.channel}-{self._made}"

    def _handle(self) -> int:
        handle = 0
        while handle in self._links:
            handle += 1
        if handle > self._handle_max:
            raise ClientClosed(f"all {self._handle_max + 1} links of the session are in use")
        return handle

    def detach(self, link: LinkEnd) -> Call[None]:
        """Detach a link for good; what still arrives over it is dropped."""
        if not link.closed and not link.detaching:
            link.detaching = True
            self._send(Detach(handle=link.handle, closed=True))
        return link.closing

    def grant(self, link: ReceiverLink, credit: int, *, drain: bool = False) -> None:
        """Set the credit of a link."""
        link.credit = credit
        self._flow(link, drain=drain)

    def _flow(self, link: LinkEnd | None = None, *, drain: bool = False) -> None:
        self._window = SESSION_WINDOW
        flow = Flow(
            next_incoming_id=self._next_in,
            incoming_window=self._window,
            next_outgoing_id=self._next_out,
            outgoing_window=HALF - 1,
        )
        if link is not None:
            flow.handle, flow.delivery_count = link.handle, link.delivery_count
            flow.link_credit, flow.drain = link.credit, drain
        self._send(flow)

    def replenish(self, link: ReceiverLink) -> None:
        """Grant more credit if it is due."""
        due = link.due()
        if due >= 0 and link.attached:
            self.grant(link, due)

    def dispose(self, first: int, last: int, state: Any, *, settled: bool = True) -> None:
        """Send the outcome of deliveries of the broker."""
        self._send(Disposition(role=True, first=first, last=last, settled=settled, state=state))

    def post(self, link: SenderLink, message: Outgoing) -> None:
        """Send a message, or let it wait for credit."""
        link.pending.append(message)
        self.pump(link)

    def pump(self, link: SenderLink) -> None:
        """Send what waits on a link, as far as credit and window go."""
        pending = link.pending
        while pending and self.remote_window > 0:
            message = pending[0]
            if message.number < 0:
                if link.credit <= 0 or not link.attached:
                    return
                link.credit -= 1
                link.delivery_count = (link.delivery_count + 1) % NUMBERS
                message.number = self._next_delivery
                self._next_delivery = (message.number + 1) % NUMBERS
                if not message.settled:
                    self.unsettled[message.number] = (link, message)
            if self._send_piece(link, message):
                pending.popleft()

    def _send_piece(self, link: SenderLink, message: Outgoing) -> bool:
        """Send a frame of a message; True if it was the last one."""
        payload: bytes | memoryview = message.payload
        first = message.offset == 0
        room = self._wire.frame_max - TRANSFER_HEAD_BYTES - len(message.state)
        more = len(payload) - message.offset > room
        if more or not first:
            payload = memoryview(payload)[message.offset : message.offset + room]
        self._wire.send_raw(
            transfer_frame(
                self.channel,
                link.handle,
                message.number if first else None,
                payload,
                settled=message.settled,
                more=more,
                state=message.state if first else b"",
            )
        )
        message.offset += len(payload)
        self._next_out = (self._next_out + 1) % NUMBERS
        self.remote_window -= 1
        return not more

    # --- receiving ------------------------------------------------------------------------------

    def receive(self, performative: Any, payload: bytes) -> None:
        """Handle a performative of the broker.

        Raises:
            ProtocolError: it violates the protocol.
        """
        if self._ending and not isinstance(performative, End):
            return
        handler = _HANDLERS.get(type(performative))
        if handler is None:
            raise ProtocolError(503, f"{type(performative).__name__} came in a session")
        handler(self, performative, payload)

    def handle_begin(self, begin: Begin, payload: bytes) -> None:
        self._next_in = begin.next_outgoing_id
        self.remote_window = begin.incoming_window
        self._handle_max = begin.handle_max
        self._owner.begun()

    def handle_end(self, end: End, payload: bytes) -> None:
        answered = self._ending
        if not answered:
            self.end()
        self._owner.ended(None if answered else ended_channel(end.error))

    def abandon(self, error: AMQPError) -> None:
        """End all links: the session has ended."""
        self._ending = True
        links, self._links, self._named, self._remote = self._links, {}, {}, {}
        for link in links.values():
            self._end_link(link, error)

    def _end_link(self, link: LinkEnd, error: AMQPError) -> None:
        if isinstance(link, ReceiverLink):
            self._wire.scanner.pending -= link.assembles
        link.end(error)
        for number in [n for n, (each, _) in self.unsettled.items() if each is link]:
            sender, message = self.unsettled.pop(number)
            sender.on_outcome(message, error)

    def handle_attach(self, attach: Attach, payload: bytes) -> None:
        link = self._named.get((attach.name, not attach.role))
        if link is None or link.answer is not None:
            raise ProtocolError(503, f"the broker attached the link {attach.name!r} by itself")
        self._remote[attach.handle] = link
        if link.granted(attach) and isinstance(link, SenderLink):
            self.pump(link)

    def handle_detach(self, detach: Detach, payload: bytes) -> None:
        link = self._remote.pop(detach.handle, None)
        if link is None:
            raise ProtocolError(504, f"a detach of handle {detach.handle}, which is not attached")
        if not link.detaching:
            self._send(Detach(handle=link.handle, closed=True))
        del self._links[link.handle]
        del self._named[link.name, link.is_receiver]
        self._end_link(link, ended_channel(detach.error))

    def handle_flow(self, flow: Flow, payload: bytes) -> None:
        count, credit = flow.delivery_count, flow.link_credit
        self.flowed(
            flow.next_incoming_id or 0,
            flow.incoming_window,
            -1 if flow.handle is None else flow.handle,
            -1 if count is None else count,
            -1 if credit is None else credit,
            DRAIN * flow.drain | ECHO * flow.echo,
        )

    def flowed(
        self, expected: int, window: int, handle: int, count: int, credit: int, flags: int
    ) -> None:
        """Handle a flow.

        Args:
            expected: the number of the transfer that the broker expects next; -1 before any.
            window: how many transfers it takes from there.
            handle: of a link, the broker's; -1 for none.
            count: how many messages came over the link; -1 if it is not known.
            credit: how many may come; -1 if it is not known.
            flags: DRAIN, ECHO.
        """
        if self._ending:
            return
        places = (max(0, expected) + window - self._next_out) % NUMBERS
        self.remote_window = places if places < HALF else 0
        self._wire.set_blocked(None if window else "its window for messages is 0")
        link = self._remote.get(handle)
        if isinstance(link, SenderLink):
            link.credited(max(0, count), max(0, credit))
        for each in list(self._links.values()):
            if isinstance(each, SenderLink):
                self.pump(each)
        self._owner.flowed()
        if isinstance(link, ReceiverLink):
            self._advanced(link, count, flags)
        elif link is not None and flags & DRAIN and link.credit and isinstance(link, SenderLink):
            link.drain()
            self._flow(link, drain=True)
        if flags & ECHO:
            self._flow(link)

    def _advanced(self, link: ReceiverLink, count: int, flags: int) -> None:
        """Take over the delivery-count of the broker, which has used up credit without messages."""
        if count >= 0:
            used = (count - link.delivery_count) % NUMBERS
            if used < HALF:
                link.delivery_count = count
                link.credit = max(0, link.credit - used)
        if flags & DRAIN and link.credit == 0 and link.drained is not None:
            link.drained()

    def handle_transfer(self, transfer: Transfer, payload: bytes) -> None:
        number = -1 if transfer.delivery_id is None else transfer.delivery_id
        flags = SETTLED * bool(transfer.settled) | MORE * transfer.more | ABORTED * transfer.aborted
        self.part(transfer.handle, number, flags, payload)

    def delivered(
        self, handle: int, number: int, settled: bool, properties: Properties, body: bytes
    ) -> None:
        """Handle a whole message.

        Args:
            handle: of its link, the broker's.
            number: its delivery-id.
            settled: whether the broker expects no outcome.
            properties: the sections before the body.
            body: its octets.
        """
        link = self._receiving(handle)
        if link is not None:
            link.delivered(number, settled, properties, body)

    def part(self, handle: int, number: int, flags: int, payload: bytes) -> None:
        """Handle a part of a message.

        Args:
            handle: of its link, the broker's.
            number: its delivery-id; -1 if it is not given.
            flags: SETTLED, MORE, ABORTED.
            payload: the part of its sections.
        """
        link = self._receiving(handle)
        if link is not None:
            before = link.assembles
            link.part(number, flags, payload)
            self._wire.scanner.pending += link.assembles - before

    def _receiving(self, handle: int) -> ReceiverLink | None:
        """Count a transfer; return its link, or None if we have detached that."""
        if self._ending:
            return None
        self._next_in = (self._next_in + 1) % NUMBERS
        self._window -= 1
        if self._window < SESSION_WINDOW // 2:
            self._flow()
        link = self._remote.get(handle)
        if not isinstance(link, ReceiverLink):
            raise ProtocolError(504, f"a transfer for handle {handle}, which is not attached")
        return None if link.detaching else link

    def handle_disposition(self, disposition: Disposition, payload: bytes) -> None:
        first = disposition.first
        last = first if disposition.last is None else disposition.last
        self.disposed(disposition.role, first, last, disposition.settled, disposition.state)

    def disposed(self, role: bool, first: int, last: int, settled: bool, state: Any) -> None:
        """Handle the outcome of deliveries.

        Args:
            role: whether they are ours; what the broker says of its own needs no answer.
            first: the first delivery-id.
            last: the last one.
            settled: whether the broker has settled them.
            state: their state; None for none.
        """
        if not role or self._ending:
            return
        if isinstance(state, TransactionalState):
            state = state.outcome
        for number in _within(self.unsettled, first, last):
            link, message = self.unsettled[number]
            if not settled:
                if state is None:
                    continue
                self._send(Disposition(role=False, first=number, last=number, settled=True))
            del self.unsettled[number]
            link.on_outcome(message, state)


def _within(waiting: dict[int, Any], first: int, last: int) -> list[int]:
    """Return the numbers of a range that wait; they are in order."""
    if first == last:
        return [first] if first in waiting else []
    span = (last - first) % NUMBERS
    within = []
    for number in waiting:
        if (number - first) % NUMBERS <= span:
            within.append(number)
        elif (number - last) % NUMBERS < HALF:
            break
    return within


_HANDLERS: dict[type, Callable[[Endpoint, Any, bytes], None]] = {
    Begin: Endpoint.handle_begin,
    End: Endpoint.handle_end,
    Attach: Endpoint.handle_attach,
    Detach: Endpoint.handle_detach,
    Flow: Endpoint.handle_flow,
    Transfer: Endpoint.handle_transfer,
    Disposition: Endpoint.handle_disposition,
}
