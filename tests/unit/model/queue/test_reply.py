"""The queue behind a direct reply-to: a way to one consumer, and nothing else."""

from __future__ import annotations

from harebell.base.message import Message
from harebell.model.consumer import Consumer
from harebell.model.queue.contract import ACCEPTED
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue
from tests.unit.model.things import message, vhost


class Requester(Consumer):
    """Notes what it is given; has room or has not."""

    def __init__(self, queue: ReplyQueue) -> None:
        super().__init__(queue, "requester", no_ack=True)
        self.room = True
        self.got: list[tuple[Message, int, bool]] = []

    def ready(self) -> bool:
        return self.room

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        self.got.append((message, position, redelivered))
        return 0


def test_a_reply_is_delivered_at_once_or_dropped() -> None:
    queue = ReplyQueue(REPLY_PREFIX + "x", "/", {})
    requester = Requester(queue)
    queue.add_consumer(requester)
    first = message(b"1")
    assert queue.publish(first) == ACCEPTED
    requester.room = False
    assert queue.publish(message(b"2")) == ACCEPTED
    requester.room = True
    assert (queue.drain(), queue.ready_count()) == (0, 0)
    assert requester.got == [(first, -1, False)]


def test_replies_are_routed_by_the_secret_name_while_the_requester_is_there() -> None:
    where = vhost()
    key = REPLY_PREFIX + "x"
    queue = ReplyQueue(key, "/", where.router.replies)
    requester = Requester(queue)
    queue.add_consumer(requester)
    default = where.exchange("")
    assert where.router.route(default, message(key=key)) == (queue,)
    assert key not in where.queues
    where.remove_consumer(requester)
    assert queue.deleted
    assert where.router.replies == {}


def test_a_reply_to_nobody_is_routed_and_dropped() -> None:
    where = vhost()
    reply = message(key=REPLY_PREFIX + "gone")
    (nobody,) = where.router.route(where.exchange(""), reply)
    assert nobody.publish(reply) == ACCEPTED
    assert where.router.route(where.exchange(""), message(key=REPLY_PREFIX[:-1])) == ()
