"""A link by which the broker receives: a publisher.

target                      exchange             routing key
/queues/Q                   the default one      Q
/exchanges/X/K              X                    K
/queue, /exchange/X         the default one, X   subject of each message     (by subject)
null                        from `to` of each message                        (by message)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.c_types import C, Done, Py, i32, i64, isize
from harebell.base.errors import DecodeError, ErrorKind, Refusal
from harebell.base.message import FAMILY_1_0, Message, Properties
from harebell.front.amqp_1_0.errors import (
    DECODE_ERROR,
    ILLEGAL_STATE,
    INVALID_FIELD,
    MESSAGE_SIZE_EXCEEDED,
    NOT_ALLOWED,
    RESOURCE_DELETED,
    RESOURCE_LIMIT_EXCEEDED,
    TRANSFER_LIMIT_EXCEEDED,
    AmqpError,
    LinkError,
    composite,
    of_link,
)
from harebell.front.amqp_1_0.nodes import check_again, drop_owned
from harebell.front.amqp_1_0.session import near
from harebell.front.amqp_1_0.special import destination_of, prepared, trace_publish
from harebell.front.amqp_1_0.transactions import transaction_of
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.channel_details import details_of
from harebell.front.common.interceptors import intercepted
from harebell.front.common.permission import EXCHANGE
from harebell.front.limits import HEADERS_SHORT_BYTES, LINK_CREDIT
from harebell.front.operations.long_headers import check_long_headers
from harebell.front.operations.publishing_channel import PublishingChannel
from harebell.kernels.output import OutputPassage, Passage
from harebell.kernels.performatives import ECHO
from harebell.kernels.sections import parse_properties, split
from harebell.model.exchange.kind import Exchange
from harebell.model.feedback import is_duplicate
from harebell.model.queue.contract import PENDING, REJECTED, Queue, unrouted
from harebell.wire.v1.composites import Rejected, Released

if TYPE_CHECKING:
    from harebell.auth.users import User
    from harebell.front.amqp_1_0.addresses import Address, Addressing
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.amqp_1_0.partial_delivery import PartialDelivery
    from harebell.front.amqp_1_0.session import Session

_FAMILY: i32 = FAMILY_1_0
_FIXED: i32 = 0
_BY_SUBJECT: i32 = 1
_BY_MESSAGE: i32 = 2
_MODE_SETTLED: i32 = 1
_MODE_UNSETTLED: i32 = 0
_PENDING: i32 = PENDING
_REJECTED: i32 = REJECTED
_CREDIT: i32 = LINK_CREDIT
_SHORT: i32 = HEADERS_SHORT_BYTES
_RENEW: i32 = LINK_CREDIT // 2
_NO_DELIVERY: i64 = -1
_UNSAID: i64 = -1
RELEASED = Released().encoded()


class ReceivingLink(PublishingChannel):
    """A link by which messages arrive. It publishes as a channel of another version does.

    Args:
        session: the session it is attached to.
        name: of the link.
        handle: of both sides.
        address: what its target names.

    Attributes:
        connection: of the session.
        destination: where its messages go: to one place, by subject, or by `to`.
        exchange, key: of a fixed destination.
        addressing: how addresses in messages are read.
        mode: snd-settle-mode of the peer: whether deliveries come settled.
        second: whether its rcv-settle-mode is second.
        message_max: largest message, in bytes of its sections.
        credit: deliveries that the peer may still send.
        delivery_count: deliveries that it has sent.
        unconfirmed: those that wait for their outcome.
        partial: the delivery that has come in part; None without one.
        owned: the name of the queue that was made for the link; "" for none.
        terminus: what is known of it by its name; None for a link without one.
        unsettled: with rcv-settle-mode second, what its sender has not settled; else None.
        discards: whether a message that no queue gets is accepted, as on a topic.
        resumes_only: whether it takes resumed deliveries and no new ones.
        due: whether the session looks at its credit at the end of the turn, or it is held.
        held: whether its credit waits for the consumers of its queue.
    """

    def __init__(self, session: Session, name: str, handle: int, address: Address | None) -> None:
        super().__init__(session.number, session.vhost)
        # What the link counts is what its session counts.
        self.counters = session.counters
        self.details = details_of(session)
        self.session = session
        self.connection: Connection = session.connection
        self.name = name
        self.handle: i32 = handle
        self.address = address
        self.destination: i32 = _FIXED
        self.exchange = ""
        self.key = ""
        if address is None:
            self.destination = _BY_MESSAGE
        elif address.queue:
            self.key = address.queue
        else:
            self.exchange = address.exchange
            self.key = address.key or ""
            self.destination = _FIXED if address.key is not None else _BY_SUBJECT
        self.addressing: Addressing = session.connection.addressing
        self.mode: i32 = 2
        self.second = False
        self.message_max: isize = session.connection.message_max
        self.credit: i32 = 0
        self.delivery_count: i64 = 0
        self.unconfirmed: i32 = 0
        self.partial: Py[PartialDelivery | None] = None
        self.owned = ""
        self.terminus: Any = None
        self.unsettled: Any = None
        self.discards = False
        self.resumes_only = False
        self._current: i64 = _NO_DELIVERY
        self.due = False
        self.held = False

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""
        return self.session.user

    # --- a delivery -----------------------------------------------------------------------------

    def begin_deliveries(self, count: i32) -> Done:
        """Count deliveries, of which the first transfers have arrived.

        Raises:
            LinkError: the peer has no credit.
        """
        if self.credit < count:
            raise LinkError(TRANSFER_LIMIT_EXCEEDED, "a delivery without link-credit")
        self.credit -= count
        self.delivery_count += count
        if self.credit <= _RENEW and not self.due:
            self.due = True
            self.session.renewing.append(self)
        return 0

    def check_settled(self, settled: bool) -> Done:
        """Refuse a delivery that is settled otherwise than its sender has said.

        Raises:
            LinkError: invalid-field.
        """
        if self.mode == (_MODE_UNSETTLED if settled else _MODE_SETTLED):
            mode, flag = ("unsettled", "true") if settled else ("settled", "false")
            text = f"sender settle mode is '{mode}' but transfer settled flag is interpreted as"
            raise LinkError(INVALID_FIELD, f"{text} being '{flag}'")
        return 0

    def parsed(self, data: bytes) -> tuple[Properties, bytes]:
        """Return the sections before the body of a whole message, and its body.

        Raises:
            LinkError: decode-error.
        """
        try:
            raw, body, family = split(data)
            return parse_properties(raw, family), body
        except DecodeError as error:
            raise LinkError(DECODE_ERROR, f"failed to parse message: {error.text}") from None

    def begin_state(self, state: bytes) -> None:
        """Note the transaction that the delivery which is taken next is part of, if any.

        Raises:
            LinkError: invalid-field, the state is another one; unknown-id.
        """
        self.transaction = transaction_of(self.session, state) if state else None

    def answers(self) -> bool:
        """True if an outcome of the current delivery is expected."""
        return self._current != _NO_DELIVERY

    def take(
        self, number: i64, settled: bool, tag: bytes, properties: Properties, body: bytes
    ) -> Done:
        """Take a whole delivery: publish its message, and note the outcome.

        Args:
            number: its delivery-id.
            settled: whether its sender expects no outcome.
            tag: its delivery-tag.
            properties: the sections before the body.
            body: see `harebell.base.message`.
        """
        size: isize = len(properties.raw) + len(body)
        if size > self.message_max:
            raise self.too_large(size)
        if len(properties.raw) > _SHORT:
            self.connection.charge(len(properties.raw))
            check_long_headers(properties)
        self._current = _NO_DELIVERY if settled else number
        if self.resumes_only or self.unsettled is not None:
            self._check_new(settled, tag)
        if self.destination != _FIXED:
            self._take_addressed(tag, properties, body)
        else:
            self._take_fixed(properties, body, not settled)
        if self.unsettled is not None and not settled:
            self.unsettled.begin(number, tag)
        return 0

    def _take_fixed(self, properties: Properties, body: bytes, answered: bool) -> Done:
        """Publish a message to the destination of the link."""
        try:
            self.route(self.connection, 0, self.exchange, self.key, properties, body, answered)
        except Refusal as refusal:
            if refusal.kind is ErrorKind.NOT_FOUND:
                # The exchange was deleted: the message may be sent elsewhere.
                self.refuse(RELEASED)
            raise
        except LinkError as error:
            # A wrong x-cc names no queue, as an exchange that was deleted.
            if error.condition == INVALID_FIELD:
                self.refuse(RELEASED)
            raise
        return 0

    def _check_new(self, settled: bool, tag: bytes) -> None:
        """Refuse a new delivery that may not come now.

        Raises:
            LinkError: illegal-state, only resumed ones may come; invalid-field, the tag is in use.
        """
        if self.resumes_only:
            text = "a new delivery after incomplete-unsettled: the link has to be attached again"
            raise LinkError(ILLEGAL_STATE, text)
        if not settled:
            self.unsettled.check(tag)

    def take_resumed(self, number: int, tag: bytes, settled: bool) -> None:
        """Take a resumed delivery: its message came before, and its outcome is known or nothing."""
        if self.unsettled is None:
            return
        outcome = self.unsettled.resumed(number, tag, settled=settled)
        if outcome:
            self.session.send_outcome(number, outcome)

    def _take_addressed(self, tag: bytes, properties: Properties, body: bytes) -> None:
        """Publish a message that says itself where it goes."""
        answered = self._current != _NO_DELIVERY
        try:
            exchange, key = destination_of(self, properties)
            self.route(self.connection, 0, exchange, key, properties, body, answered)
        except Exception as error:
            found = of_link(error)
            if self.destination != _BY_MESSAGE or not isinstance(found, LinkError):
                raise
            # A wrong address of a message is no error of an anonymous link.
            if not answered:
                raise LinkError(found.condition, found.text, {"delivery-tag": tag}) from None
            self.refuse(Rejected(composite(found.condition, found.text, found.info)).encoded())

    def refuse(self, outcome: bytes) -> None:
        """Note an encoded outcome of the current delivery, if one is expected."""
        if self._current != _NO_DELIVERY:
            self.unconfirmed += 1
            self.session.outcomes.refused(self, self._current, outcome)
            self.session.enlist()

    def publish(
        self, flags: i32, exchange_name: str, routing_key: str, properties: Properties, body: bytes
    ) -> i32:
        """Publish a message that is no delivery of the link."""
        self._current = _NO_DELIVERY
        connection = self.connection
        return self.route(connection, flags, exchange_name, routing_key, properties, body, False)

    def routed(
        self, message: Message, queues: tuple[Queue, ...], flags: i32, properties: Properties
    ) -> Done:
        """Publish a routed message, at once or in the transaction."""
        if self.router.tracer is not None:
            trace_publish(self, message, properties, queues)
        if self.transaction is not None:
            self.transaction.post(self, message, queues)
        else:
            self.accept(message, queues, flags)
        return 0

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: i32) -> i32:
        """Publish a routed message to its queues, and note the outcome; return the result bits."""
        if not queues:
            return self._unrouted(message)
        result: i32 = 0
        full: Queue | None = None
        queue: Queue
        for queue in queues:
            answer: i32 = queue.publish(message)
            if answer & _REJECTED:
                full = queue
            result |= answer
        if self._current == _NO_DELIVERY:
            return result
        if full is not None:
            self.refuse(_exceeded(full.name))
            return result
        self.unconfirmed += 1
        self.session.outcomes.accepted(self, self._current, result & _PENDING != 0)
        return result

    def _unrouted(self, message: Message) -> i32:
        """Note the outcome of a message without queues: released, and dropped if it is settled."""
        result: i32 = unrouted(message)
        duplicate: bool = is_duplicate(message)
        if self.discards and not duplicate:
            self._count_dropped()
        if duplicate or self.discards:
            # Its sender has succeeded, when the message that it repeats is on disk.
            if self._current != _NO_DELIVERY:
                self.unconfirmed += 1
                pending: bool = result & _PENDING != 0
                self.session.outcomes.accepted(self, self._current, pending)
            return result
        if self._current == _NO_DELIVERY:
            self._count_dropped()
        else:
            self.counters.return_unroutable += 1
            self.at_exchange.return_unroutable += 1
            self.refuse(RELEASED)
        self._check_target()
        return result

    def _count_dropped(self) -> Done:
        self.counters.drop_unroutable += 1
        self.at_exchange.drop_unroutable += 1
        return 0

    def _check_target(self) -> None:
        """Detach the link if the queue that is its target was deleted.

        Raises:
            LinkError: resource-deleted.
        """
        address = self.address
        if address is not None and address.queue and address.queue not in self.vhost.queues:
            if address.queue in self.router.replies:
                return
            text = f"queue '{address.queue}' in vhost '{self.vhost.name}' was deleted"
            raise LinkError(RESOURCE_DELETED, text)

    # --- deliveries that repeat each other ------------------------------------------------------

    def passage(self, flags: i32, exchange_name: str, routing_key: str) -> C[Passage | None]:
        """Return the passage of settled deliveries like the last one, as credit and window allow.

        Links that handle each delivery themselves publish nothing, and have none.
        """
        if self.destination != _FIXED or self.resumes_only or self.unsettled is not None:
            return None
        self._current = _NO_DELIVERY
        connection = self.connection
        passage: Passage | None = self.repeated(
            connection, 0, exchange_name, routing_key, _FAMILY, False, False
        )
        if passage is not None:
            allowed: i64 = min(self.credit, self.session.window)
            passage.limit = min(passage.limit, allowed)
        return passage

    def passed(self, passage: OutputPassage) -> Done:
        """Count the deliveries that have gone into the output of a consumer."""
        return self.count_output(self.connection, passage)

    def count_passed(self, connection: BaseConnection, copies: i64, count: i64) -> Done:
        """Count the deliveries of a passage, which has let in no more than credit and window."""
        self.session.count_incoming(count)
        self.begin_deliveries(count)
        return PublishingChannel.count_passed(self, connection, copies, count)

    def publish_failed(self, error: Exception) -> None:
        """Detach the link, or end more: a delivery of a passage was refused."""
        self.session.caught(error, self)

    # --- for `PublishingChannel` ----------------------------------------------------------------

    def intercepted(self, properties: Properties) -> Properties:
        """Add the configured annotations to a published message."""
        return intercepted(self.connection, properties)

    def prepared(
        self, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
    ) -> tuple[Message, tuple[Queue, ...]]:
        """Check and route a message with fields that the broker processes."""
        return prepared(self, exchange, routing_key, properties, body)

    def internal_exchange(self, text: str) -> Exception:
        """Make the error for an internal exchange."""
        return LinkError(NOT_ALLOWED, text)

    def too_large(self, size: int) -> Exception:
        """Make the error for a message over the limit."""
        return LinkError(
            MESSAGE_SIZE_EXCEEDED,
            f"message size ({size} bytes) > maximum message size ({self.message_max} bytes)",
        )

    # --- credit ---------------------------------------------------------------------------------

    def confirmed(self, count: int, stored: bool) -> None:
        """Note that deliveries have their outcome.

        Args:
            count: how many.
            stored: whether they are accepted.
        """
        self.unconfirmed -= count
        if stored:
            self.counters.confirm += count
            self.at_exchange.confirm += count
        if self.credit <= _RENEW and not self.session.ended:
            self.renew()

    def attached(self) -> None:
        """Give the first credit."""
        self.renew()

    def renew(self) -> None:
        """Give the peer credit, unless too many of its deliveries wait for their outcome."""
        if self.held:
            return
        self.due = False
        session = self.session
        if session.links.get(self.handle) is not self:
            return
        waiting = self.unconfirmed if self.unsettled is None else len(self.unsettled.outcomes)
        if self.credit <= _RENEW and waiting < _CREDIT:
            ahead_of = self.connection.ahead_of
            if ahead_of is not None and not waiting:
                registry, timers = self.connection.registry, self.connection.broker.timers
                self.due = self.held = registry.held_credit.hold(self, ahead_of, timers)
                if self.held:
                    return
            self.credit = _CREDIT
            self.send_state()

    def caught_up(self) -> None:
        """Give credit that was held: consumers have taken what the link has published."""
        self.held = False
        if not self.session.ended:
            self.renew()

    def send_state(self) -> None:
        """Send the state of the link."""
        self.session.send_flow(self.handle, self.delivery_count, self.credit, _UNSAID, False)

    def take_flow(self, delivery_count: i64, credit: i64, flags: i32) -> Done:
        """Take the state of the link from the peer, which decides about the delivery-count.

        Args:
            delivery_count: of the peer; -1 if it was left out.
            credit: without a meaning here.
            flags: DRAIN, ECHO.
        """
        if delivery_count >= 0:
            count: i64 = near(delivery_count, self.delivery_count)
            # It may pass over credit; deliveries that it counts twice do not exist.
            self.credit = max(self.credit - max(count - self.delivery_count, 0), 0)
            self.delivery_count = max(count, self.delivery_count)
        if flags & ECHO:
            self.send_state()
        return 0

    # --- end ------------------------------------------------------------------------------------

    def serve(self) -> Done:
        """Do nothing: this link has no deliveries."""
        return 0

    def fail(self, error: AmqpError) -> None:
        """Detach the link because of an error."""
        # The outcome is not due any more after a detach; it is what a sender waits for.
        self.session.outcomes.report()
        self.session.detach(self, error)
        self.end()

    def check_again(self) -> None:
        """End the session if the user may not publish where the link does any more."""
        # The next publish looks its exchange up again.
        self._exchange_epoch = -1
        if self.destination != _BY_MESSAGE:
            check_again(self.session, WRITE, EXCHANGE, self.exchange)

    def end(self) -> None:
        """Drop what has come in part, and the queue that was made for the link.

        The end of a session drops the queues of its links itself, behind their deliveries.
        """
        if self.partial is not None:
            self.partial.drop()
            self.partial = None
            self.connection.scanner.pending -= 1
        if self.owned and not self.session.ended:
            drop_owned(self)

    def close(self) -> None:
        """End the link, as a channel is closed."""
        self.end()


def _exceeded(name: str) -> bytes:
    """Return the encoded outcome of a message that a full queue has refused."""
    text = f"queue '{name}' exceeded maximum length"
    info = {"queue": name, "reason": "maxlen"}
    return Rejected(composite(RESOURCE_LIMIT_EXCEEDED, text, info)).encoded()
