"""Resuming a link: both sides compare what they have not settled (AMQP 1.0 2.6.13).

    known to             the broker has sent it                  the broker has received it
    the broker alone     it is requeued                          its outcome is forgotten
    the peer alone       the peer settles it                     the peer sends it again
    both                 an outcome of the peer: taken, and      the outcome is the answer to the
                         settled by a transfer without payload   transfer, whose payload is dropped
                         none: the message is sent again

Each transfer of the table has the flag `resume`. What the broker sends goes before new deliveries,
and takes credit as they do.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from harebell.base.slices import Slices
from harebell.front.amqp_1_0.delivery import send_in_parts
from harebell.front.amqp_1_0.errors import INVALID_FIELD, LinkError
from harebell.front.limits import RESUMED_UNITS
from harebell.kernels.transfers_1_0 import delivered_payload
from harebell.wire.v1.composites import (
    Accepted,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from harebell.wire.v1.performatives import decode_performative

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.wire.v1.composites import Attach

_SERIALS = 1 << 32
_TERMINAL = (Accepted, Rejected, Released, Modified)
_STATES = (*_TERMINAL, Received, TransactionalState)
_FAILED = Modified(delivery_failed=True)
_ENTRY_BYTES = 8
"""Octets of an entry of a map beside its tag and its state."""


# --- what the broker has sent -------------------------------------------------------------------


class Resumption:
    """What of a link's earlier deliveries is not sent again yet.

    Attributes:
        deliveries: positions by delivery-tag.
        order: what to send: the tag, and the outcome that the peer has given; None without one.
        reported: the deliveries for the attach of the broker.
        partial: whether `reported` lacks some, or the peer has left some out: nothing new is sent.
    """

    def __init__(self, *, partial: bool) -> None:
        self.deliveries: dict[bytes, int] = {}
        self.order: deque[tuple[bytes, Any]] = deque()
        self.reported: dict[bytes, None] = {}
        self.partial = partial

    @property
    def open(self) -> bool:
        """True as long as nothing new is sent."""
        return self.partial or bool(self.order)

    def send(self, link: Any) -> None:
        """Send what credit, window and the turn allow."""
        session, work = link.session, link.connection.registry.work
        while self.order and link.credit > 0 and session.can_send():
            tag, outcome = self.order.popleft()
            number = session.next_tag
            session.next_tag = number + 1
            link.credit -= 1
            link.delivery_count += 1
            if outcome is None:
                self._send_again(link, number, tag)
            else:
                _send(link, number, tag, b"", settled=True, state=outcome, resume=True)
            if work.charge(RESUMED_UNITS):
                link.again()
                break
        if not self.open:
            link.resumption = None

    def _send_again(self, link: Any, number: int, tag: bytes) -> None:
        """Send the message of a delivery once more."""
        position, queue = self.deliveries.pop(tag), link.queue
        message = queue.delivered(position)
        if message is None:
            # It was deleted meanwhile: the peer drops what it has of it.
            _send(link, number, tag, b"", settled=True, resume=True, aborted=True)
            return
        steady = link.connection.broker.clock.steady
        ttl = max(message.due - steady, 0) if message.due else -1
        message = link.readable(message)
        payload = delivered_payload(message, False, message.deliveries, ttl)
        link.unacked += 1
        link.session.unacked.deliver(link, position, number)
        link.note_tag(number, tag)
        # The payload begins with the first octet of the message.
        _send(link, number, tag, payload, settled=False, state=Received(0, 0), resume=True)


def _send(
    link: Any, number: int, tag: bytes, payload: bytes, *, settled: bool, **more: Any
) -> None:
    send_in_parts(link.session, link.handle, number, tag, payload, settled=settled, **more)


def resume_sent(
    deliveries: dict[bytes, int], asked: Attach, room: int
) -> tuple[Resumption, list[tuple[int, Any]]]:
    """Compare what the broker has sent with what the peer knows.

    Args:
        deliveries: positions by delivery-tag, that the peer has not settled.
        asked: the attach of the peer, with the deliveries that it knows.
        room: octets for them in the attach of the broker.

    Returns:
        What is sent again; and the outcomes of the peer by position, a failed delivery for what it
        does not know.
    """
    resumption = Resumption(partial=asked.incomplete_unsettled)
    decided: list[tuple[int, Any]] = []
    known = asked.unsettled or {}
    for tag, position in deliveries.items():
        room -= len(tag) + _ENTRY_BYTES
        if room < 0:
            resumption.partial = True
            resumption.deliveries[tag] = position
            continue
        resumption.reported[tag] = None
        if tag not in known:
            if asked.incomplete_unsettled:
                resumption.deliveries[tag] = position
            else:
                decided.append((position, _FAILED))
            continue
        state = known[tag]
        if isinstance(state, _TERMINAL):
            decided.append((position, state))
            resumption.order.append((tag, state))
        else:
            resumption.deliveries[tag] = position
            resumption.order.append((tag, None))
    return resumption, decided


def settling(queue: Queue, decided: list[tuple[int, Any]]) -> Slices[None]:
    """Do with messages what their outcomes say, then serve their queue."""
    for position, state in decided:
        if queue.deleted:
            return
        _settle(queue, position, state)
        yield
    queue.drain()


def _settle(queue: Queue, position: int, state: Any) -> None:
    if type(state) is Accepted:
        queue.counters.ack += 1
        queue.settle(position)
    elif type(state) is Rejected or (type(state) is Modified and state.undeliverable_here):
        queue.reject(position)
    elif type(state) is Modified and state.delivery_failed:
        queue.requeue(position)
    else:
        queue.requeue_uncounted(position, True)


def check_unsettled(asked: Attach) -> None:
    """Refuse a map of unsettled deliveries with other keys than tags, or other values than states.

    Raises:
        LinkError: invalid-field.
    """
    for tag, value in (asked.unsettled or {}).items():
        if type(tag) is not bytes or not 1 <= len(tag) <= _TAG_BYTES:
            text = f"attach: unsettled: a key must be a delivery-tag, not {tag!r:.100}"
            raise LinkError(INVALID_FIELD, text)
        if value is not None and not isinstance(value, _STATES):
            text = f"attach: unsettled: {value!r:.100} is no delivery-state"
            raise LinkError(INVALID_FIELD, text)


_TAG_BYTES = 32


# --- what the broker has received ---------------------------------------------------------------


class Unsettled:
    """Deliveries on a link with rcv-settle-mode second, until their sender settles them.

    Attributes:
        tags: delivery-tags by the delivery-ids of this session.
        outcomes: encoded outcomes by delivery-tag; b"" for one that is not known yet.
    """

    __slots__ = ("outcomes", "tags")

    def __init__(self) -> None:
        self.tags: dict[int, bytes] = {}
        self.outcomes: dict[bytes, bytes] = {}

    def check(self, tag: bytes) -> None:
        """Refuse the tag of a delivery that is not settled.

        Raises:
            LinkError: invalid-field.
        """
        if tag in self.outcomes:
            text = f"delivery-tag {tag.hex()} of a delivery that its sender has not settled"
            raise LinkError(INVALID_FIELD, text)

    def begin(self, number: int, tag: bytes) -> None:
        """Note a delivery."""
        self.tags[number] = tag
        self.outcomes[tag] = b""

    def decide(self, first: int, last: int, outcome: bytes) -> None:
        """Note the outcome of deliveries in a row."""
        for number in range(first, last + 1):
            tag = self.tags.get(number)
            if tag is not None:
                self.outcomes[tag] = outcome

    def settle(self, first: int, last: int) -> bool:
        """Forget the deliveries of a range; return whether there were any."""
        span = (last - first) % _SERIALS
        if span < len(self.tags):
            numbers = [(first + at) % _SERIALS for at in range(span + 1)]
        else:
            numbers = [each for each in self.tags if (each - first) % _SERIALS <= span]
        settled = [self.tags.pop(each, None) for each in numbers]
        for tag in settled:
            if tag is not None:
                self.outcomes.pop(tag, None)
        return any(tag is not None for tag in settled)

    def take_from(self, before: Unsettled, asked: Attach) -> None:
        """Go on with the outcomes of an earlier attachment that the peer has not settled."""
        known = asked.unsettled or {}
        for tag, outcome in before.outcomes.items():
            if outcome and (asked.incomplete_unsettled or tag in known):
                self.outcomes[tag] = outcome

    def reported(self, room: int) -> tuple[dict[bytes, Any], bool]:
        """Return the deliveries for the attach of the broker, and whether some are left out."""
        reported: dict[bytes, Any] = {}
        for tag, outcome in self.outcomes.items():
            room -= len(tag) + len(outcome) + _ENTRY_BYTES
            if room < 0:
                return reported, True
            reported[tag] = decode_performative(outcome)[0]
        return reported, False

    def resumed(self, number: int, tag: bytes, *, settled: bool) -> bytes:
        """Take a resumed delivery; return its outcome, b"" if none is expected or known."""
        outcome = self.outcomes.get(tag, b"")
        if settled:
            self.outcomes.pop(tag, None)
            return b""
        if outcome:
            self.tags[number] = tag
        return outcome
