"""A broker in memory whose commands are run directly, with a sampler and facts about a node."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from msgspec.structs import replace

from harebell.admin.catalog import find
from harebell.admin.context import AdminContext
from harebell.admin.node import FIGURES, Listening, NodeFacts
from harebell.admin.rows.lazy import LazyRow
from harebell.admin.sampling_plan import SamplingPlan
from harebell.base.slices import at_once
from harebell.management.statistics.sampler import Sampler
from harebell.store.log.memory import MemoryStore
from tests.unit.front.amqp_0_9_1.world import World

AMQP = Listening("amqp", "127.0.0.1", 5672)
HTTP = Listening("http", "127.0.0.1", 15672)


class Site:
    """A broker in memory and its commands.

    Args:
        plan: what is sampled.
        store: where everything is stored; in memory without it.

    Attributes:
        world: the broker and its peers.
        facts: what the node says of itself; tests replace it.
    """

    def __init__(self, plan: SamplingPlan | None = None, store: MemoryStore | None = None) -> None:
        self.world = World(store=store)
        self.facts = NodeFacts(
            listeners=(AMQP, HTTP),
            pid=4711,
            uptime_ms=60_000,
            processors=2,
            auth_mechanisms=("PLAIN",),
            fd_total=1024,
            sockets_total=900,
            figures=dict.fromkeys(FIGURES, 0) | {"mem_used": 50_000_000, "fd_used": 30},
        )
        self.sampler = Sampler(
            self.world.broker,
            self.world.registry,
            lambda: dict(self.facts.figures),
            plan=plan or SamplingPlan(),
        )
        self.context = AdminContext(
            self.world.broker,
            self.world.users,
            self.world.registry,
            self.world.broker.store.definitions,
            lambda: self.world.now,
            lambda level, text: None,
            self.sampler,
            lambda: self.facts,
        )

    def change(self, **facts: Any) -> None:
        """Change facts about the node."""
        self.facts = replace(self.facts, **facts)

    def run(self, name: str, /, **fields: Any) -> Any:
        """Run a command to its end, with its arguments checked as for a request."""
        command = find(name)
        assert command is not None, name
        answer = command.run(self.context, **command.arguments_of(fields))
        found = at_once(answer) if isinstance(answer, Generator) else answer
        if not isinstance(found, list):
            return found
        return [each.whole() if isinstance(each, LazyRow) else each for each in found]

    def look(self, seconds: int = 5) -> None:
        """Take samples some seconds later."""
        self.world.clock.advance(seconds * 1000)
        at_once(self.sampler.take(self.world.clock.ms))
