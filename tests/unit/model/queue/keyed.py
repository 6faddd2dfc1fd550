"""A queue with ordering keys, and who takes from it."""

from __future__ import annotations

from typing import Any, Self

import pytest

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.front.convert import EDITOR
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import Taker, message

KINDS = pytest.mark.parametrize("kind", ["classic", "quorum"])


class Keyed:
    """A queue whose key is the routing key, and consumers that wait to be let in.

    Args:
        credit: of each consumer.
        **arguments: of the queue, without `x-`.
    """

    def __init__(self, credit: tuple[int, ...] = (100,), **arguments: Any) -> None:
        self.clock = Clock()
        self.host = VHost("/", MemoryStore(Gauge()), EDITOR, self.clock)
        given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self.queue: Any = self.host.declare_queue(
            "q",
            durable="x-queue-type" in given,
            arguments={"x-group-key": "routing_key", **given},
        )
        self.takers = [Taker(self.queue, str(n), credit=c) for n, c in enumerate(credit)]

    def consume(self) -> Self:
        """Let the consumers in."""
        for taker in self.takers:
            self.queue.add_consumer(taker)
        return self

    def publish(self, *texts: str) -> Self:
        """Publish messages named by their key and a number."""
        for text in texts:
            self.queue.publish(message(text.encode(), text[0]))
        return self
