"""One simulated run: clients, faults, and the accounts at the end."""

from __future__ import annotations

from dataclasses import dataclass

from harebell.front.limits import OUTPUT_HIGH_BYTES, OUTPUT_STOP_BYTES
from harebell.wire.v09 import methods as m
from tests.model.peer import Reader, call, login
from tests.sim.checker import Checker, Item
from tests.sim.clients import EVERYWHERE, QUEUES, Actor, Consumer, Publisher
from tests.sim.clients1 import Consumer1, Publisher1
from tests.sim.machine import Machine
from tests.sim.network import World

BIGGEST = 250_000
HIGH = 400_000


@dataclass
class Outcome:
    """What a run was like.

    Args:
        trace: a fingerprint of every octet and moment.
        checker: the four sets.
        steps: how many events there were.
        alarms: how often the memory alarm was found on.
        faults: how many faults were injected.
        max_used: the most memory that queued messages took.
    """

    trace: str
    checker: Checker
    steps: int
    alarms: int
    faults: int
    max_used: int


class Scenario:
    """A run of some simulated seconds.

    Args:
        seed: decides everything; printed first, so that a failure can be replayed.
        seconds: how long clients are active.
    """

    durable = False

    def __init__(self, seed: int, seconds: float = 30.0) -> None:
        print(f"simulation seed {seed}")  # noqa: T201 - what a replay needs
        self.seconds = seconds
        self.checker = Checker()
        self.world = self.make_world(seed)
        self.alarms = self.faults = self.max_used = 0
        self._administer(
            *(m.QueueDeclare(queue=name, durable=self.durable) for name in QUEUES),
            m.ExchangeDeclare(exchange=EVERYWHERE, type="fanout", durable=self.durable),
            *(m.QueueBind(queue=name, exchange=EVERYWHERE) for name in QUEUES),
        )
        rng = self.world.rng
        self.actors: list[Actor] = [
            *(
                rng.choice((Publisher, Publisher1))(self.world, self.checker, n)
                for n in range(rng.randint(1, 4))
            ),
            *(
                rng.choice((Consumer, Consumer1))(self.world, self.checker, 100 + n)
                for n in range(rng.randint(1, 5))
            ),
        ]

    def make_world(self, seed: int) -> World:
        """Where it happens."""
        return World(seed, high=HIGH)

    def run(self) -> Outcome:
        """Let it happen, then settle the accounts."""
        end = self.world.now + self.seconds
        while self.world.now < end:
            self.world.run(self.world.now + self.world.rng.expovariate(1.5))
            self._fault()
            self._check_bounds()
        self._calm_down()
        left = self._drain()
        self.checker.ends(left)
        self._check_nothing_is_left()
        world = self.world
        return Outcome(
            world.trace, self.checker, world.steps, self.alarms, self.faults, self.max_used
        )

    # --- faults ---------------------------------------------------------------------------------

    def _fault(self) -> None:
        world = self.world
        kind = world.rng.random()
        link = world.rng.choice(world.links) if world.links else None
        if kind < 0.12 and link is not None:
            link.cut()
        elif kind < 0.18 and link is not None:
            link.vanish()
        elif kind < 0.20:
            world.jump(world.rng.choice((1.0, 8.0, 600.0)))
        elif kind < 0.23:
            self._replace_queue(world.rng.choice(QUEUES))
        else:
            return
        self.faults += 1
        world.flush()

    def _replace_queue(self, name: str) -> None:
        """Delete a queue under everybody's feet, and make it anew."""
        self.checker.queue_deleted(name)
        self._administer(
            m.QueueDelete(queue=name),
            m.QueueDeclare(queue=name, durable=self.durable),
            m.QueueBind(queue=name, exchange=EVERYWHERE),
        )

    def _check_bounds(self) -> None:
        """Nobody's output or the queues grow beyond what the limits allow."""
        gauge = self.world.broker.gauge
        self.alarms += gauge.over
        self.max_used = max(self.max_used, gauge.used)
        publishers = sum(isinstance(actor, Publisher | Publisher1) for actor in self.actors)
        allowed = HIGH + (publishers + self.faults + 1) * 2 * BIGGEST
        assert gauge.used <= allowed, f"{gauge.used} octets are queued"
        assert self.world.max_output <= OUTPUT_HIGH_BYTES + 2 * BIGGEST < OUTPUT_STOP_BYTES

    # --- the end --------------------------------------------------------------------------------

    def _calm_down(self) -> None:
        for actor in self.actors:
            actor.stop()
        # Long enough for half-open peers to miss their heartbeats, and for slow readers to read.
        self.world.run(self.world.now + 120.0)
        for link in list(self.world.links):
            link.cut()
        self.world.flush()
        assert not self.world.broker.registry.connections, "a connection outlived its peer"

    def settle(self) -> None:
        """Everything that waits for a disk is done."""

    def _administer(self, *steps: m.Method) -> None:
        """Do something at once, over a connection without a network."""
        connection = self.world.broker.accept(self.world.now)
        octets = login() + call(1, m.ChannelOpen())
        connection.receive(octets + b"".join(call(1, s) for s in steps), self.world.now)
        self.settle()
        events = Reader().feed(connection.take_output(self.world.now))
        assert len(events) == 4 + len(steps), events
        connection.eof()

    def _drain(self) -> set[Item]:
        """Take what is still in the queues."""
        connection = self.world.broker.accept(self.world.now)
        reader = Reader()
        connection.receive(login() + call(1, m.ChannelOpen()), self.world.now)
        reader.feed(connection.take_output(self.world.now))
        left: set[Item] = set()
        for queue in QUEUES:
            while True:
                connection.receive(call(1, m.BasicGet(queue=queue, no_ack=True)), self.world.now)
                (event,) = reader.feed(connection.take_output(self.world.now))
                if not isinstance(event.method, m.BasicGetOk):
                    break
                again = event.method.redelivered
                left.add(self.checker.receives(0, queue, event.body, again))
        connection.eof()
        return left

    def _check_nothing_is_left(self) -> None:
        self.settle()
        broker = self.world.broker
        assert broker.gauge.used == 0, f"{broker.gauge.used} octets are counted, the queues empty"
        assert not broker.registry.publishers.connections
        assert all(not q.consumers and not q.unacked for q in broker.vhost.queues.values())
        assert not broker.internal_errors(), broker.internal_errors()
        # What was deleted was excused, and cannot come back either.
        broker.registry.take_dirty()


