"""Queues of last values over the simulated disk, and what a power loss leaves of them.

Each round publishes some messages of a few keys, takes some, and ends some deliveries. During the
commit the power goes after every operation of the disk. What is left is opened by another broker:

    one       there is at most one message of a key
    newest    it is not older than the newest confirmed one
    there     the newest confirmed one or a newer one is there, unless that was acknowledged
    gone      what was acknowledged in an earlier commit does not come back
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from harebell.base.message import PERSISTENT, Message, Properties
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker
from tests.sim.prepared import BrokenPromiseError

KEYS = ("a", "b", "c", "d")
KINDS = ("classic", "quorum")
SIZES = (1, 100, 2_000, 9_000)
SEGMENT_BYTES = 16_384


@dataclass
class Counts:
    """What was tried: disks that were judged, and keys of which an older record was there, too."""

    states: int = 0
    replaced: int = 0


@dataclass
class Moment:
    """The newest message of each key by its number.

    Attributes:
        published: of all.
        ended: of those that were acknowledged.
    """

    published: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)

    def copy(self) -> Moment:
        return Moment(dict(self.published), dict(self.ended))


class Trial:
    """Rounds over one disk, whose power goes after every operation.

    Args:
        seed: decides everything.
        counts: where to count.
    """

    def __init__(self, seed: int, counts: Counts) -> None:
        self.seed = seed
        self.rng = Random(f"last values {seed}")
        self.counts = counts
        self.kind = self.rng.choice(KINDS)
        self.disk = SimDisk(seed=seed)
        self.definitions = SimDefinitions(self.disk)
        self.broker = DiskBroker(self.disk, self.definitions, seed)
        arguments = {"x-queue-type": self.kind, "x-last-value-key": "routing_key"}
        self.broker.vhost.declare_queue("q", durable=True, arguments=arguments)
        self.number = 0
        self.out: dict[int, tuple[str, int]] = {}
        self.now, self.done = Moment(), Moment()
        self._commit()

    def run(self, rounds: int) -> None:
        """Rounds, one after the other; now and then the broker is another one in between."""
        for _ in range(rounds):
            for _ in range(self.rng.randrange(1, 8)):
                self.rng.choice(ACTIONS)(self)
            self._commit()
            if self.rng.random() < 0.2:
                self._restart()

    @property
    def queue(self) -> Any:
        """The queue."""
        return self.broker.vhost.queues["q"]

    def publish(self) -> None:
        """A message of one of the keys."""
        self.number += 1
        key = self.rng.choice(KEYS)
        body = f"{self.number} ".encode() + self.rng.randbytes(self.rng.choice(SIZES))
        self.queue.publish(Message("", key, Properties(b"\0\0", PERSISTENT), body))
        self.now.published[key] = self.number

    def take(self) -> None:
        """The next message is delivered."""
        taken = self.queue.get()
        if taken is not None:
            number = number_of(taken[0])
            assert number == self.now.published[taken[0].routing_key], "only the newest is ready"
            self.out[number] = (taken[0].routing_key, taken[1])

    def end(self) -> None:
        """A delivery ends."""
        if not self.out:
            return
        number = self.rng.choice(sorted(self.out))
        key, position = self.out.pop(number)
        if self.rng.random() < 0.4:
            self.queue.requeue_returned(position)
        else:
            self.queue.settle(position)
            self.queue.sync_soon()
            self.now.ended[key] = max(number, self.now.ended.get(key, 0))

    def _commit(self) -> None:
        self.disk.after = self._lose_power
        while self.broker.commit():
            self.queue.tick()
        self.disk.after = None
        self.done = self.now.copy()

    def _restart(self) -> None:
        """The process dies, and the power with it or not; another one goes on."""
        image = self.disk.crash(self.rng) if self.rng.random() < 0.5 else self.disk.copy()
        self.disk = image
        self.definitions = self.definitions.crash(image, self.rng)
        self.broker = DiskBroker(image, self.definitions, self.rng.getrandbits(30))
        self.out = {}
        self.now = Moment({key: number for key, (number,) in found_in(self.broker).items()})
        self.done = self.now.copy()

    def _lose_power(self) -> None:
        image = self.disk.crash(self.rng)
        where = f"seed {self.seed}, {self.kind}, operation {self.disk.operations}"
        try:
            self.judge(image, where)
        except Exception as error:
            raise BrokenPromiseError(f"{where}: {error!r}") from error

    def judge(self, image: SimDisk, where: str) -> None:
        """Open what was left, and compare it with what was promised."""
        self.counts.states += 1
        definitions = self.definitions.crash(image, self.rng)
        broker = DiskBroker(image, definitions, self.rng.getrandbits(30))
        if "q" not in broker.vhost.queues:
            if self.done.published:
                raise BrokenPromiseError(f"{where}: the queue is gone")
            return
        found = found_in(broker)
        for key in KEYS:
            numbers = found.get(key, [])
            confirmed, ended = self.done.published.get(key, 0), self.done.ended.get(key, 0)
            if len(numbers) > 1:
                raise BrokenPromiseError(f"{where}: {key} is there more than once: {numbers}")
            if numbers and numbers[0] < confirmed:
                raise BrokenPromiseError(f"{where}: {key} {numbers[0]} is older than {confirmed}")
            if numbers and numbers[0] <= ended:
                raise BrokenPromiseError(f"{where}: {key} {numbers[0]} was acknowledged")
            if not numbers and confirmed > self.now.ended.get(key, 0):
                raise BrokenPromiseError(f"{where}: {key} {confirmed} is lost")
            self.counts.replaced += bool(numbers) and numbers[0] > confirmed > 0


ACTIONS = (Trial.publish, Trial.publish, Trial.publish, Trial.take, Trial.end)


def number_of(message: Message) -> int:
    """The number of a message."""
    return int(message.body.split(b" ", 1)[0])


def found_in(broker: DiskBroker) -> dict[str, list[int]]:
    """The numbers of the messages of each key that are ready."""
    found: dict[str, list[int]] = {}
    order = broker.vhost.queues["q"].order
    cursors = [0]
    while (position := order.next_ready(cursors)) >= 0:
        order.pass_by(cursors, position)
        message = order.read(position)
        found.setdefault(message.routing_key, []).append(number_of(message))
    return found
