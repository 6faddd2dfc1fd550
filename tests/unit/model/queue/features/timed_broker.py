"""A broker in memory whose time passes only in `pass_ms`."""

from __future__ import annotations

from typing import Any

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.front.convert import EDITOR
from harebell.model.broker import Broker
from harebell.model.queue.contract import Queue
from harebell.store.log.memory import MemoryStore

MORNING = 1_700_000_000_000


class TimedBroker:
    """A broker in memory, its clock, and a queue `dead` for the dead letters of the others."""

    def __init__(self) -> None:
        self.clock = Clock(MORNING)
        gauge = Gauge()
        self.broker = Broker(MemoryStore(gauge), gauge, EDITOR.headers_of, EDITOR, self.clock)
        self.vhost = self.broker.vhosts["/"]
        self.dead = self.vhost.declare_queue("dead")

    def queue(self, name: str = "q", **arguments: Any) -> Any:
        """Declare a queue; the names of arguments may be without `x-`, and have `_` for `-`."""
        named = {
            key if key.startswith("x-") else f"x-{key.replace('_', '-')}": value
            for key, value in arguments.items()
        }
        dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        durable = named.get("x-queue-type") == "quorum"
        return self.vhost.declare_queue(name, arguments={**dead, **named}, durable=durable)

    def publish(self, queue: Queue, body: bytes, ttl: int | None = None, priority: int = -1) -> int:
        sent = Message("", queue.name, Properties(b"\0\0", 0, priority), body)
        if ttl is not None:
            sent.due = self.clock.steady + ttl
        return queue.publish(sent)

    def pass_ms(self, ms: int) -> None:
        """Time passes and the shell runs what is due, as soon as it is due."""
        until = self.clock.steady + ms
        while self.broker.timers.due <= until:
            self.clock.advance(max(self.broker.timers.due - self.clock.steady, 0))
            self.broker.timers.run()
        self.clock.advance(until - self.clock.steady)
