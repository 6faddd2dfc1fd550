"""Direct reply-to: a queue that is no more than the way to one consumer.

    requester --- reply-to: amq.rabbitmq.reply-to.<secret> ---> responder
        ^                                                           |
        +------ ReplyQueue <--- default exchange, that key <--------+

It keeps nothing: a reply is delivered while the requester is there and has room, or dropped.
Nobody can list it or guess its name.
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import ACCEPTED, Queue

REPLY_TO = "amq.rabbitmq.reply-to"
"""What requesters consume from, and give as reply-to."""
REPLY_PREFIX = REPLY_TO + "."
"""What the routing keys of replies begin with."""


class ReplyQueue(Queue):
    """The way back to one requester.

    Args:
        name: the routing key of the replies.
        vhost: the name of its vhost.
        replies: the vhost's requesters, where this one stands while it is there.
    """

    def __init__(self, name: str, vhost: str, replies: dict[str, ReplyQueue]) -> None:
        super().__init__(name, vhost)
        self.kind = "direct-reply-to"
        self._replies = replies
        self._staged: list[Message] = []

    def begin_batch(self) -> int:
        """Replies of a batch wait for its end; others do not."""
        self.staging = True
        return 0

    def stage(self, message: Message) -> int:
        """Take a reply of a batch."""
        self._staged.append(message)
        return ACCEPTED

    def commit_batch(self) -> int:
        """The batch is committed."""
        self.staging = False
        staged, self._staged = self._staged, []
        for message in staged:
            self.publish(message)
        return 0

    def roll_back_batch(self) -> int:
        """The batch is refused."""
        self._staged = []
        return self.commit_batch()

    def publish(self, message: Message) -> int:
        """Hand a reply to the requester, or drop it."""
        for consumer in self.consumers:
            if consumer.ready():
                consumer.deliver(message, -1, False)
        return ACCEPTED

    def ready_count(self) -> int:
        """Nothing ever waits."""
        return 0

    def drain(self) -> int:
        """Nothing ever waits."""
        return 0

    def add_consumer(self, consumer: Consumer) -> None:
        """The requester is there."""
        self.consumers.add(consumer)
        self._replies[self.name] = self

    def remove_consumer(self, consumer: Consumer) -> None:
        """The requester is gone."""
        self.delete()

    def delete(self) -> int:
        """Replies that are still under way reach nobody."""
        self.consumers.take_all()
        self._replies.pop(self.name, None)
        self.deleted = True
        return 0
