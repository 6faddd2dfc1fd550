r"""A session of AMQP 1.0 as a channel of the client: the same verbs over links.

    publish       a link to the anonymous terminus, or one for each target; the outcome confirms
    consume       a link from the queue, with as much credit as the prefetch leaves
    get           a link for one message: credit 1, drain
    ack, nack     accepted; modified with delivery-failed, or rejected
    declare ...   requests to the management node
    transactions  a link to the coordinator

A delivery belongs to its link: one whose consumer is cancelled is detached when the last delivery
of it is settled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harebell.base.message import Message as WireMessage
from harebell.base.message import Properties
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    ConsumerCancelled,
    UnsupportedByVersion,
)
from harebell.client.limits import UNLIMITED_CREDIT
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import (
    CONFIRM,
    OPEN,
    PLAIN,
    ChannelPhase,
    CoreConsumer,
    Got,
    Mode,
)
from harebell.client.protocol.confirms import MANDATORY, ConfirmWaiter
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.client.protocol.v1.addresses import Addresses
from harebell.client.protocol.v1.deliveries import Deliveries
from harebell.client.protocol.v1.endpoint import Endpoint
from harebell.client.protocol.v1.links import LinkEnd, ReceiverLink
from harebell.client.protocol.v1.management import Management
from harebell.client.protocol.v1.messages import incoming
from harebell.client.protocol.v1.plans import VERSION, RequestPlan, plan
from harebell.client.protocol.v1.publisher import Publisher
from harebell.client.protocol.v1.subscribing import check_filters, subscription
from harebell.client.protocol.v1.transactions import Transactions
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import FrameSink
from harebell.wire.v1.composites import Accepted, Modified, Rejected, Released

T = TypeVar("T")


class CoreSession1(CoreChannel):
    """The protocol state of one session; no I/O. It has the verbs of `CoreChannel`.

    Args:
        host: the connection.
        number: the channel number, from 1.
        confirms, keep: as of `CoreChannel`.
        addresses: those that the broker understands.
    """

    def __init__(
        self, host: Any, number: int, *, confirms: bool, keep: bool, addresses: Addresses
    ) -> None:
        super().__init__(host, number, confirms=confirms, keep=keep)
        self.endpoint = Endpoint(host, number - 1, self)
        self._connection: Any = host
        self._addresses = addresses
        # RabbitMQ before 4.0 does not know `modified`.
        new = addresses.has_management
        self._failed = Modified(delivery_failed=True) if new else Released()
        self._management = Management(self.endpoint)
        self._transactions = Transactions(self.endpoint)
        self._publisher = Publisher(self, self.endpoint, addresses, self._transactions)
        self._deliveries = Deliveries(self.endpoint, self._transactions)
        self._receivers: dict[str, ReceiverLink] = {}
        self._opening: Call[CoreChannel] = Call()
        self._closing: Call[None] = Call()
        self._prefetch = 0
        self._queues = 0
        self._ends_when_sent = False

    # --- the session ----------------------------------------------------------------------------

    def open(self) -> Call[CoreChannel]:
        """Begin the session."""
        self.endpoint.begin()
        return self._opening

    def begun(self) -> None:
        """Handle the broker's begin (`endpoint.Owner`)."""
        self.state = ChannelPhase.OPEN
        self._opening.succeed(self)

    def close(self) -> Call[None]:
        """End the session gracefully; input that is in flight is dropped."""
        if self.state is ChannelPhase.CLOSED:
            self._closing.succeed(None)
            return self._closing
        assert self.state is not ChannelPhase.CLOSING, "the channel is closed twice"
        self.state = ChannelPhase.CLOSING
        if self._publisher.waiting:
            # What the program has published without confirms is sent first.
            self._ends_when_sent = True
        else:
            self._finish_closing()
        return self._closing

    def _finish_closing(self) -> None:
        self._ends_when_sent = False
        self.endpoint.end()
        self._end(ClientClosed(f"channel {self.number} was closed"))

    def ended(self, error: AMQPError | None) -> None:
        """Handle the broker's end (`endpoint.Owner`)."""
        if error is None:
            self.state = ChannelPhase.CLOSED
            self._closing.succeed(None)
        else:
            self.end(error)
        self._host.forget(self.number)

    def end(self, error: AMQPError) -> None:
        """End the channel: the broker or the connection has ended it."""
        self._ends_when_sent = False
        self._closing.succeed(None)
        self._opening.fail(error)
        super().end(error)

    def _end(self, error: AMQPError) -> None:
        super()._end(error)
        self.endpoint.abandon(error)
        self._deliveries.clear()

    def fail(self, error: AMQPError) -> None:
        """End the session because of an error for which no call waits."""
        self.endpoint.end()
        self.end(error)

    def flowed(self) -> None:
        """Handle a change of what may be sent (`endpoint.Owner`)."""
        self._publisher.advance()

    def sent(self, *, all_of_it: bool) -> None:
        """Handle that publishes were sent, or that some wait for credit now."""
        if all_of_it is not self.flow_active:
            self.flow_active = all_of_it
            if self.on_flow is not None:
                self.on_flow(all_of_it)
        if all_of_it:
            if self._ends_when_sent:
                self._finish_closing()
            self._connection.all_sent()

    @property
    def sends(self) -> bool:
        """Whether publishes wait for credit."""
        return self._publisher.waiting

    # --- verbs ----------------------------------------------------------------------------------

    def send(self, method: m.Method) -> None:
        """Not supported: methods of 0-9-1 must be translated."""
        raise AssertionError(f"{method.NAME} has no place in a session")

    def publish_rows(self, rows: Any, flags: int, first: int, end: int) -> int:
        """Not supported.

        Raises:
            UnsupportedByVersion: always.
        """
        raise UnsupportedByVersion(VERSION, "publishing of rows")

    def call(
        self,
        method: m.Method,
        replies: tuple[type[m.Method], ...],
        convert: Callable[[Any], T],
    ) -> Call[T]:
        """Do what a method of 0-9-1 asks for, and return its reply of 0-9-1."""
        self.check_open()
        method = self._renamed(method)
        call: Call[T] = Call()

        def finish(reply: m.Method) -> None:
            result = convert(reply)
            self._record(method, result)
            call.succeed(result)

        local = _LOCAL.get(type(method))
        if local is not None:
            local(self, method, call, finish)
            return call
        self._need_new_broker(method.NAME)
        self._ask(plan(method, self._queue_name), call, finish)
        return call

    def _need_new_broker(self, verb: str) -> None:
        """Check that the broker has a management node, answers a drain, and releases messages.

        Raises:
            UnsupportedByVersion: it is RabbitMQ before 4.0, which crashes over a drain, and accepts
                what is unroutable.
        """
        if not self._addresses.has_management:
            raise UnsupportedByVersion(VERSION, f"{verb} with RabbitMQ before 4.0")

    def _ask(
        self, request_plan: RequestPlan, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Send the request of a plan, and go on as it says."""

        def answered(answer: Call[Any]) -> None:
            if answer.error is not None:
                call.fail(answer.error)
                return
            try:
                reply = request_plan.reply(answer.value())
            except AMQPError as error:
                call.fail(error)
                return
            if isinstance(reply, RequestPlan):
                self._ask(reply, call, finish)
            else:
                finish(reply)

        self._management.ask(request_plan.request).when_done(answered)

    def _queue_name(self) -> str:
        self._queues += 1
        return f"harebell.gen-{self._connection.container}-{self.number}-{self._queues}"

    def set_prefetch(
        self, method: m.BasicQos, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Keep the prefetch for later subscriptions.

        Raises:
            UnsupportedByVersion: it is one for the whole channel.
        """
        if method.global_:
            raise UnsupportedByVersion(VERSION, "prefetch that consumers share")
        self._prefetch = method.prefetch_count
        finish(m.BasicQosOk())

    def give_all_back(
        self, method: m.BasicRecover, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Requeue all unacknowledged messages."""
        self._deliveries.settle(0, self._failed, multiple=True)
        finish(m.BasicRecoverOk())

    # --- transactions ---------------------------------------------------------------------------

    def select_confirms(self) -> Call[None]:
        """Send nothing: every transfer has an outcome in this version."""
        self.mode = Mode.CONFIRM
        return Call.answered(None)

    def begin_transactions(
        self, method: m.TxSelect, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Begin the first transaction."""
        _then(self._transactions.begin(), call, lambda: finish(m.TxSelectOk()))

    def commit_transaction(
        self, method: m.TxCommit, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Commit when all its messages have their outcome; roll back if one was refused."""

        def commit(error: AMQPError | None) -> None:
            ended = self._transactions.discharge(fail=error is not None)
            if error is None:
                _then(ended, call, self._deliveries.committed)
                _then(ended, call, lambda: finish(m.TxCommitOk()))
            else:
                self._deliveries.rolled_back()
                ended.when_done(lambda _: call.fail(error))

        self._publisher.when_settled(commit)

    def roll_back_transaction(
        self, method: m.TxRollback, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Roll back; the acknowledgements are as if they had not been made."""

        def roll_back(error: AMQPError | None) -> None:
            self._deliveries.rolled_back()
            _then(self._transactions.discharge(fail=True), call, lambda: finish(m.TxRollbackOk()))

        self._publisher.when_settled(roll_back)

    # --- publishing and settling ----------------------------------------------------------------

    def publish(
        self, message: WireMessage, flags: int, waiting: ConfirmWaiter, token: int = 0
    ) -> bool:
        """Append a transfer to the output; see `CoreChannel.publish`.

        Raises:
            UnsupportedByVersion: it is mandatory, and the broker says nothing of routes.
        """
        if self.state is not OPEN:
            self.check_open()
        if flags & MANDATORY:
            self._need_new_broker("basic.return")
        if self.mode is PLAIN and self.wants_confirms:
            self.mode = Mode.CONFIRM
        if self.mode is not CONFIRM:
            self._publisher.publish(message, flags, 0)
            return False
        self.confirms.expect(waiting, token, message, flags)
        self._publisher.publish(message, flags, self.confirms.sequence)
        return True

    def ack(self, tag: int, multiple: bool = False) -> None:
        """Accept a delivery, or all up to it."""
        self.check_open()
        self._deliveries.settle(tag, _ACCEPTED, multiple=multiple)

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """Give a delivery back as failed, or all up to it; without `requeue` reject it."""
        self.check_open()
        self._deliveries.settle(tag, self._failed if requeue else _REJECTED, multiple=multiple)

    def reject(self, tag: int, *, requeue: bool = False) -> None:
        """Reject one delivery; without `requeue` it is dropped or dead-lettered."""
        self.nack(tag, requeue=requeue)

    # --- receiving ------------------------------------------------------------------------------

    def set_sink(self, sink: FrameSink | None) -> None:
        """Pass deliveries of consumers without a callback to a sink."""
        self.sink = sink

    def subscribe(
        self, method: m.BasicConsume, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Attach the link of a consumer.

        Raises:
            UnsupportedByVersion: it is to be exclusive, or an argument has no equivalent.
        """
        if method.exclusive:
            raise UnsupportedByVersion(VERSION, "exclusive consumers")
        tag = method.consumer_tag
        consumer = self.consumers[tag]
        source, properties = subscription(self._addresses.source(method.queue), method.arguments)
        limited = bool(self._prefetch) and not method.no_ack

        def deliver(
            link: ReceiverLink, number: int, settled: bool, properties: Properties, body: bytes
        ) -> None:
            self._deliver(consumer, link, number, settled, properties, body)

        link = self.endpoint.receiver(
            lambda error: self._lost(tag, error),
            deliver,
            window=self._prefetch if limited else UNLIMITED_CREDIT,
            counts=limited,
        )
        self._receivers[tag] = link
        self.endpoint.attach_receiver(source, link, settled=method.no_ack, properties=properties)

        def attached(opening: Call[LinkEnd]) -> None:
            error = opening.error
            try:
                if error is None:
                    check_filters(source, link.answer)
            except AMQPError as refused:
                error = refused
                self.endpoint.detach(link)
            if error is not None:
                self.consumers.pop(tag, None)
                self._receivers.pop(tag, None)
                call.fail(error)
                return
            self.endpoint.replenish(link)
            finish(m.BasicConsumeOk(consumer_tag=tag))

        link.opening.when_done(attached)

    def _lost(self, tag: str, error: AMQPError) -> None:
        """Handle the end of a link: the broker has ended the subscription."""
        self._receivers.pop(tag, None)
        consumer = self.consumers.pop(tag, None)
        if consumer is None:
            return
        if self._host.recorder is not None:
            self._host.recorder.forget_consumer(self.number, tag)
        ended = ConsumerCancelled(tag)
        ended.__cause__ = error
        consumer.on_end(ended)

    def unsubscribe(
        self, method: m.BasicCancel, call: Call[Any], finish: Callable[[m.Method], None]
    ) -> None:
        """Stop the deliveries of a consumer; its link ends with its last unsettled delivery."""
        tag = method.consumer_tag
        reply = m.BasicCancelOk(consumer_tag=tag)
        link = self._receivers.pop(tag, None)
        if link is None:
            finish(reply)
        elif link.unsettled:
            link.window, link.counts = 0, False
            self._deliveries.linger(link)
            self.endpoint.grant(link, 0)
            finish(reply)
        else:
            _then(self.endpoint.detach(link), call, lambda: finish(reply))

    def _deliver(
        self,
        consumer: CoreConsumer,
        link: ReceiverLink,
        number: int,
        settled: bool,
        properties: Properties,
        body: bytes,
    ) -> None:
        """Handle a message for a consumer."""
        if self.state is not OPEN:
            return
        tag = self._deliveries.add(link, number, settled)
        if link.window == 0:
            # It was on its way when the consumer was cancelled.
            if not settled:
                self._deliveries.release(tag)
            return
        self.endpoint.replenish(link)
        came = incoming(properties, body)
        if consumer.on_delivery is not None:
            consumer.on_delivery(
                tag, came.redelivered, came.exchange, came.key, came.properties, came.body
            )
        elif self.sink is not None:
            self.sink.deliver(
                self.number, consumer.tag, tag, came.redelivered, came.exchange, came.key,
                came.properties, came.body,
            )  # fmt: skip

    def get(self, queue: str, *, no_ack: bool = False) -> Call[Got | None]:
        """Get one message; None when the queue is empty."""
        self.check_open()
        self._need_new_broker("basic.get")
        queue = self._renamed(m.BasicGet(queue=queue)).queue
        call: Call[Got | None] = Call()
        came: list[Got] = []

        def arrived(
            link: ReceiverLink, number: int, settled: bool, properties: Properties, body: bytes
        ) -> None:
            link.drained = None
            message = incoming(properties, body)
            tag = self._deliveries.add(link, number, settled)
            method = m.BasicGetOk(
                delivery_tag=tag,
                redelivered=message.redelivered,
                exchange=message.exchange,
                routing_key=message.key,
                message_count=0,
            )
            came.append(Got(method, message.properties, message.body))
            if settled:
                self.endpoint.detach(link).when_done(ended)
            else:
                self._deliveries.linger(link)
                ended(None)

        def ended(_: object) -> None:
            if came:
                self._count(queue, came[0], call)
            elif link.opening.error is None:
                call.succeed(None)

        link = self.endpoint.receiver(call.fail, arrived, window=1)
        link.drained = lambda: self.endpoint.detach(link).when_done(ended)
        source, _ = subscription(self._addresses.source(queue), {})
        self.endpoint.attach_receiver(source, link, settled=no_ack)

        def attached(opening: Call[LinkEnd]) -> None:
            if opening.error is None:
                self.endpoint.grant(link, 1, drain=True)
            else:
                call.fail(opening.error)

        link.opening.when_done(attached)
        return call

    def _count(self, queue: str, got: Got, call: Call[Got | None]) -> None:
        """Ask how many messages are left, and finish."""

        def counted(info: Call[Any]) -> None:
            if info.error is None:
                got.method.message_count = info.value().message_count
            call.succeed(got)

        query: Call[Any] = Call()
        query.when_done(counted)
        passive = m.QueueDeclare(queue=queue, passive=True)
        self._ask(plan(passive, self._queue_name), query, query.succeed)


def _then(call: Call[Any], other: Call[Any], action: Callable[[], None]) -> None:
    """Act when a call has succeeded; its error is that of the other one."""

    def done(call: Call[Any]) -> None:
        if call.error is not None:
            other.fail(call.error)
        else:
            action()

    call.when_done(done)


_ACCEPTED = Accepted()
_REJECTED = Rejected()
_Local = Callable[[CoreSession1, Any, Call[Any], Callable[[m.Method], None]], None]
_LOCAL: dict[type[m.Method], _Local] = {
    m.BasicQos: CoreSession1.set_prefetch,
    m.BasicRecover: CoreSession1.give_all_back,
    m.BasicConsume: CoreSession1.subscribe,
    m.BasicCancel: CoreSession1.unsubscribe,
    m.TxSelect: CoreSession1.begin_transactions,
    m.TxCommit: CoreSession1.commit_transaction,
    m.TxRollback: CoreSession1.roll_back_transaction,
}
"""Methods that no request to the management node is made of."""
