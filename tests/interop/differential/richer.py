"""Sequences with everything that 0-9-1 users put together: beside operations.py, from a seed too.

Queues dead-letter to each other and have priorities, messages expire; exchanges have alternates,
are bound to each other and look at headers; a policy holds for some of them, and one connection
belongs to a user who may do little.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.interop.differential.operations import Maker, Operation

LIMITED_USER = "limited"
LIMITED_PASSWORD = "limited password"
LIMITED_PERMISSIONS = (r"^(q.*\.a|x.*\.a)$", r"^(q.*\.[ab]|x.*\.[ab]|amq\.default)$", r"\.a$|^amq")
"""What the user of the second connection may configure, write and read."""

POLICIES = (
    ("dead", r"^q.*\.c$", '{"dead-letter-exchange": "amq.fanout"}', "queues"),
    ("else", r"^x.*\.b$", '{"alternate-exchange": "amq.fanout"}', "exchanges"),
)
"""Name, pattern, definition and what it applies to; the same on both brokers."""

PAUSE_SECONDS = 0.3
_TTL_MS = 100


class RichMaker(Maker):
    """Makes one sequence of the second kind."""

    def operations(self) -> Any:
        """The sequence; what dies reaches the first queue, if that is still bound."""
        first = self.queues[0]
        yield self._at(m.QueueDeclare(queue=first), 0)
        yield self._at(m.QueueBind(queue=first, exchange="amq.fanout"), 0)
        yield self._at(m.QueueDeclare(queue=self.queues[2]), 0)
        yield from super().operations()

    def _publish(self) -> Operation:
        plain = super()._publish()
        properties = BasicProperties(
            delivery_mode=self._rng.choice((None, 1, 2)),
            priority=self._rng.choice((None, 0, 2, 9)),
            headers=self._headers(),
        )
        # One mistake at a time: which of two is told first has changed in RabbitMQ.
        if self._flag(0.1) and "CC" not in (properties.headers or {}):
            properties.user_id = "guest"
        else:
            properties.expiration = self._rng.choice((None, None, None, "60000", "", "-1", "soon"))
        return replace(plain, properties=properties)

    def _headers(self) -> dict[str, Any] | None:
        found: dict[str, Any] = {}
        if self._flag(0.3):
            found["colour"] = self._rng.choice(("red", "blue", 1))
        if self._flag(0.1):
            found["x-kind"] = "odd"
        if self._flag(0.2):
            found["CC"] = [self._queue(), "a.b"][: self._rng.randrange(3)]
        if self._flag(0.1):
            found["BCC"] = [self._queue()]
        if self._flag(0.03):
            found["CC"] = self._queue()
        return found or None

    def _declare(self) -> Operation:
        if self._flag(0.35):
            more = self._rng.choice(({}, {"alternate-exchange": "amq.fanout"}))
            return self._at(m.ExchangeDeclare(
                exchange=self._exchange(), type=self._rng.choice(("topic", "headers", "fanout")),
                durable=self._flag(0.1), auto_delete=self._flag(0.1), arguments=dict(more),
            ))  # fmt: skip
        return self._at(m.QueueDeclare(
            queue=self._queue(), durable=self._flag(0.3), exclusive=self._flag(0.1),
            arguments=self._arguments(),
        ))  # fmt: skip

    def _arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._flag(0.5):
            found["x-dead-letter-exchange"] = self._rng.choice(("", "amq.fanout", "nowhere"))
            if self._flag(0.7):
                found["x-dead-letter-routing-key"] = self._queue()
        if self._flag(0.3):
            found["x-message-ttl"] = 60_000
        if self._flag(0.2):
            found["x-max-priority"] = 5
        if self._flag(0.2):
            found["x-max-length"] = 2
            if self._flag(0.5):
                found["x-overflow"] = self._rng.choice(("reject-publish", "reject-publish-dlx"))
        if self._flag(0.1):
            found["x-single-active-consumer"] = True
        return found

    def _bind(self) -> Operation:
        exchange, queue = self._exchange(), self._queue()
        arguments = self._rng.choice((
            {}, {"x-match": "all", "colour": "red"}, {"x-match": "any", "colour": "red", "n": 1},
            {"x-match": "any-with-x", "x-kind": "odd"}, {"x-match": "neither"}, {"colour": None},
        ))  # fmt: skip
        key = self._rng.choice(("a", "a.b", "a.*", "#", "*.b.#", ""))
        if self._flag(0.3):
            kind = self._rng.choice((m.ExchangeBind, m.ExchangeBind, m.ExchangeUnbind))
            return self._at(kind(
                destination=self._exchange(), source=exchange, routing_key=key,
                arguments=dict(arguments),
            ))  # fmt: skip
        kind_of = self._rng.choice((m.QueueBind, m.QueueBind, m.QueueUnbind))
        return self._at(kind_of(
            queue=queue, exchange=exchange, routing_key=key, arguments=dict(arguments)
        ))  # fmt: skip


class ExpiryMaker(RichMaker):
    """Sequences in which messages expire: after a pause those that were due are gone."""

    def _publish(self) -> Operation:
        plain = super()._publish()
        if self._flag(0.7):
            return plain
        return replace(plain, properties=BasicProperties(expiration=str(_TTL_MS)), pause=True)


def maker_for(seed: int, again: int = 0) -> Maker:
    """The kinds take turns."""
    return (Maker, RichMaker, ExpiryMaker)[seed % 3](seed, again)
