"""Sequences of operations for the comparison, made from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties

CONNECTIONS = 2
CHANNELS = (1, 2)
LENGTH = 25
_TYPES = ("direct", "fanout", "topic", "headers", "direct", "topic")
_KEYS = ("a", "a.b", "a.*", "#", "")
_ARGUMENTS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {}, {}, {"x-max-priority": 3}, {"x-max-priority": -1}, {"x-message-ttl": -1},
    {"x-message-ttl": "soon"}, {"x-expires": 0}, {"x-max-length": -5}, {"x-overflow": "explode"},
    {"x-dead-letter-exchange": ""}, {"x-dead-letter-routing-key": "a"}, {"x-max-length": 2},
    {"x-max-length": 2, "x-overflow": "reject-publish"}, {"x-max-length": 2, "x-max-priority": 3},
    {"x-max-length-bytes": 20}, {"x-max-length-bytes": 20, "x-overflow": "reject-publish"},
    {"x-max-length": 0}, {"x-max-length": 1, "x-overflow": "reject-publish-dlx"},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Operation:
    """A method on a channel of a connection, with content for basic.publish.

    Args:
        connection: which of the connections.
        channel: on that connection.
        method: what is sent.
        body: for basic.publish.
        properties: for basic.publish.
        pause: whether to wait afterwards until what was published has expired.
    """

    connection: int
    channel: int
    method: m.Method
    body: bytes = b""
    properties: BasicProperties | bytes = b"\0\0"
    pause: bool = False


class Maker:
    """Makes one sequence.

    Args:
        seed: all its choices come from here.
        again: how often it was tried before; the names are others then.

    Attributes:
        mark: what only the names of this sequence have in them.
    """

    def __init__(self, seed: int, again: int = 0) -> None:
        self._rng = random.Random(seed)
        self.mark = f"{seed}-{again}"
        self.queues = tuple(f"q{self.mark}.{which}" for which in "abc")
        self._exchanges = (f"x{self.mark}.a", f"x{self.mark}.b")
        self._bodies = 0

    def operations(self) -> Iterator[Operation]:
        """The sequence."""
        yield self._at(m.QueueDeclare(queue=self.queues[0]))
        yield self._at(m.ExchangeDeclare(exchange=self._exchanges[0], type="topic"))
        for _ in range(LENGTH):
            yield self._one()

    def _at(self, method: m.Method, connection: int | None = None) -> Operation:
        if connection is None:
            connection = self._rng.randrange(CONNECTIONS)
        return Operation(connection, self._rng.choice(CHANNELS), method)

    def _one(self) -> Operation:
        make = self._rng.choices(
            (self._publish, self._declare, self._bind, self._read, self._settle, self._other),
            (8, 3, 3, 6, 6, 3),
        )[0]
        return make()

    def _queue(self) -> str:
        return self._rng.choice(self.queues)

    def _exchange(self) -> str:
        own = self._exchanges * 6
        return self._rng.choice((*own, "", "amq.direct", "amq.topic", "amq.nothing"))

    def _flag(self, share: float = 0.2) -> bool:
        return self._rng.random() < share

    def _publish(self) -> Operation:
        self._bodies += 1
        to_queue = self._flag(0.5)
        key = self._queue() if to_queue else self._rng.choice(_KEYS)
        method = m.BasicPublish(
            exchange="" if to_queue else self._exchange(), routing_key=key,
            mandatory=self._flag(0.4), immediate=self._flag(0.02),
        )  # fmt: skip
        properties = BasicProperties(priority=self._rng.randrange(5))
        at = self._at(method)
        body = f"message {self._bodies}".encode()
        return Operation(at.connection, at.channel, method, body, properties)

    def _declare(self) -> Operation:
        if self._flag(0.4):
            return self._at(m.ExchangeDeclare(
                exchange=self._exchange(), type=self._rng.choice(_TYPES), passive=self._flag(),
                durable=self._flag(), auto_delete=self._flag(), internal=self._flag(0.1),
            ))  # fmt: skip
        return self._at(m.QueueDeclare(
            queue=self._queue(), passive=self._flag(), durable=self._flag(0.1),
            exclusive=self._flag(0.1), auto_delete=self._flag(0.1),
            arguments=dict(self._rng.choice(_ARGUMENTS)),
        ))  # fmt: skip

    def _bind(self) -> Operation:
        queue, exchange, key = self._queue(), self._exchange(), self._rng.choice(_KEYS)
        kind = self._rng.choice((m.QueueBind, m.QueueBind, m.QueueBind, m.QueueUnbind))
        if self._flag():
            return self._at(m.ExchangeBind(
                destination=self._exchange(), source=exchange, routing_key=key
            ))  # fmt: skip
        return self._at(kind(queue=queue, exchange=exchange, routing_key=key))

    def _read(self) -> Operation:
        if self._flag(0.6):
            return self._at(m.BasicGet(queue=self._queue(), no_ack=self._flag()))
        return self._at(m.BasicConsume(
            queue=self._queue(), consumer_tag=self._rng.choice("tuvwxyz"),
            no_ack=self._flag(), exclusive=self._flag(0.1),
        ))  # fmt: skip

    def _settle(self) -> Operation:
        tag, several, again = self._rng.randrange(5), self._flag(0.3), self._flag(0.6)
        return self._at(self._rng.choice((
            m.BasicAck(tag, several), m.BasicAck(tag, several), m.BasicNack(tag, several, again),
            m.BasicReject(tag, again), m.BasicRecover(requeue=True),
        )))  # fmt: skip

    def _other(self) -> Operation:
        queue = self._queue()
        return self._at(self._rng.choice((
            m.QueuePurge(queue=queue), m.ConfirmSelect(), m.TxSelect(), m.TxCommit(),
            m.TxRollback(), m.BasicCancel(consumer_tag=self._rng.choice("tuvwxyz")),
            m.BasicQos(prefetch_count=self._rng.randrange(4), global_=self._flag()),
            m.BasicQos(prefetch_size=self._rng.choice((0, 9))),
            m.QueueDelete(queue=queue, if_unused=self._flag(), if_empty=self._flag()),
            m.ExchangeDelete(exchange=self._exchange(), if_unused=self._flag()),
            m.BasicRecover(requeue=False),
        )))  # fmt: skip
