"""Sequences over quorum queues, whose RabbitMQ side answers in its own time.

Every channel asks for confirms, so that a publish has happened before the next operation. What is
delivered is waited for; the counts of a quorum queue are those of a moment ago there, and are left
out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.interop.differential.operations import CHANNELS, CONNECTIONS, Maker, Operation

_QUORUM = {"x-queue-type": "quorum"}


def _of_the_channel(made: Operation) -> bool:
    """Whether it is a prefetch for a channel as a whole."""
    return isinstance(made.method, m.BasicQos) and made.method.global_


class QuorumMaker(Maker):
    """Makes one sequence."""

    def operations(self) -> Iterator[Operation]:
        """Confirms on every channel, then two queues of which one buries what the other drops."""
        for connection in range(CONNECTIONS):
            for channel in CHANNELS:
                yield Operation(connection, channel, m.ConfirmSelect())
        grave, first, _ = self.queues
        buried = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
        for name, more in ((grave, {}), (first, {**buried, "x-delivery-limit": 2})):
            yield self._at(
                m.QueueDeclare(queue=name, durable=True, arguments={**_QUORUM, **more}), 0
            )
        consuming: set[tuple[int, int]] = set()
        for _ in range(20):
            made = self._one()
            while _of_the_channel(made) and (made.connection, made.channel) in consuming:
                # Harebell holds to it; RabbitMQ's quorum queues do not see it.
                made = self._other()
            if isinstance(made.method, m.BasicConsume):
                consuming.add((made.connection, made.channel))
            yield made

    def _one(self) -> Operation:
        make = self._rng.choices(
            (self._publish, self._read, self._done, self._declare, self._other),
            (8, 6, 8, 1, 2),
        )[0]
        return make()

    def _queue(self) -> str:
        return self._rng.choice((self.queues[1], self.queues[1], self.queues[1], self.queues[0]))

    def _publish(self) -> Operation:
        self._bodies += 1
        at = self._at(m.BasicPublish(routing_key=self._queue(), mandatory=self._flag()))
        properties = BasicProperties(delivery_mode=self._rng.choice((1, 2)))
        return replace(at, body=f"message {self._bodies}".encode(), properties=properties)

    def _done(self) -> Operation:
        found = self._settle()
        # In which order consumers get back what was recovered is left to chance there.
        return self._done() if isinstance(found.method, m.BasicRecover) else found

    def _declare(self) -> Operation:
        wrong: tuple[dict[str, Any], ...] = (
            {**_QUORUM, "x-delivery-limit": -5},
            {**_QUORUM, "x-delivery-limit": "often"}, {"x-queue-type": "quorate"},
            {"x-queue-type": 1}, {"x-queue-type": "classic"},
        )  # fmt: skip
        return self._at(m.QueueDeclare(
            queue=self._queue(), durable=self._flag(0.8), exclusive=self._flag(0.1),
            auto_delete=self._flag(0.1), arguments=dict(self._rng.choice(wrong)),
        ))  # fmt: skip

    def _other(self) -> Operation:
        return self._at(self._rng.choice((
            m.BasicQos(prefetch_count=self._rng.randrange(4)),
            m.BasicQos(prefetch_count=1, global_=True),
            m.QueuePurge(queue=self._queue()),
            m.BasicCancel(consumer_tag=self._rng.choice("tuvwxyz")),
            m.QueueDelete(queue=self.queues[0], if_unused=True),
        )))  # fmt: skip
