"""The channels of both APIs, written once: publishing, consuming, declaring.

Methods that wait are marked and yield their waits (`waits`).
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from typing import Any, Generic, Literal, Protocol, TypeVar, Unpack

from harebell.base.message import Message as WireMessage
from harebell.client.errors import AMQPError, BulkPublishFailed, PublishReturned
from harebell.client.limits import CLIENT_PREFETCH, PUBLISH_WINDOW
from harebell.client.message import (
    Body,
    Item,
    Message,
    PropertyArguments,
    encode_arguments,
    outgoing,
    outgoing_item,
)
from harebell.client.protocol import histories, leases, queries, stages
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import OPEN, CoreConsumer, Got, Mode
from harebell.client.protocol.confirms import MANDATORY, Bulk, Confirm
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shown import CHANNEL_PARTS, without
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.verbs import Verbs
from harebell.client.protocol.waits import (
    BLOCK,
    FLUSH,
    RECOVERED,
    ROOM,
    TURN,
    USABLE,
    Ending,
    Following,
    Scope,
    Steps,
    Until,
    Written,
    own,
    publishing,
    steps,
    verb,
    written,
)

DeliveryT = TypeVar("DeliveryT")
PendingConfirmT = TypeVar("PendingConfirmT")
ConsumerT = TypeVar("ConsumerT")
WorkerT = TypeVar("WorkerT")
ItemsT = TypeVar("ItemsT", bound=Iterable[Item] | AsyncIterable[Item])

Outcome = Literal["reject", "requeue", "requeue_once", "ack"]
"""What becomes of a message whose handler has failed."""
OnError = Outcome | Callable[[Any, Exception], Outcome]

_PUBLISHES_PER_TURN = 256


class Owner(Protocol):
    """The interface of a channel to its connection."""

    def survives(self, error: AMQPError | None) -> bool:
        """True if the connection recovers from this error, or is recovering already."""

    def remove_channel(self, number: int) -> None:
        """Remove a channel that the broker has closed."""

    def forget_channel(self, number: int) -> None:
        """Remove a channel that the program has closed, possibly while disconnected."""


class SharedChannel(Generic[DeliveryT, PendingConfirmT, ConsumerT, WorkerT, ItemsT]):
    """A channel of either API.

    Args:
        connection: the open connection that it belongs to, also after a recovery.
        core: its protocol state; another one after a recovery.

    Attributes:
        inboxes: the inboxes of its consumers.
        on_return: called with each returned message that matches no unconfirmed publish.
    """

    connection: Any
    _delivery_type: Callable[..., DeliveryT]
    _pending_confirm_type: Callable[..., PendingConfirmT]
    consumer_type: Callable[..., ConsumerT]
    _worker_type: Callable[..., WorkerT]

    def __init__(self, connection: Owner, core: CoreChannel) -> None:
        self.connection = self._connection = connection
        self.inboxes: set[Inbox] = set()
        self.on_return: Callable[[PublishReturned], None] | None = None
        self._flowing: Call[None] = Call()
        self.adopt(core)

    @property
    def number(self) -> int:
        """The channel number."""
        return self.core.number

    @property
    def is_open(self) -> bool:
        """Whether the channel can be used; False while its connection recovers."""
        return self.core.state is OPEN

    @property
    def confirms(self) -> bool:
        """Whether `publish` waits for the broker's confirm; not every version of AMQP has them."""
        return self.core.wants_confirms

    def __repr__(self) -> str:
        """Return the kind, the number and the state, for people."""
        state = "open" if self.is_open else f"closed: {self.core.error}"
        url = getattr(self._connection, "url", None)
        where = "" if url is None else f" on {url.address}"
        return f"<{type(self).__name__} {self.number}{where}, {state}>"

    def __dir__(self) -> list[str]:
        """Return the names for completion, without parts that only the client itself uses."""
        return without(CHANNEL_PARTS, super().__dir__())

    declare_exchange = verb(Verbs.declare_exchange)
    delete_exchange = verb(Verbs.delete_exchange)
    bind_exchange = verb(Verbs.bind_exchange)
    unbind_exchange = verb(Verbs.unbind_exchange)
    declare_queue = verb(Verbs.declare_queue)
    bind_queue = verb(Verbs.bind_queue)
    unbind_queue = verb(Verbs.unbind_queue)
    purge_queue = verb(Verbs.purge_queue)
    delete_queue = verb(Verbs.delete_queue)
    qos = verb(Verbs.qos)
    recover = verb(Verbs.recover)
    lease_open = verb(leases.lease_open)
    lease_claim = verb(leases.lease_claim)
    lease_commit = verb(leases.lease_commit)
    lease_release = verb(leases.lease_release)
    lease_renew = verb(leases.lease_renew)
    lease_close = verb(leases.lease_close)
    history = verb(histories.history)
    span = verb(Verbs.span)
    read_arrow = verb(Verbs.read_arrow)
    queue_names = verb(Verbs.queue_names)
    dead_letter_queues = verb(Verbs.dead_letter_queues)
    report_query = verb(queries.report_query)
    stage_open = verb(stages.stage_open)
    stage_append = verb(stages.stage_append)
    stage_commit = verb(stages.stage_commit)
    stage_abort = verb(stages.stage_abort)
    stage_discard = verb(stages.stage_discard)
    publisher_declare = verb(stages.publisher_declare)
    publisher_forget = verb(stages.publisher_forget)

    # --- publishing -----------------------------------------------------------------------------

    @publishing
    def publish(
        self,
        body: Body | Message,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Unpack[PropertyArguments],
    ) -> Call[None]:
        """Publish a message and wait until the broker has confirmed it.

        On a channel without confirms, or in a transaction, it returns when the message is written.

        Args:
            body: the body, or a `Message`.
            exchange: the exchange; "" is the default exchange, whose routing keys are queue names.
            routing_key: what the exchange compares with its bindings.
            mandatory: fail if it is unroutable; without it the broker drops such a message, and
                confirms it all the same.
            properties: persistent=True (kept over a restart), content_type, headers and so on.

        Raises:
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
        """
        return self._sent(body, exchange, routing_key, mandatory, properties)

    @steps
    def publish_json(
        self,
        value: Any,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Unpack[PropertyArguments],
    ) -> Steps[None]:
        """Publish a value as JSON, as `publish` does: `content_type` is application/json.

        Args:
            value: built-in types, dataclasses, `msgspec.Struct`, models of pydantic.
            exchange: the exchange; "" is the default exchange, whose routing keys are queue names.
            routing_key: what the exchange compares with its bindings.
            mandatory: fail if it is unroutable.
            properties: persistent=True (kept over a restart), headers and so on.

        Raises:
            TypeError: the value has no form in JSON.
            PublishNacked: the broker refused it.
            PublishReturned: it was mandatory and unroutable.
        """
        message = Message.of(value, **properties)
        yield from self._ready()
        yield self._sent(message, exchange, routing_key, mandatory, {})

    def _sent(
        self,
        body: Body | Message,
        exchange: str,
        routing_key: str,
        mandatory: bool,
        properties: PropertyArguments,
    ) -> Confirm:
        """Append a publish to the output."""
        message = outgoing(body, exchange, routing_key, properties)
        return self.core.publish_one(message, MANDATORY if mandatory else 0)

    @own
    def publish_nowait(
        self,
        body: Body | Message,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        **properties: Unpack[PropertyArguments],
    ) -> PendingConfirmT:
        """Publish a message; await the answer now, later, or together with others.

        It does not wait for the socket either: await one of the answers now and then.
        """
        connection = self.connection
        connection.check_thread()
        message = outgoing(body, exchange, routing_key, properties)
        confirm = self.core.publish_one(message, MANDATORY if mandatory else 0)
        connection.touch()
        return self._pending_confirm_type(connection, confirm)

    @steps
    def publish_many(
        self,
        items: ItemsT,
        *,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        window: int = PUBLISH_WINDOW,
        progress: Callable[[int], None] | None = None,
        **properties: Unpack[PropertyArguments],
    ) -> Steps[int]:
        """Publish many messages, with many unconfirmed at a time.

        Args:
            items: bodies, (routing key, body) pairs, or messages.
            exchange: the exchange, unless a message has its own.
            routing_key: the routing key, unless an item has its own.
            mandatory: fail if one is unroutable.
            window: maximum number of unconfirmed messages.
            progress: called now and then with the number of confirmed messages.
            properties: of all items that are not messages themselves.

        Returns:
            The number of confirmed messages: all of them.

        Raises:
            BulkPublishFailed: which were not taken; those after the first failure were not all
                sent.
        """
        flags = MANDATORY if mandatory else 0
        encoded = encode_arguments(properties)
        bulk = Bulk()
        position = due = 0

        def offer(item: Item) -> bool:
            """Publish an item; True if it waits for its turn."""
            nonlocal position
            if position == due:
                return True
            if type(item) is bytes:
                message = WireMessage(exchange, routing_key, encoded, item)
            else:
                message = outgoing_item(item, exchange, routing_key, encoded, properties)
            if self.core.publish(message, flags, bulk, position):
                bulk.outstanding += 1
            else:
                bulk.confirmed += 1
            position += 1
            return False

        follows = Following(aiter(items), offer) if isinstance(items, AsyncIterable) else None
        try:
            ready: Any = items if follows is None else (yield follows)
            while True:
                for item in ready:
                    if offer(item):
                        in_turn = position % _PUBLISHES_PER_TURN
                        if in_turn == 0 or bulk.outstanding >= window:
                            yield from self._bulk_room(bulk, window)
                            if progress is not None:
                                progress(bulk.confirmed)
                            if bulk.failures:
                                break
                        # The window is not full before so many more.
                        room = min(_PUBLISHES_PER_TURN - in_turn, window - bulk.outstanding)
                        due = position + max(room, 1)
                        offer(item)
                if follows is None or not ready or bulk.failures:
                    break
                ready = yield follows
            yield from self._settled(bulk, 0)
            yield FLUSH
        except AMQPError as error:
            # Unconfirmed messages have failed for the same reason; report how many were not sent.
            if not bulk.failures:
                raise
            raise BulkPublishFailed(bulk.confirmed, bulk.failures) from error
        if progress is not None:
            progress(bulk.confirmed)
        return bulk.result()

    def _bulk_room(self, bulk: Bulk, window: int) -> Steps[None]:
        """Wait until the window has room; at a full one until half of it is confirmed."""
        # Without this turn the window would fill up each time.
        yield TURN
        if bulk.outstanding >= window:
            yield from self._settled(bulk, window // 2)
        if not bulk.failures:
            yield from self._ready()

    def _ready(self) -> Steps[None]:
        """Wait while the connection recovers, publishers are blocked, or the socket is full."""
        yield RECOVERED
        while not self.core.flow_active and self.is_open:
            yield Until(self._flowing)
        yield ROOM

    def _settled(self, bulk: Bulk, low: int) -> Steps[None]:
        """Wait until at most `low` publishes are unconfirmed."""
        if bulk.outstanding > low:
            room: Call[None] = Call()
            bulk.low = low
            bulk.on_low = lambda: room.succeed(None)
            yield Until(room)
            bulk.on_low = None

    def _on_flow(self, active: bool) -> None:
        if active:
            self._flowing.succeed(None)
        elif self._flowing.done:
            self._flowing = Call()

    # --- consuming ------------------------------------------------------------------------------

    @own
    def consume(
        self,
        queue: str,
        *,
        prefetch: int | None = CLIENT_PREFETCH,
        no_ack: bool = False,
        exclusive: bool = False,
        tag: str = "",
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> ConsumerT:
        """Subscribe to a queue: `async for message in channel.consume("jobs"): ...`.

        Args:
            queue: the name of the queue, which has to exist.
            prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
            no_ack: messages count as acknowledged when the broker has sent them.
            exclusive: fail if the queue has another consumer.
            tag: the consumer tag; "" generates one.
            arguments: for example {"x-priority": 10}.
            timeout: end the iteration after this many seconds without a message.
        """
        options = {"tag": tag, "no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
        return self.consumer_type(self, queue, options, prefetch, timeout)

    @own
    def handle(
        self,
        queue: str,
        handler: Callable[[DeliveryT], Any],
        *,
        concurrency: int = 1,
        on_error: OnError = "reject",
        prefetch: int | None = None,
        no_ack: bool = False,
        exclusive: bool = False,
        tag: str = "",
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> WorkerT:
        """Return a worker that calls a function with each message of a queue: `run()` it.

        A message is acknowledged when the function has returned, unless it has settled it.

        Args:
            queue: the name of the queue, which has to exist.
            handler: takes a message.
            concurrency: maximum number of handlers that run at a time.
            on_error: what becomes of a message whose handler has raised: "reject" (dead-lettered,
                or dropped without a dead-letter exchange), "requeue" (at once and without end),
                "requeue_once" (rejected when it is redelivered), "ack", or a function that takes
                the message and the error and returns one of these. The error is logged.
            prefetch: maximum number of unacknowledged messages; None stands for `concurrency`.
            no_ack: messages count as acknowledged when the broker has sent them.
            exclusive: fail if the queue has another consumer.
            tag: the consumer tag; "" generates one.
            arguments: for example {"x-priority": 10}.
            timeout: end after this many seconds without a message.
        """
        options = {"tag": tag, "no_ack": no_ack, "exclusive": exclusive, "arguments": arguments}
        return self._worker_type(
            self, queue, handler, options, prefetch, concurrency, on_error, timeout
        )

    @steps
    def get(self, queue: str, *, no_ack: bool = False) -> Steps[DeliveryT | None]:
        """Get one message from a queue; None when it is empty."""
        yield USABLE
        core = self.core
        call = core.get(queue, no_ack=no_ack)
        try:
            got: Got | None = yield call
        except BaseException:
            # No caller waits for the message any more (cancelled, timed out): requeue it.
            call.when_done(functools.partial(_requeue, core, no_ack))
            raise
        if got is None:
            return None
        method = got.method
        tag, exchange, routing_key = method.delivery_tag, method.exchange, method.routing_key
        delivery = (tag, method.redelivered, exchange, routing_key, got.properties, got.body)
        return self._delivery_type(self, core, "", delivery, no_ack, method.message_count)

    @written
    def ack(self, tag: int, *, multiple: bool = False) -> Written:
        """Acknowledge by delivery tag."""
        self.core.ack(tag, multiple)
        return self.connection.written()

    @written
    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> Written:
        """Reject by delivery tag (basic.nack)."""
        self.core.nack(tag, multiple=multiple, requeue=requeue)
        return self.connection.written()

    @written
    def reject(self, tag: int, *, requeue: bool = False) -> Written:
        """Reject one delivery by delivery tag (basic.reject)."""
        self.core.reject(tag, requeue=requeue)
        return self.connection.written()

    def requeue_inbox(self, inbox: Inbox) -> None:
        """Requeue the messages of a consumer that were prefetched and not consumed."""
        self.inboxes.discard(inbox)
        items = inbox.take_all()
        if not inbox.no_ack and self.core.state is OPEN:
            for item in items:
                self.core.nack(item[0], requeue=True)

    # --- transactions and the end ---------------------------------------------------------------

    @Scope
    def transaction(self) -> Steps[None]:
        """Publish and acknowledge atomically: commit at the end, roll back on an exception.

        The channel becomes transactional with the first use (AMQP 0-9-1, class tx) and stays so.
        """
        yield USABLE
        if self.core.mode is not Mode.TRANSACTION:
            yield self.core.select_transactions()
        core = self.core
        try:
            yield BLOCK
        except BaseException:
            if core.state is OPEN:
                yield Ending(core.rollback())
            raise
        # Not the channel's present state: a transaction does not survive its connection.
        yield core.commit()

    @steps
    def close(self) -> Steps[None]:
        """Close the channel."""
        if self.core.state is OPEN:
            yield Ending(self.core.close())
        self._connection.forget_channel(self.number)

    def ended(self, error: AMQPError) -> None:
        """Fail every pending call and end every consumer: the connection has ended."""
        self.core.confirms.fail(error)
        self.core.error = error
        for inbox in list(self.inboxes):
            inbox.finish(error)
        self._flowing.succeed(None)

    def adopt(self, core: CoreChannel) -> None:
        """Continue with the state of a recovered connection."""
        self.core = core
        core.on_return = self._on_return
        core.on_closed = self._on_closed
        core.on_flow = self._on_flow
        self._on_flow(core.flow_active)

    def _on_return(self, error: PublishReturned) -> None:
        if self.on_return is not None:
            self.on_return(error)

    def _on_closed(self, error: AMQPError) -> None:
        # Publishers that wait for the flow of a closed channel do not wait without end.
        self._flowing.succeed(None)
        if not self._connection.survives(error):
            self._connection.remove_channel(self.number)

    def speaks_for(self, core: CoreChannel) -> bool:
        """True if a delivery of that state can still be settled.

        False if its connection was lost and has recovered or will: the broker delivers the message
        again, and the old delivery tag is invalid.

        Raises:
            AMQPError: the channel is closed for good.
        """
        if core.state is OPEN:
            return True
        if core is not self.core or self._connection.survives(core.error):
            return False
        core.check_open()
        return True


def _requeue(core: CoreChannel, no_ack: bool, call: Call[Got | None]) -> None:
    if call.error is None and not no_ack and core.state is OPEN:
        got = call.value()
        if got is not None:
            core.nack(got.method.delivery_tag, requeue=True)


def subscribe(
    channel: SharedChannel[Any, Any, Any, Any, Any],
    queue: str,
    inbox: Inbox,
    options: Mapping[str, Any],
    prefetch: int | None,
    *,
    bulk: bool = False,
) -> Call[CoreConsumer]:
    """Subscribe to a queue.

    Args:
        channel: an open one, that it consumes on.
        queue: the name of the queue.
        inbox: gets the deliveries and the end.
        options: of basic.consume: tag, no_ack, exclusive, arguments.
        prefetch: maximum number of unacknowledged messages; None leaves the channel's qos.
        bulk: the channel's sink gets the deliveries; the inbox gets only the end.
    """
    core = channel.core
    if prefetch is not None:
        # The answers arrive in order: after basic.consume-ok this one is done, too.
        core.qos(prefetch)
    deliver = None if bulk else inbox.deliver
    call = core.consume(queue, deliver, inbox.end, inbox=inbox, **options)
    channel.inboxes.add(inbox)
    return call


class SharedPendingConfirm:
    """A publish whose confirm has not been awaited yet."""

    __slots__ = ("_confirm", "_connection")

    def __init__(self, connection: Any, confirm: Confirm) -> None:
        self._connection = connection
        self._confirm = confirm

    def __repr__(self) -> str:
        """Return the outcome, for people."""
        error = self._confirm.error
        outcome = "confirmed" if self.done else "pending"
        return f"<{type(self).__name__} {outcome if error is None else f'failed: {error}'}>"

    @property
    def done(self) -> bool:
        """Whether the broker has answered."""
        return self._confirm.done