class PowerScenario(Scenario):
    """The same with durable queues over a disk that loses its power now and then."""

    durable = True

    def make_world(self, seed: int) -> Machine:
        """A machine with a disk."""
        self.machine = Machine(seed, HIGH, self.checker.restarts)
        return self.machine

    def settle(self) -> None:
        """Everything is on disk."""
        self.machine.settle_disk()

    def _fault(self) -> None:
        machine = self.machine
        kind = machine.rng.random()
        if kind < 0.04:
            machine.restart(cut=True)
        elif kind < 0.06:
            machine.restart(cut=False)
        elif kind < 0.08:
            machine.end_well()
        elif kind < 0.14:
            machine.cut_soon()
        elif kind < 0.18:
            machine.fill(machine.rng.choice((0.1, 2.0)))
        else:
            super()._fault()
            return
        self.faults += 1
        machine.flush()

    def _calm_down(self) -> None:
        self.settle()
        super()._calm_down()

    def _check_nothing_is_left(self) -> None:
        super()._check_nothing_is_left()
        # What was taken from the queues and is on disk does not come back.
        self.machine.restart(cut=True)
        left = self._drain()
        assert not left, f"{sorted(left)[:5]} came back after the queues were empty"


def simulate(seed: int, seconds: float = 30.0) -> Outcome:
    """One run from a seed."""
    return Scenario(seed, seconds).run()


def simulate_power(seed: int, seconds: float = 30.0) -> Outcome:
    """One run from a seed, over a disk."""
    return PowerScenario(seed, seconds).run()
