"""Requests and replies (RPC): pending calls and their replies.

    request   mandatory, reply-to amq.rabbitmq.reply-to, correlation-id 5f..1   -> queue of a server
    reply     correlation-id 5f..1                                              <- to this channel

Direct reply-to needs no queue: the broker passes replies to the channel that made the request.
Both versions of 0-10 lack it, and use an exclusive queue, and so does the client in 1.0. An
unroutable request is returned, and fails at once. Both shells use this; it does no I/O.
"""

from __future__ import annotations

from typing import Any

from harebell.base.message import Message as WireMessage
from harebell.client.errors import AMQPError, CallTimeout, ConnectionLost, PublishReturned
from harebell.client.message import Body, Delivered, body_bytes, encode_once
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import CoreConsumer
from harebell.client.protocol.confirms import MANDATORY
from harebell.client.protocol.shared_channel import SharedChannel
from harebell.client.protocol.v09.channel import CoreChannel

DIRECT = "amq.rabbitmq.reply-to"
_WITHOUT_DIRECT = ("0-10", "0-10t", "1-0")
_WITHOUT_RETURNS = ("0-10t",)


class Reply(Delivered):
    """The reply of a server."""

    __slots__ = ()


class Request:
    """A request that was sent.

    Args:
        number: its correlation id.
        route: the queue, or the exchange and the routing key, for errors.

    Attributes:
        reply: the pending reply.
    """

    __slots__ = ("_route", "number", "reply")

    def __init__(self, number: str, route: str) -> None:
        self.number = number
        self.reply: Call[Reply] = Call()
        self._route = route

    def timed_out(self, seconds: float) -> CallTimeout:
        """Return the error of a request without a reply."""
        return CallTimeout(f"no reply from {self._route} in {seconds:g} s")


class Requests:
    """The pending calls of one channel.

    Args:
        version: of AMQP.
        nonce: prefix of the correlation ids, unique for the program.
    """

    def __init__(self, version: str, nonce: str) -> None:
        self.direct = version not in _WITHOUT_DIRECT
        self._flags = 0 if version in _WITHOUT_RETURNS else MANDATORY
        self._nonce = nonce
        self._made = 0
        self._waiting: dict[str, Call[Reply]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def receive_on(
        self, channel: SharedChannel[Any, Any, Any, Any, Any], reply_to: str
    ) -> Call[CoreConsumer]:
        """Begin to receive replies on a channel that is used for nothing else.

        Requests are not sent again after a recovery: no call waits for their replies any more.
        """
        core = channel.core
        core.confirms.keep = False
        channel.on_return = self.returned
        tag = core.next_tag()
        return core.consume(reply_to, self.deliver, self.ended, tag=tag, no_ack=True)

    def send(
        self,
        core: CoreChannel,
        body: Body,
        exchange: str,
        routing_key: str,
        reply_to: str,
        properties: dict[str, Any],
    ) -> Request:
        """Append a request to the output."""
        for name in ("correlation_id", "reply_to"):
            if name in properties:
                raise TypeError(f"{name} is chosen by the request itself: leave it out")
        self._made += 1
        number = f"{self._nonce}.{self._made}"
        encoded = encode_once(properties | {"correlation_id": number, "reply_to": reply_to})
        message = WireMessage(exchange, routing_key, encoded, body_bytes(body))
        confirm = core.publish_one(message, self._flags)
        request = Request(number, _route(exchange, routing_key))
        self._waiting[number] = request.reply
        confirm.when_done(lambda confirm: self._confirmed(number, confirm.error))
        return request

    def deliver(self, *delivery: Any) -> None:
        """Handle a reply (`channel_parts.OnDelivery`). One without a pending call is dropped."""
        tag, redelivered, exchange, routing_key, properties, body = delivery
        reply = Reply(body, exchange, routing_key, properties, tag, redelivered)
        call = self._waiting.pop(reply.correlation_id or "", None)
        if call is not None:
            call.succeed(reply)

    def returned(self, error: PublishReturned) -> None:
        """Handle a request that was returned on a channel without confirms."""
        self._fail(error.message.correlation_id or "", error)

    def ended(self, error: AMQPError | None) -> None:
        """Fail pending calls (`channel_parts.OnEnd`): the channel or connection has ended."""
        reason = error or ConnectionLost("the subscription to replies was ended")
        for number in list(self._waiting):
            self._fail(number, reason)

    def forget(self, request: Request) -> None:
        """Forget a request; a later reply is dropped."""
        self._waiting.pop(request.number, None)

    def _confirmed(self, number: str, error: AMQPError | None) -> None:
        if error is not None:
            self._fail(number, error)

    def _fail(self, number: str, error: AMQPError) -> None:
        call = self._waiting.pop(number, None)
        if call is not None:
            call.fail(error)


def _route(exchange: str, routing_key: str) -> str:
    """Describe the route of a request, for errors."""
    if not exchange:
        return f"queue {routing_key!r}"
    return f"exchange {exchange!r} with routing key {routing_key!r}"
