r"""One channel of a connection, seen from the client: calls, contents, consumers, confirms.

    OPENING --open-ok--> OPEN --close()--> CLOSING --close-ok--> CLOSED
                           \______ channel.close of the broker ____/

Calls may overlap. A reply answers the oldest call of its type; not simply the oldest, because in
RabbitMQ the queue answers basic.consume and basic.cancel, which may take longer than the
channel's own answers. Deliveries, returns, confirms, flow and cancels arrive in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from harebell.base.errors import ProtocolError
from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPConnectionClosed,
    AMQPError,
    ClientClosed,
    ConnectionLost,
    ConsumerCancelled,
    ExtensionMissing,
    PublishReturned,
    UnsupportedByVersion,
    closed_channel,
)
from harebell.client.limits import CLIENT_GATHER_BYTES, CLIENT_GATHER_MAX
from harebell.client.message import ReturnedMessage
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import (
    CONFIRM,
    ERAS,
    OPEN,
    PLAIN,
    ChannelPhase,
    CoreConsumer,
    Got,
    Host,
    M,
    Mode,
    OnDelivery,
    OnEnd,
    Pending,
    drop,
    got,
    nothing,
)
from harebell.client.protocol.confirms import Confirm, ConfirmTracker, ConfirmWaiter
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.v09.assembly import ContentAssembly
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import history
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import BODY, HEADER, METHOD, FrameSink
from harebell.wire.v09.methods import BulkBatch

T = TypeVar("T")

_RECOVERABLE = (ConnectionLost, AMQPConnectionClosed)


class CoreChannel(Verbs):
    """The protocol state of one channel; no I/O.

    Args:
        host: the connection.
        number: the channel number.
        confirms: whether publishes are confirmed; confirm.select is sent before the first one.
        keep: whether unconfirmed messages are kept to be sent again.
    """

    def __init__(self, host: Host, number: int, *, confirms: bool, keep: bool) -> None:
        self.number = number
        self.state = ChannelPhase.OPENING
        self.mode = Mode.PLAIN
        self.wants_confirms = confirms
        self.confirms = ConfirmTracker(keep=keep)
        self.consumers: dict[str, CoreConsumer] = {}
        self.error: AMQPError | None = None
        self.flow_active = True
        self.sink: FrameSink | None = None
        self.on_flow: Callable[[bool], None] | None = None
        self.on_return: Callable[[PublishReturned], None] | None = None
        self.on_closed: Callable[[AMQPError], None] | None = None
        self._host = host
        self._pending: deque[Pending] = deque()
        self._assembly: ContentAssembly | None = None
        self._tags = 0

    # --- sending --------------------------------------------------------------------------------

    def send(self, method: m.Method) -> None:
        """Append a method to the output."""
        self._host.out.frame(METHOD, self.number, self._host.dialect.encode(method))

    def check_open(self) -> None:
        """Raise the error of a channel that is not open."""
        if self.state is not OPEN:
            raise (self.error or ClientClosed("the channel is not open")).with_traceback(None)

    def call(
        self,
        method: m.Method,
        replies: tuple[type[m.Method], ...],
        convert: Callable[[Any], T],
    ) -> Call[T]:
        """Send a method that has a reply.

        Args:
            method: what is sent, with its arguments.
            replies: the methods that answer it.
            convert: converts the reply to the verb's result.
        """
        self.check_open()
        method = self._renamed(method)
        self.send(method)
        if isinstance(method, m.BasicRecover) and not self._host.dialect.recovers:
            return Call.answered(convert(m.BasicRecoverOk()))
        call: Call[T] = Call()
        self._pending.append(Pending(method, replies, convert, call))
        return call

    def _renamed(self, method: M) -> M:
        recorder = self._host.recorder
        return method if recorder is None else recorder.rewrite(self.number, method)

    def _record(self, method: m.Method, result: Any) -> None:
        """Record a completed method, to repeat it on the next connection."""
        recorder = self._host.recorder
        if recorder is not None:
            recorder.observe(self.number, method, result)

    def open(self) -> Call[CoreChannel]:
        """Send channel.open."""
        self.send(m.ChannelOpen())
        call: Call[CoreChannel] = Call()
        self._pending.append(Pending(m.ChannelOpen(), (m.ChannelOpenOk,), self._opened, call))
        return call

    def _opened(self, reply: Any) -> CoreChannel:
        self.state = ChannelPhase.OPEN
        return self

    def close(self) -> Call[None]:
        """Close the channel gracefully; input that is in flight is dropped."""
        if self.state is ChannelPhase.CLOSED:
            return Call.answered(None)
        assert self.state is not ChannelPhase.CLOSING, "the channel is closed twice"
        self.state = ChannelPhase.CLOSING
        self._end(ClientClosed(f"channel {self.number} was closed"))
        method = m.ChannelClose(reply_code=200, reply_text="bye", class_id=0, method_id=0)
        self.send(method)
        call: Call[None] = Call()
        self._pending.append(Pending(method, (m.ChannelCloseOk,), self._closed, call))
        return call

    def _closed(self, reply: Any) -> None:
        self.state = ChannelPhase.CLOSED
        self._host.forget(self.number)

    def select_confirms(self) -> Call[None]:
        """Put the channel into confirm mode."""
        self.mode = Mode.CONFIRM
        return self.call(m.ConfirmSelect(), (m.ConfirmSelectOk,), nothing)

    def select_transactions(self) -> Call[None]:
        """Make the channel transactional (AMQP 0-9-1, class tx).

        Raises:
            ClientClosed: the channel is closed.
            ValueError: the channel is in confirm mode.
        """
        if self.mode is CONFIRM:
            raise ValueError(
                "publishes on this channel are confirmed, so it cannot have transactions: "
                "use a channel of its own for them"
            )
        call = self.call(m.TxSelect(), (m.TxSelectOk,), nothing)
        self.mode = Mode.TRANSACTION
        return call

    def publish(
        self, message: WireMessage, flags: int, waiting: ConfirmWaiter, token: int = 0
    ) -> bool:
        """Append a publish to the output.

        Args:
            message: what to publish.
            flags: MANDATORY or 0.
            waiting: gets the confirm.
            token: argument of `waiting` with the confirm.

        Returns:
            True if there will be a confirm.

        Raises:
            ValueError: the exchange or the routing key is too long.
        """
        if self.state is not OPEN:
            self.check_open()
        if self.mode is PLAIN and self.wants_confirms:
            self.select_confirms()
        self._host.out.publish(self.number, flags, message, self._host.frame_max)
        if self.mode is not CONFIRM:
            return False
        self.confirms.expect(waiting, token, message, flags)
        return True

    def publish_one(self, message: WireMessage, flags: int) -> Confirm:
        """Publish a message; on a channel without confirms the result is settled at once."""
        confirm = Confirm()
        if not self.publish(message, flags, confirm):
            confirm.succeed(None)
        return confirm

    def ack(self, tag: int, multiple: bool = False) -> None:
        """Acknowledge a delivery, or all up to it."""
        self.check_open()
        self._host.out.ack(self.number, tag, multiple)

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """Reject a delivery, or all up to it; without `requeue` it is dropped or dead-lettered."""
        self.check_open()
        if not multiple and not self._host.dialect.has(m.BasicNack):
            self.reject(tag, requeue=requeue)
            return
        self.send(m.BasicNack(delivery_tag=tag, multiple=multiple, requeue=requeue))

    def reject(self, tag: int, *, requeue: bool = False) -> None:
        """Reject one delivery; without `requeue` it is dropped or dead-lettered."""
        self.check_open()
        self.send(m.BasicReject(delivery_tag=tag, requeue=requeue))

    def get(self, queue: str, *, no_ack: bool = False) -> Call[Got | None]:
        """Get one message; None when the queue is empty."""
        method = m.BasicGet(queue=queue, no_ack=no_ack)
        return self.call(method, (m.BasicGetOk, m.BasicGetEmpty), got)

    def set_sink(self, sink: FrameSink | None) -> None:
        """Pass deliveries of consumers without a callback to a sink, directly from the scanner."""
        if sink is not self.sink:
            self.sink = sink
            self._host.scanner.divert(self.number, sink)

    def next_tag(self) -> str:
        """Return a consumer tag that this channel has not used."""
        while True:
            self._tags += 1
            tag = f"harebell.{self.number}.{self._tags}"
            # A recovered channel has its old consumers already.
            if tag not in self.consumers:
                return tag

    def consume(
        self,
        queue: str,
        on_delivery: OnDelivery | None,
        on_end: OnEnd,
        *,
        tag: str,
        no_ack: bool = False,
        exclusive: bool = False,
        no_local: bool = False,
        arguments: Mapping[str, Any] | None = None,
        inbox: Inbox | None = None,
    ) -> Call[CoreConsumer]:
        """Subscribe to a queue.

        Args:
            queue: the name of the queue, which has to exist.
            on_delivery: called for every message; None hands it to the channel's bulk sink.
            on_end: called once when no more messages will arrive.
            tag: the consumer tag.
            no_ack: deliveries count as acknowledged when they are sent.
            exclusive: fail if the queue has another consumer.
            no_local: do not deliver what this connection published (RabbitMQ ignores it).
            arguments: for example {"x-priority": 10}.
            inbox: where the program takes the deliveries from; a recovered connection goes on
                behind the last one, in a stream.
        """
        self.check_open()
        if (on_delivery is None) != (self.sink is not None):
            raise ValueError(f"channel {self.number} has a sink: consume on another channel")
        if tag in self.consumers:
            raise ValueError(f"channel {self.number} has a consumer {tag!r} already")
        consumer = CoreConsumer(tag, no_ack, on_delivery, on_end, inbox)
        method = m.BasicConsume(
            queue=queue,
            consumer_tag=tag,
            no_local=no_local,
            no_ack=no_ack,
            exclusive=exclusive,
            arguments=dict(arguments or {}),
        )
        # Deliveries may follow consume-ok in the same read, so register the consumer first.
        self.consumers[tag] = consumer
        try:
            call = self.call(method, (m.BasicConsumeOk,), lambda reply: consumer)
        except (TypeError, ValueError, UnsupportedByVersion):
            del self.consumers[tag]
            raise
        self.note_eras(consumer, method)
        return call

    def note_eras(self, consumer: CoreConsumer, method: m.BasicConsume) -> None:
        """Request the eras of a stream: a recovery subscribes with them (`ERAS`)."""
        if ERAS not in method.arguments:
            return

        def keep(reply: m.HistoryAskOk) -> None:
            consumer.eras = reply.eras.decode("ascii", "replace")

        with suppress(ExtensionMissing, UnsupportedByVersion):
            self.need(history.NAME)
            self.call(m.HistoryAsk(method.queue), (m.HistoryAskOk,), keep)

    def cancel(self, tag: str) -> Call[None]:
        """End a subscription; deliveries may arrive until the answer."""
        method = m.BasicCancel(consumer_tag=tag)
        return self.call(method, (m.BasicCancelOk,), self._cancelled)

    def _cancelled(self, reply: m.BasicCancelOk) -> None:
        consumer = self.consumers.pop(reply.consumer_tag, None)
        if consumer is not None:
            consumer.on_end(None)

    def abandon(self, tag: str) -> None:
        """Cancel an abandoned consumer; deliveries that still arrive are requeued."""
        if tag in self.consumers and self.state is OPEN:
            self.ignore(tag)
            self.cancel(tag)

    def ignore(self, tag: str) -> None:
        """Requeue the deliveries that still arrive for a consumer whose cancel is sent."""
        consumer = self.consumers.get(tag)
        if consumer is not None:
            consumer.on_delivery = self._requeue if not consumer.no_ack else drop
            consumer.on_end = drop

    def _requeue(self, tag: int, *rest: object) -> None:
        if self.state is OPEN:
            self.nack(tag, requeue=True)

    # --- receiving ------------------------------------------------------------------------------

    def frame(self, kind: int, payload: bytes) -> None:
        """Handle one frame of this channel."""
        if kind == METHOD:
            if self._assembly is not None:
                raise ProtocolError(505, "a method came in the middle of a content")
            self._on_method(self._host.dialect.spec.decode(payload))
        elif kind in (HEADER, BODY):
            self._on_content(kind, payload)
        else:
            raise ProtocolError(501, f"frame of unknown type {kind} on channel {self.number}")

    def deliver(
        self,
        consumer_tag: str,
        tag: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> None:
        """Handle a whole delivery."""
        if self.state is not OPEN:
            return
        consumer = self.consumers.get(consumer_tag)
        if consumer is None:
            raise ProtocolError(503, f"a delivery for the unknown consumer {consumer_tag!r}")
        if consumer.on_delivery is not None:
            consumer.on_delivery(tag, redelivered, exchange, routing_key, properties, body)
        elif self.sink is not None:
            self.sink.deliver(
                self.number, consumer_tag, tag, redelivered, exchange, routing_key, properties, body
            )

    def _on_method(self, method: m.Method) -> None:
        if self.state is ChannelPhase.CLOSING and not isinstance(method, _WHILE_CLOSING):
            # After channel.close every other frame is dropped (AMQP 0-9-1, channel.close).
            if isinstance(method, _WITH_CONTENT):
                self._begin(method)
            return
        handler = _HANDLERS.get(type(method))
        if handler is not None:
            handler(self, method)
        elif isinstance(method, _WITH_CONTENT):
            self._begin(method)
        elif not self.on_command(method):
            self._reply(method)

    def _begin(self, method: m.Method) -> None:
        self._assembly = ContentAssembly(method)
        self._host.scanner.pending += 1

    def _on_content(self, kind: int, payload: bytes) -> None:
        content = self._assembly
        if content is None:
            raise ProtocolError(505, "a content frame came where a method was expected")
        if not (content.header(payload) if kind == HEADER else content.body(payload)):
            if kind == HEADER and CLIENT_GATHER_BYTES <= content.missing <= CLIENT_GATHER_MAX:
                self._host.scanner.gather(self.number, content.missing)
            return
        self._assembly = None
        self._host.scanner.pending -= 1
        if self.state is ChannelPhase.CLOSING:
            return
        method = content.method
        properties, body = content.take()
        if isinstance(method, m.BasicDeliver):
            self.deliver(
                method.consumer_tag,
                method.delivery_tag,
                method.redelivered,
                method.exchange,
                method.routing_key,
                properties,
                body,
            )
        elif isinstance(method, m.BasicGetOk | BulkBatch):
            self._reply(Got(method, properties, body), method)
        elif isinstance(method, m.BasicReturn):
            self._returned(method, properties, body)

    def _returned(self, method: m.BasicReturn, properties: Properties, body: bytes) -> None:
        message = ReturnedMessage(body, method.exchange, method.routing_key, properties)
        error = PublishReturned(method.reply_code, method.reply_text, message)
        sent = WireMessage(method.exchange, method.routing_key, properties, body)
        claimed = self.mode is CONFIRM and self.confirms.returned(error, sent)
        if not claimed and self.on_return is not None:
            self.on_return(error)

    def _reply(self, reply: Any, method: m.Method | None = None) -> None:
        method = method or reply
        pending = self._pending_for(method)
        self._pending.remove(pending)
        result = pending.convert(reply)
        self._record(pending.method, result)
        pending.call.succeed(result)

    def _pending_for(self, method: m.Method) -> Pending:
        """Return the call that a reply answers: the oldest of its type, and of its consumer."""
        tag = getattr(method, "consumer_tag", None)
        for pending in self._pending:
            if isinstance(method, pending.replies) and (
                tag is None or tag == getattr(pending.method, "consumer_tag", tag)
            ):
                return pending
        waiting = f", it waits for {self._pending[0].replies[0].NAME}" if self._pending else ""
        raise ProtocolError(503, f"channel {self.number} got {method.NAME}{waiting}")

    def handle_ack(self, method: m.BasicAck) -> None:
        self.confirms.settle(method.delivery_tag, method.multiple, taken=True)

    def handle_nack(self, method: m.BasicNack) -> None:
        self.confirms.settle(method.delivery_tag, method.multiple, taken=False)

    def handle_cancel(self, method: m.BasicCancel) -> None:
        consumer = self.consumers.pop(method.consumer_tag, None)
        if not method.nowait:
            self.send(m.BasicCancelOk(consumer_tag=method.consumer_tag))
        if self._host.recorder is not None:
            self._host.recorder.forget_consumer(self.number, method.consumer_tag)
        if consumer is not None:
            consumer.on_end(ConsumerCancelled(consumer.tag))

    def handle_flow(self, method: m.ChannelFlow) -> None:
        self.flow_active = method.active
        self.send(m.ChannelFlowOk(active=method.active))
        if self.on_flow is not None:
            self.on_flow(method.active)

    def handle_recovered(self, method: m.BasicRecoverOk) -> None:
        """Ignore the answer to basic.recover of brokers with another layout of 0-8."""
        if self._host.dialect.recovers:
            self._reply(method)

    def handle_close(self, method: m.ChannelClose) -> None:
        self.send(m.ChannelCloseOk())
        if self.state is ChannelPhase.CLOSING:
            # Both sides close at once; the close-ok for our own close is still to come.
            return
        error = closed_channel(
            method.reply_code, method.reply_text, method.class_id, method.method_id
        )
        self.end(error)
        self._host.forget(self.number)

    def end(self, error: AMQPError) -> None:
        """End the channel: the broker or the connection has closed it."""
        if self.state is ChannelPhase.CLOSED:
            return
        closing = self.state is ChannelPhase.CLOSING
        self.state = ChannelPhase.CLOSED
        self._end(error)
        if not closing and self.on_closed is not None:
            self.on_closed(error)

    def _end(self, error: AMQPError) -> None:
        self.error = self.error or error
        pending, self._pending = self._pending, deque()
        consumers, self.consumers = self.consumers, {}
        for entry in pending:
            if isinstance(entry.method, m.ChannelClose):
                entry.call.succeed(None)
            else:
                entry.call.fail(error)
        if not (self.confirms.keep and isinstance(error, _RECOVERABLE)):
            self.confirms.fail(error)
        for consumer in consumers.values():
            consumer.on_end(error)


_WITH_CONTENT = (m.BasicDeliver, m.BasicGetOk, m.BasicReturn, BulkBatch)
_WHILE_CLOSING = (m.ChannelClose, m.ChannelCloseOk)
_HANDLERS: dict[type[m.Method], Callable[[CoreChannel, Any], None]] = {
    m.BasicAck: CoreChannel.handle_ack,
    m.BasicNack: CoreChannel.handle_nack,
    m.BasicCancel: CoreChannel.handle_cancel,
    m.BasicRecoverOk: CoreChannel.handle_recovered,
    m.ChannelFlow: CoreChannel.handle_flow,
    m.ChannelClose: CoreChannel.handle_close,
}
