"""The tunnel class (AMQP 0-8, class tunnel): blocks of another protocol between two peers.

The specification defines a block, but not its routing. Here it goes through queues, like every
message: the proxy at the other end consumes a queue of its own name.

    request                                 message of class basic
    proxy-name                              routing key, to the default exchange
    broadcast, not 0                        the same routing key, to amq.fanout
    data-name                               type
    durable, not 0                          delivery-mode 2, else 1
    headers                                 headers
    meta-data of the method                 header x-amqp-meta-data
    proxy-name                              header x-amqp-proxy-name

A consumer that was started with the argument x-amqp-tunnel gets blocks as tunnel.request, without
acknowledgement; any other one gets the message. A block for an unknown proxy closes the channel
with 404, so that it is not lost silently.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import FAMILY_09, Message
from harebell.front.amqp_0_9_1.content import Content
from harebell.front.amqp_0_9_1.other_contents import send_body
from harebell.front.common.errors import soft
from harebell.front.common.firehose_tap import delivered
from harebell.front.common.permission import EXCHANGE, check
from harebell.front.convert import converted
from harebell.front.file_stream.consuming import ConsumerRequest, start
from harebell.front.file_stream.file_stream_channel import may_deliver
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import Queue
from harebell.wire.v09 import methods_older as methods
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.methods import BasicConsume, BasicConsumeOk
from harebell.wire.v09.property_list import TUNNEL, TunnelProperties

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_CLASS = 110
_BASIC = 60
_REQUEST = (_CLASS, 10)
BROADCAST = "amq.fanout"
META_DATA = "x-amqp-meta-data"
PROXY_NAME = "x-amqp-proxy-name"
ASKED = "x-amqp-tunnel"
"""The consumer argument that asks for blocks as they arrived."""
_PERSISTENT, _TRANSIENT = 2, 1


def request(channel: Channel, method: methods.TunnelRequest) -> None:
    """tunnel.request: its content follows."""
    gauge = channel.connection.registry.gauge
    channel.content = Content(method, gauge, _REQUEST, TUNNEL.parse, _whole)
    channel.connection.scanner.pending += 1


def _whole(channel: Channel, content: Content) -> None:
    tunnel_properties: TunnelProperties = TUNNEL.decode(content.properties.raw)
    proxy = tunnel_properties.proxy_name or ""
    if not proxy and not tunnel_properties.broadcast:
        raise soft(404, "tunnel.request names no proxy, and is no broadcast", *_REQUEST)
    headers = dict(tunnel_properties.headers or {})
    headers[META_DATA] = content.method.meta_data
    headers[PROXY_NAME] = proxy
    raw = encode_properties(
        BasicProperties(
            headers=headers,
            delivery_mode=_PERSISTENT if tunnel_properties.durable else _TRANSIENT,
            type=tunnel_properties.data_name,
        )
    )
    exchange = BROADCAST if tunnel_properties.broadcast else ""
    # Before the queue is looked up, so that it cannot be used to find out queue names.
    check(channel, WRITE, EXCHANGE, exchange)
    if not tunnel_properties.broadcast and proxy not in channel.vhost.queues:
        resource = f"no queue '{proxy}' in vhost '{channel.vhost.name}'"
        raise Refusal(ErrorKind.NOT_FOUND, f"{resource}: no proxy of that name is there")
    channel.publish(0, exchange, proxy, parse_properties(raw), content.body())


class TunnelConsumer(Consumer):
    """Delivers blocks as they were received, without acknowledgements.

    Args:
        channel: the channel it was started on.
        queue: what it consumes.
        tag: its consumer tag.
        **options: as for `Consumer`.
    """

    def __init__(self, channel: Channel, queue: Queue, tag: str, **options: Any) -> None:
        super().__init__(queue, tag, no_ack=True, **options)
        self._channel = channel

    def ready(self) -> bool:
        """True if there is room in the connection's output."""
        return may_deliver(self._channel)

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        """Write tunnel.request with the block."""
        channel = self._channel
        method, properties = block_of(message)
        send_body(channel, method, TUNNEL, TUNNEL.encode(properties), message.body)
        if channel.router.tracer is not None:
            delivered(channel, message, self.queue.name, redelivered)
        return 0

    def again(self) -> int:
        """Request another turn."""
        return self._channel.connection.ask_for_turn()

    def queue_deleted(self) -> None:
        """Send basic.cancel to clients that support it."""
        self._channel.consumer_lost(self)


def consume(channel: Channel, method: BasicConsume) -> None:
    """basic.consume by a proxy, which gets blocks as they were received."""

    def make(queue: Queue, tag: str, options: dict[str, Any]) -> TunnelConsumer:
        return TunnelConsumer(channel, queue, tag, **options)

    request = ConsumerRequest.of(_BASIC, method, method.arguments)
    start(channel, request, make, BasicConsumeOk)


def block_of(message: Message) -> tuple[methods.TunnelRequest, TunnelProperties]:
    """Make a tunnel block of a message."""
    tunnel_properties = decode_properties(converted(message, FAMILY_09).raw)
    headers = dict(tunnel_properties.headers or {})
    meta, proxy = headers.pop(META_DATA, {}), headers.pop(PROXY_NAME, message.routing_key)
    properties = TunnelProperties(
        headers=headers or None,
        proxy_name=proxy if isinstance(proxy, str) else message.routing_key,
        data_name=tunnel_properties.type,
        durable=int(tunnel_properties.delivery_mode == _PERSISTENT),
        broadcast=int(message.exchange == BROADCAST),
    )
    return methods.TunnelRequest(meta if isinstance(meta, dict) else {}), properties


HANDLERS = {methods.TunnelRequest: request}
