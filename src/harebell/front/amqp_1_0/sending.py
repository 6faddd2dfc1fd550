"""A link by which the broker sends: a consumer of a queue (AMQP 1.0 2.6.7).

    credit          deliveries that the peer still takes      rises and falls with its flows
    delivery_count  deliveries that were sent                 also what a drain has passed over

A delivery takes one of the credit and one of the window of its session for each of its frames. What
the broker settles itself (snd-settle-mode settled) has no entry in `Session.unacked`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import READ
from harebell.base.c_types import C, Done, Py, i32, i64, isize
from harebell.base.limits import MESSAGE_OVERHEAD_BYTES
from harebell.base.message import FAMILY_1_0, FAMILY_1_0_SECTIONS, Message
from harebell.front.amqp_1_0.delivery import send_in_parts
from harebell.front.amqp_1_0.errors import (
    MESSAGE_SIZE_EXCEEDED,
    RESOURCE_DELETED,
    AmqpError,
    LinkError,
)
from harebell.front.amqp_1_0.nodes import check_again
from harebell.front.amqp_1_0.session import SERIALS, near
from harebell.front.common.event_exchange import consumer_deleted
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.interceptors import stamped_as_sent
from harebell.front.common.permission import QUEUE
from harebell.front.convert import converted
from harebell.front.convert.amqp_1_0 import Milliseconds
from harebell.front.limits import OUTPUT_HIGH_BYTES, REPLIES_UNSENT_BYTES
from harebell.kernels.output import OutputPassage
from harebell.kernels.performatives import DRAIN, ECHO
from harebell.kernels.transfers_1_0 import TransferPassage, delivered_payload
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue
from harebell.model.queue.stream import StreamQueue
from harebell.model.resource import rendered
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.amqp_1_0.session import Session

_ACTIVE = Symbol("rabbitmq:active")
_FAMILY: i32 = FAMILY_1_0
_SECTIONS: i32 = FAMILY_1_0_SECTIONS
_MASK: i64 = (1 << 32) - 1
_OVERHEAD: isize = MESSAGE_OVERHEAD_BYTES
_OUTPUT_HIGH: isize = OUTPUT_HIGH_BYTES
_REPLIES: isize = REPLIES_UNSENT_BYTES


class SendingLink(Consumer):
    """Writes deliveries to its session.

    Args:
        session: the session it is attached to.
        queue: the queue that it gets messages from.
        name: of the link.
        handle: of both sides.
        tag: its consumer tag, unique in the session.
        settles: whether deliveries are settled when they are sent.
        browses: whether messages stay in the queue, whatever becomes of their deliveries.
        message_max: largest message that the peer takes, in bytes of its sections; 0 for any.
        **options: as for `Consumer`.

    Attributes:
        credit: deliveries that the peer still takes.
        delivery_count: deliveries that were sent, or passed over by a drain.
        drains: whether the peer has asked for what is there now, and waits for the answer.
        owned: the name of the queue that was made for the link; "" for none.
        ended: whether it gets no more deliveries.
        terminus: what is known of it by its name; None for a link without one.
        resumption: what is sent before new deliveries; None if there is nothing.
        generation: how often it was resumed, as in its delivery-tags; 0 for never.
    """

    def __init__(
        self,
        session: Session,
        queue: Queue,
        name: str,
        handle: int,
        tag: str,
        *,
        settles: bool,
        browses: bool = False,
        message_max: int = 0,
        **options: Any,
    ) -> None:
        # A stream keeps its messages: it has nothing that could count as acknowledged.
        reads = isinstance(queue, StreamQueue)
        # With a limit it may have to give a message back, which needs its position.
        super().__init__(queue, tag, no_ack=settles and not reads and not message_max, **options)
        self.session = session
        self.connection: Connection = session.connection
        self.name = name
        self.handle: i32 = handle
        self.settles = settles
        self.browses = browses
        self._has_more = False
        self.credit: i64 = 0
        self.delivery_count: i64 = 0
        self.drains = False
        self.message_max: i64 = message_max
        self._has_answer = False
        self.owned = ""
        self.ended = False
        self.terminus: Any = None
        self.resumption: Any = None
        self.generation: i64 = 0
        self._resumed_tags: Py[dict[int, bytes] | None] = None

    # --- deliveries -----------------------------------------------------------------------------

    def ready(self) -> C[bool]:
        """True if there is credit, a window, and space in the connection's output."""
        if self.credit <= 0 or self.ended or self.resumption is not None:
            return False
        return self.session.can_send()

    def readable(self, message: Message) -> C[Message]:
        """Return a message of any version as one of 1.0, with what is added to all that is sent."""
        if message.family != _FAMILY and message.family != _SECTIONS:
            message = converted(message, _FAMILY)
        if self.connection.stamps:
            message = stamped_as_sent(self.connection, message, Milliseconds)
        return message

    def tag_of(self, number: i64) -> C[bytes]:
        """Return the delivery-tag of an unsettled delivery, which no other one of its link has.

        Delivery-ids begin again with each session.
        """
        if self._resumed_tags is not None and number in self._resumed_tags:
            return self._resumed_tags[number]
        tag: bytes = (number & _MASK).to_bytes(4)
        return self.generation.to_bytes(4) + tag if self.generation else tag

    def note_tag(self, number: int, tag: bytes) -> None:
        """Note the tag of a delivery that was made with it before the link was resumed."""
        if self._resumed_tags is None:
            self._resumed_tags = {}
        self._resumed_tags[number] = tag

    def deliver(self, message: Message, position: i64, redelivered: bool) -> Done:
        """Write the transfers of a message, and store the unsettled delivery."""
        session = self.session
        message = self.readable(message)
        number: i64 = session.next_tag
        session.next_tag = number + 1
        self.credit -= 1
        self.delivery_count += 1
        too_large: bool = False
        if self.message_max > 0:
            too_large = message.footprint() - _OVERHEAD > self.message_max
        if not too_large:
            self._write(number, message, redelivered)
        if position >= 0 and not self.browses:
            if self.settles and not too_large:
                self.queue.settle(position)
            else:
                self.unacked += 1
                session.unacked.deliver(self, position, number)
        if too_large:
            self._refuse_later(message.footprint() - _OVERHEAD)
        elif session.router.tracer is not None:
            delivered(session, message, self.queue.name, redelivered)
        return 0

    def _write(self, number: i64, message: Message, redelivered: bool) -> Done:
        """Write the transfers of a message, or let them wait for the window."""
        session, connection = self.session, self.connection
        first: bool = not redelivered and message.deliveries == 0
        ttl: i64 = -1
        if message.due:
            ttl = max(message.due - connection.broker.clock.steady, 0)
        # The broker needs no tag: dispositions come by delivery-id. None is made of that.
        tag: bytes | None = b"" if self.settles else None
        if tag is None and (self.generation or self._resumed_tags is not None):
            tag = self.tag_of(number)
        count: isize = connection.frames.transfer(
            session.number,
            self.handle,
            number & _MASK,
            tag,
            self.settles,
            first,
            message.deliveries,
            ttl,
            message,
            connection.frame_max,
            session.remote_window,
        )
        if count == 0:
            payload = delivered_payload(message, first, message.deliveries, ttl)
            tag = self.tag_of(number) if tag is None else tag
            send_in_parts(session, self.handle, number, tag, payload, settled=self.settles)
            return 0
        session.remote_window -= count
        session.outgoing_id += count
        if not connection.dirty:
            connection.touch()
        return 0

    def passage(self, exchange: str, routing_key: str, family: i32) -> C[OutputPassage | None]:
        """Return how messages of a route get into its output without being kept."""
        session, connection = self.session, self.connection
        if family != _FAMILY or connection.stamps or session.router.tracer is not None:
            return None
        passage: OutputPassage = TransferPassage(
            self,
            connection.frames,
            session.number,
            self.handle,
            session.next_tag,
            exchange,
            routing_key,
            connection.frame_max,
            _OUTPUT_HIGH,
        )
        passage.limit = min(self.credit, session.remote_window)
        return passage

    def passed(self, count: i64) -> Done:
        """Note that messages have got into its output through a passage, each in one frame."""
        session = self.session
        session.next_tag += count
        session.remote_window -= count
        session.outgoing_id += count
        self.credit -= count
        self.delivery_count += count
        if not self.connection.dirty:
            self.connection.touch()
        return 0

    def _refuse_later(self, size: int) -> None:
        """Detach the link in a later turn: its peer does not take a message.

        The message counts as delivered until then, and goes back with the others. Not now, as the
        queue is delivering.
        """
        self.credit = 0

        def step() -> bool:
            if not self.ended and not self.session.ended:
                error = self.too_large(size)
                peer = self.connection.peer
                self.connection.log("warning", f"{peer}: link '{self.name}' ended: {error.text}")
                self.fail(error)
            return True

        self.connection.registry.work.later(step)

    def again(self) -> i32:
        """Request another turn for consumers that were not fully served."""
        self._has_more = True
        return self.session.connection.ask_for_turn()

    def attached(self) -> None:
        """Tell the peer whether it is the single active consumer; credit comes from the peer."""
        self._has_answer = True
        if getattr(self.queue, "single", False) and not self.browses:
            self.is_active(self.queue.consumers.has_active(self))

    def is_active(self, active: bool) -> None:
        """Tell the peer that it becomes the single active consumer, or is it no more."""
        session = self.session
        if not self._has_answer or self.ended or session.ended:
            return
        flow = session.flow(self.handle, self.delivery_count, self.credit)
        flow.properties = {_ACTIVE: active}
        self.connection.send(session.number, flow)

    def too_large(self, size: int) -> LinkError:
        """Make the error for a message that the peer does not take."""
        return LinkError(
            MESSAGE_SIZE_EXCEEDED,
            f"message size ({size} bytes) > maximum message size ({self.message_max} bytes)",
        )

    # --- credit ---------------------------------------------------------------------------------

    def take_flow(self, delivery_count: i64, credit: i64, flags: i32) -> Done:
        """Take credit from the peer, then send what is there.

        Args:
            delivery_count: of the peer; -1 if it does not know it yet, which means the initial one.
            credit: that it gives from there on; -1 if it was left out.
            flags: DRAIN, ECHO.
        """
        if credit >= 0:
            limit: i64 = near(max(delivery_count, 0), self.delivery_count) + credit
            self.credit = max(limit - self.delivery_count, 0)
        self.drains = flags & DRAIN != 0
        self.serve()
        if flags & ECHO and not flags & DRAIN:
            self.send_state(drain=False)
        return 0

    def serve(self) -> None:
        """Deliver what is there, and answer a drain when nothing is left."""
        queue = self.queue
        if queue.deleted or self.ended:
            return
        before = self.delivery_count
        self._has_more = False
        if self.resumption is not None:
            self.resumption.send(self)
        if self.credit > 0:
            if self.browses:
                # Consumers come first: a browser sees what they leave.
                queue.drain()
            else:
                queue.serve(self)
        if not self.drains or self.ended:
            return
        if self._is_drained(before):
            self.drains = False
            self.delivery_count += self.credit
            self.credit = 0
            self.send_state(drain=True)
        else:
            self.again()

    def _is_drained(self, before: int) -> bool:
        """True if the queue has nothing more for the link now.

        Args:
            before: what `delivery_count` was before the queue was served.
        """
        if self.credit <= 0:
            return True
        queue = self.queue
        if self.resumption is not None:
            return not self.resumption.order
        if self.browses:
            return self.session.can_send() and not self._has_more
        if isinstance(queue, StreamQueue):
            reading = queue.reading_of(self)
            return reading is None or reading[1] == 0
        if not queue.ready_count():
            return True
        if not self.session.can_send():
            # The rest is sent when the peer has room again.
            return False
        if self.delivery_count != before or queue.looks_for(self):
            # The work of this turn is used up. A selector may still find what it selects.
            return False
        # What is left is not for this link: another consumer is active, or its own messages wait.
        # A large message is read from the disk first.
        return not queue.fetch_next(self.again)

    def send_state(self, *, drain: bool) -> None:
        """Send the state of the link."""
        available = min(self._available(), SERIALS - 1)
        credit = min(self.credit, SERIALS - 1)
        self.session.send_flow(self.handle, self.delivery_count, credit, available, drain)

    def _available(self) -> int:
        """Return how many messages wait for the link."""
        queue = self.queue
        if isinstance(queue, StreamQueue):
            reading = queue.reading_of(self)
            return 0 if reading is None else reading[1]
        return int(queue.ready_count())

    # --- end ------------------------------------------------------------------------------------

    def queue_deleted(self) -> None:
        """Detach the link: its queue was deleted."""
        if self.ended:
            return
        session = self.session
        consumer_deleted(session, self)
        name = rendered("queue", self.queue.name, session.vhost.name)
        self.ended = True
        self.resumption = None
        session.consumers.pop(self.tag, None)
        if not session.ended:
            session.detach(self, LinkError(RESOURCE_DELETED, f"{name} was deleted"))

    def fail(self, error: AmqpError) -> None:
        """Detach the link because of an error."""
        self.session.detach(self, error)
        self.end()

    def end(self) -> None:
        """Stop: the consumer is removed, and its deliveries are requeued."""
        if self.ended:
            return
        self.ended = True
        self.connection.handlers.end_link(self)

    def close(self) -> None:
        """Stop: the session ends, and removes its consumers itself."""
        self.ended = True

    def check_again(self) -> None:
        """End the session if the user may not read the link's queue any more."""
        check_again(self.session, READ, QUEUE, self.queue.name)


class ReplyLink(SendingLink):
    """A link for direct replies: what the peer has no credit for is dropped."""

    def ready(self) -> C[bool]:
        """True if the peer has credit, and the unsent replies are below their limit."""
        session = self.session
        if self.ended or self.credit <= 0 or session.remote_window <= 0 or session.backlog:
            return False
        # No queue keeps replies, so more output is accepted than for other links.
        return session.connection.out.size < _REPLIES
