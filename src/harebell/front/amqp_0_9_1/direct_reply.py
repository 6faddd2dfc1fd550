"""Direct reply-to on a 0-9-1 channel: a consumer without a queue.

No permission is needed: replies are sent to the holder of the secret name. A reply is sent at most
once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1.consumer import ChannelConsumer
from harebell.front.common.errors import hard, soft
from harebell.front.common.names import generated
from harebell.front.limits import REPLIES_UNSENT_BYTES
from harebell.model.queue.reply import REPLY_PREFIX, REPLY_TO, ReplyQueue
from harebell.model.resource import missing, refused
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel

_CONSUME = (60, 20)
_TAG_PREFIX = "amq.ctag-"


class ReplyConsumer(ChannelConsumer):
    """Delivers replies without a prefetch limit, up to `REPLIES_UNSENT_BYTES` of unsent output."""

    __slots__ = ("_requester",)

    def __init__(self, channel: OpenChannel, queue: ReplyQueue, tag: str) -> None:
        super().__init__(channel, queue, tag, no_ack=True)
        self._requester = channel

    def ready(self) -> bool:
        """True if the unsent replies of the requester are below their limit."""
        requester = self._requester
        if requester.consumers is None:
            # The channel is closed, and this consumer is not removed yet.
            return False
        # No queue keeps replies, so more output is accepted than for other consumers.
        size: int = requester.connection.out.size
        return size < REPLIES_UNSENT_BYTES


def consume_replies(channel: OpenChannel, method: methods.BasicConsume) -> None:
    """basic.consume of the pseudo queue: once per channel, and without acknowledgements."""
    random = channel.connection.settings.rng
    tag = method.consumer_tag or generated(_TAG_PREFIX, random)
    if channel.consumers is None:
        channel.consumers = {}
    other = channel.consumers.get(tag)
    if other is not None and not isinstance(other, ReplyConsumer):
        raise hard(530, f"attempt to reuse consumer tag '{tag}'", *_CONSUME)
    if not method.no_ack:
        # There is no queue that could keep a reply until its acknowledgement.
        raise soft(406, "reply consumer cannot acknowledge", *_CONSUME)
    if channel.reply_queue is not None and not channel.reply_queue.deleted:
        raise soft(406, "reply consumer already set", *_CONSUME)
    vhost = channel.vhost
    queue = ReplyQueue(generated(REPLY_PREFIX, random), vhost.name, vhost.router.replies)
    consumer = ReplyConsumer(channel, queue, tag)
    channel.consumers[tag] = consumer
    channel.reply_queue = queue
    queue.add_consumer(consumer)
    if not method.nowait:
        channel.connection.send(channel.number, methods.BasicConsumeOk(consumer_tag=tag))


def declare_reply(channel: OpenChannel, name: str, *, nowait: bool) -> None:
    """queue.declare of the pseudo queue or a reply name: check that the requester exists."""
    # With a secret name a server asks whether its client is still there (RabbitMQ documents it).
    if name != REPLY_TO and name not in channel.vhost.router.replies:
        raise missing("queue", name, channel.vhost.name)
    channel.last_queue = name
    if not nowait:
        reply = methods.QueueDeclareOk(queue=name, message_count=0, consumer_count=1)
        channel.connection.send(channel.number, reply)


def check_not_reply(name: str) -> None:
    """Refuse to bind a reply queue."""
    if name.startswith(REPLY_TO):
        raise refused("cannot bind or unbind to a volatile (direct reply-to) queue")
