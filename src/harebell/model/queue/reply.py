"""Direct reply-to: a pseudo-queue that forwards replies to one consumer.

    requester --- reply-to: amq.rabbitmq.reply-to.<secret> ---> responder
        ^                                                           |
        +------ ReplyQueue <--- default exchange, that key <--------+

It keeps nothing: a reply is delivered if the requester is connected and has room, else dropped. It
is not listed, and its name cannot be guessed.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, i32, i64
from harebell.base.message import Message
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import ACCEPTED, Queue

REPLY_TO = "amq.rabbitmq.reply-to"
"""The queue name that requesters consume from and use as reply-to."""
REPLY_PREFIX = REPLY_TO + "."
"""Prefix of the routing keys of replies."""


class ReplyQueue(Queue):
    """The pseudo-queue of one requester.

    Args:
        name: the routing key of the replies.
        vhost: the name of its vhost.
        replies: the requesters of the vhost; this queue is among them while it has its consumer.
    """

    def __init__(self, name: str, vhost: str, replies: dict[str, ReplyQueue]) -> None:
        super().__init__(name, vhost)
        self.kind = "direct-reply-to"
        self._replies = replies
        self._staged: C[list[Message]] = []

    def begin_batch(self) -> Done:
        """Keep the replies of a batch until it ends; other replies are delivered at once."""
        self.staging = True
        return 0

    def stage(self, message: Message) -> i32:
        """Keep a reply of a batch."""
        self._staged.append(message)
        return ACCEPTED

    def commit_batch(self) -> Done:
        """Deliver the replies of the batch."""
        self.staging = False
        staged, self._staged = self._staged, []
        for message in staged:
            self.publish(message)
        return 0

    def roll_back_batch(self) -> Done:
        """Drop the replies of the batch."""
        self._staged = []
        return self.commit_batch()

    def publish(self, message: Message) -> i32:
        """Deliver a reply to the requester, or drop it."""
        for consumer in self.consumers:
            # As in RabbitMQ a reply is never kept: the responder must not fill the broker's memory.
            if consumer.ready():
                self.count_delivery(consumer, False)
                consumer.deliver(message, -1, False)
        return ACCEPTED

    def ready_count(self) -> i64:
        """Return 0: nothing is kept."""
        return 0

    def drain(self) -> Done:
        """Do nothing: nothing is kept."""
        return 0

    def add_consumer(self, consumer: Consumer) -> None:
        """Add the requester."""
        self.consumers.add(consumer)
        self._replies[self.name] = self

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove the requester."""
        # The name is a secret of this one consumer, so nothing can use the queue any more.
        self.delete()

    def delete(self) -> int:
        """Delete the queue; replies that come later are dropped."""
        self.consumers.take_all()
        self._replies.pop(self.name, None)
        self.deleted = True
        return 0
