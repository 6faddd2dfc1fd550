"""A broker in memory that is looked at for findings, with a clock in the test's hand."""

from __future__ import annotations

import shlex
from typing import Any

import msgspec

from harebell.admin.findings import Finding
from harebell.base.slices import at_once
from harebell.config import Config
from harebell.management.health.watch import Watch
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish
from tests.unit.management.metrics.asking import Asked
from tests.unit.model.queue.logs import PreparedLog

LOOK_SECONDS = 10


class Watched(Asked):
    """A broker, and what looks at it.

    Args:
        watermark: bytes above which publishers are blocked.
        **thresholds: keys of the configuration.
    """

    def __init__(self, watermark: int = 0, **thresholds: Any) -> None:
        super().__init__(World(watermark))
        self.config = Config(**thresholds)
        self.brokers: list[dict[str, Any]] = []
        self.watch = Watch(lambda: self.source, lambda: self.config, lambda: self.brokers)
        self.findings = self.watch
        self.source = msgspec.structs.replace(self.source, findings=self.watch)
        self.peer = self.world.peer()
        self.look(2)

    def look(self, times: int = 1) -> None:
        """So many looks, ten seconds after each other."""
        for _ in range(times):
            self.world.clock.advance(LOOK_SECONDS * 1_000)
            at_once(self.watch.take(self.world.clock.ms))

    def look_for(self, seconds: int) -> None:
        """Look for some time."""
        self.look(seconds // LOOK_SECONDS)

    def declare(self, name: str, **arguments: Any) -> None:
        """A queue; `max_length=5` is its argument x-max-length."""
        given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
        self.peer.ask(m.QueueDeclare(name, arguments=given))
        queue: Any = self.world.broker.vhosts["/"].queues[name]
        # The log of the store in memory keeps no times.
        queue.order.log = PreparedLog(self.world.clock)

    def publish(self, name: str, count: int = 1, body: bytes = b"body") -> None:
        """Messages to a queue."""
        self.peer.give(publish(body, key=name) * count)

    def consumer(self, name: str, prefetch: int = 1) -> OctetPeer:
        """A peer that consumes a queue."""
        peer = self.world.peer()
        peer.ask(m.BasicQos(0, prefetch))
        peer.send(m.BasicConsume(name, "c"))
        peer.frames()
        return peer

    @property
    def found(self) -> list[tuple[str, str]]:
        """The findings, as rule and name."""
        return [(each.rule, each.name) for each in self.watch.found]

    @property
    def only(self) -> Finding:
        """The only finding."""
        (finding,) = self.watch.found
        return finding

    @property
    def now(self) -> int:
        """Milliseconds since 1970."""
        return self.world.clock.ms


def words(finding: Finding) -> list[str]:
    """The command line of a finding, without the program."""
    return shlex.split(finding.command)[1:]
