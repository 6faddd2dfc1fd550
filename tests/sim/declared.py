"""What is declared, claimed and numbered, and what a power loss leaves of it.

The definitions are the broker's own database, on the simulated disk.

A trial works in rounds: a few changes, then the commit that makes them durable, with a power loss
after every operation of the disk, the database's among them. What is left is opened by another
broker and compared with two moments: `done`, which was promised, and `asked`, which is under way.

    declared   queues, exchanges, bindings, policies, groups with their epochs and claims: all as at
               one of the two moments, for a commit is one transaction
    messages   a confirmed one is ready or in a claim, until its claim was committed; then never
    claims     a promised one has the messages that it had, in their order
    keys       where their order is kept, one group at most has claimed of a key, nobody else gets
               any of it, and all of it comes in its order
    numbers    a publisher's number is there with the message that it belongs to, or neither is
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harebell.base.message import PERSISTENT, Message, Properties
from harebell.model.publishing.publishers import NUMBERED, Key
from harebell.model.settings.policy import Policy
from tests.sim.database import Database
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker
from tests.sim.prepared import BrokenPromiseError

KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"x-queue-type": "quorum"},
    {"x-max-priority": 3},
    {"x-group-key": "routing_key"},
    {"x-group-key": "routing_key", "x-queue-type": "quorum"},
)
NAMES = ("one", "two", "three")
KEYS = ("a", "b.c", "#")
ORDERED = ("k", "l", "m")
PUBLISHER = Key(NUMBERED, "/", "guest", "publisher")
BIG = 30_000
HOLDER = "holder"

Group = tuple[str, str, int, int, int]
"""Queue, group, its epoch, the last claim committed, the last one made."""


@dataclass
class Counts:
    """What was tried, and how often it was found as before, and as after the commit."""

    states: int = 0
    before: int = 0
    after: int = 0
    claims: int = 0


@dataclass
class Moment:
    """What there is at one time.

    Attributes:
        rows: what is declared.
        claims: of every claim the bodies, by queue, group and number.
        messages: by queue, its identity among them, all that is ready or claimed.
        number: the next one of the publisher.
    """

    rows: frozenset[Any] = frozenset()
    claims: dict[tuple[str, str, int], tuple[bytes, ...]] = field(default_factory=dict)
    messages: dict[str, set[bytes]] = field(default_factory=dict)
    number: int = 0


class Broker(DiskBroker):
    """A broker that may find a claim without its messages; the trial judges which."""

    def misses(self, sentence: str) -> None:
        """Claims count as lost when what they claimed was not on disk yet."""
        if "outlived the restart" not in sentence:
            super().misses(sentence)


def rows_of(broker: DiskBroker) -> frozenset[Any]:
    """What is declared, but for what every broker has."""
    vhost = broker.vhost
    found: list[Any] = [
        ("queue", queue.name, queue.identity, str(sorted(queue.arguments.items())))
        for queue in vhost.queues.values()
    ]
    found += [("exchange", name) for name in vhost.exchanges if not name.startswith("amq.")]
    found += [
        ("binding", each.source.name, each.destination.name, each.routing_key)
        for each in vhost.bindings()
        if each.source.name
    ]
    found += [
        ("policy", each.name, each.pattern, str(each.definition))
        for each in vhost.policies.policies.values()
    ]
    found += [
        ("group", group.queue.name, group.name, group.epoch, group.committed, group.last)
        for group in broker.broker.leases.of()
    ]
    found += [
        ("claim", group.queue.name, group.name, claim.number, claim.runs)
        for group in broker.broker.leases.of()
        for claim in group.claims.values()
    ]
    return frozenset(found)


def claims_of(broker: DiskBroker) -> dict[tuple[str, str, int], tuple[bytes, ...]]:
    """The bodies of what is claimed, read from the logs."""
    found = {}
    for group in broker.broker.leases.of():
        logs = group.queue.claims().logs()
        for claim in group.claims.values():
            bodies = []
            for run in claim.runs:
                log = logs[run.level]
                position = log.next(run.first)
                while position < run.end:
                    message = log.read(position)
                    bodies.append(b"" if message is None else message.body)
                    position = log.next(position + 1)
            found[group.queue.name, group.name, claim.number] = tuple(bodies)
    return found


def key_and_number(body: bytes) -> tuple[bytes, int]:
    """What a message was published with, and the how-many-eth it was."""
    _, number, key, _ = body.split(b" ", 3)
    return key, int(number)


def taken(queue: Any) -> list[bytes]:
    """The bodies of all that somebody gets who takes what is ready, one after the other."""
    found = []
    while (got := queue.get()) is not None:
        found.append(got[0].body)
        if "x-group-key" in queue.arguments:
            # What follows of its key may go now.
            queue.settle(got[1])
    return found


def judge_keys(broker: DiskBroker, where: str) -> None:
    """Every key is claimed by one group, in its order."""
    claims = claims_of(broker)
    for queue in broker.vhost.queues.values():
        if "x-group-key" not in queue.arguments:
            continue
        holders: dict[bytes, str] = {}
        last: dict[bytes, int] = {}
        for (name, group, _), bodies in sorted(claims.items(), key=lambda each: each[0]):
            for key, number in map(key_and_number, bodies if name == queue.name else ()):
                if holders.setdefault(key, group) != group:
                    raise BrokenPromiseError(f"{where}: two groups of {name} have key {key!r}")
                if number <= last.get(key, 0):
                    raise BrokenPromiseError(f"{where}: {name} has key {key!r} out of order")
                last[key] = number


class Trial:
    """Rounds over one disk, whose power goes after every operation.

    Args:
        seed: decides everything.
        counts: where to count.
        keep: makes the definitions on a disk.
    """

    def __init__(
        self,
        seed: int,
        counts: Counts,
        keep: Callable[[SimDisk], Database] = Database,
    ) -> None:
        self.seed = seed
        self.rng = Random(f"declared {seed}")
        self.counts = counts
        self.disk = SimDisk(seed=seed)
        self.keep = keep
        self.definitions = keep(self.disk)
        self.broker = Broker(self.disk, self.definitions, seed)
        self.number = 0
        self.messages: dict[str, set[bytes]] = {}
        self.numbered: dict[int, tuple[str, bytes]] = {}
        self.finishing: set[bytes] = set()
        self.asked = self.done = Moment()
        self._commit()

    def run(self, rounds: int) -> None:
        """Rounds, one after the other; now and then the broker is another one in between."""
        for _ in range(rounds):
            for _ in range(self.rng.randrange(1, 5)):
                self.rng.choice(CHANGES)(self)
            self._commit()
            if self.rng.random() < 0.2:
                self._restart()

    # --- work -----------------------------------------------------------------------------------

    def declare(self) -> None:
        """A queue, or an exchange."""
        vhost, name = self.broker.vhost, self.rng.choice(NAMES)
        if name not in vhost.queues:
            vhost.declare_queue(name, durable=True, arguments=self.rng.choice(KINDS))
            self.messages[vhost.queues[name].identity] = set()
        elif name not in vhost.exchanges:
            vhost.declare_exchange(name, "topic", durable=True)

    def undeclare(self) -> None:
        """A queue or an exchange goes, now and then."""
        vhost, name = self.broker.vhost, self.rng.choice(NAMES)
        if self.rng.random() < 0.3 and name in vhost.queues:
            self.messages.pop(vhost.queues[name].identity)
            vhost.delete_queue(name)
        elif name in vhost.exchanges:
            vhost.delete_exchange(name)

    def bind(self) -> None:
        """A queue is bound, or bound no more."""
        vhost, queue = self.broker.vhost, self._queue()
        if queue is not None:
            key = self.rng.choice(KEYS)
            if not vhost.unbind("amq.topic", queue, key):
                vhost.bind("amq.topic", queue, key)

    def configure(self) -> None:
        """A policy is set, or goes."""
        policies, name = self.broker.vhost.policies, self.rng.choice(NAMES)
        if name in policies.policies and self.rng.random() < 0.5:
            policies.delete(name)
        else:
            many = 1_000 + self.rng.randrange(1_000)
            policies.put(Policy(name, f"^{name}$", "queues", 0, {"max-length": many}))

    def publish(self) -> None:
        """Some messages, the last of which may be a publisher's."""
        queue = self._queue()
        if queue is None:
            return
        for _ in range(self.rng.randrange(1, 6)):
            self._publish(queue)
        if self.rng.random() < 0.5:
            known = self.broker.broker.publishers
            entry = known.entry(PUBLISHER)
            number = entry.next
            known.advance(entry, number)
            self.numbered[number] = (queue.identity, self._publish(queue))

    def _publish(self, queue: Any) -> bytes:
        self.number += 1
        size = self.rng.choice((1, 100, 3_000, BIG))
        key = self.rng.choice(ORDERED)
        body = f"{self.seed} {self.number} {key} ".encode() + self.rng.randbytes(size)
        raw = Properties(b"\0\0", PERSISTENT, self.rng.randrange(-1, 4))
        queue.publish(Message("", key, raw, body))
        self.messages[queue.identity].add(body)
        return body

    def lease(self) -> None:
        """A group does something, and is made if it has to be."""
        queue = self._queue()
        if queue is None:
            return
        leases, vhost, rng = self.broker.broker.leases, self.broker.vhost, self.rng
        name = rng.choice(("g", "h"))
        groups = {} if queue.leases is None else queue.leases.groups
        if name not in groups or rng.random() < 0.2:
            leases.open(vhost, queue, name, 0, HOLDER)
        group = leases.find(vhost, queue, name)
        what = rng.random()
        if what < 0.6:
            leases.claim(group, rng.randrange(1, 6), 0, HOLDER)
        elif what < 0.9 and group.claims:
            upto = rng.choice(list(group.claims))
            bodies = claims_of(self.broker)
            for number in [each for each in group.claims if each <= upto]:
                gone = bodies[queue.name, name, number]
                self.messages[queue.identity].difference_update(gone)
                self.finishing.update(gone)
            leases.commit(group, upto, HOLDER)
        elif what < 0.97:
            leases.release(group, rng.randrange(1, group.last + 2), HOLDER)
        else:
            leases.close(group, forget=True)

    def _queue(self) -> Any:
        queues = self.broker.vhost.queues
        return queues[self.rng.choice(list(queues))] if queues else None

    # --- commits --------------------------------------------------------------------------------

    def _moment(self) -> Moment:
        entry = self.broker.broker.publishers.find(PUBLISHER)
        return Moment(
            rows_of(self.broker),
            claims_of(self.broker),
            {identity: set(bodies) for identity, bodies in self.messages.items()},
            0 if entry is None else entry.next,
        )

    def _commit(self) -> None:
        judge_keys(self.broker, f"seed {self.seed}")
        self.asked = self._moment()
        self.disk.after = self._lose_power
        while self.broker.commit():
            pass
        self.disk.after = None
        self.done = self.asked
        self.finishing.clear()

    def _restart(self) -> None:
        """The process dies, and the power with it or not; another one goes on."""
        image = self.disk.crash(self.rng) if self.rng.random() < 0.5 else self.disk.copy()
        self.disk = image
        self.definitions = self.keep(image)
        self.broker = Broker(image, self.definitions, self.rng.getrandbits(30))

    # --- power losses ---------------------------------------------------------------------------

    def _lose_power(self) -> None:
        image = self.disk.crash(self.rng)
        where = f"seed {self.seed}, operation {self.disk.operations}"
        try:
            self.judge(image, where)
            if self.rng.random() < 0.1:
                self.judge(self._dies_again(image), f"{where}, crashed again")
        except Exception as error:
            raise BrokenPromiseError(f"{where}: {error!r}") from error

    def _dies_again(self, image: SimDisk) -> SimDisk:
        """What a broker leaves that dies anywhere in its first commits after a restart."""
        image = image.copy()
        after = self.rng.randrange(12)
        left: list[SimDisk] = []

        def lose_power() -> None:
            if not left and image.operations >= last:
                left.append(image.crash(self.rng))

        broker = Broker(image, self.keep(image), self.rng.getrandbits(30))
        last = image.operations + after
        image.after = lose_power
        while broker.commit():
            pass
        image.after = None
        return left[0] if left else image.crash(self.rng)

    def judge(self, image: SimDisk, where: str) -> None:
        """Open what was left, and compare it with what was promised."""
        self.counts.states += 1
        rows = self.keep(image)
        broker = Broker(image, rows, self.rng.getrandbits(30))
        found = rows_of(broker)
        lost = self._lost(broker)
        wanted = [self.asked.rows, self.done.rows]
        if found not in [each - lost for each in wanted]:
            news = sorted(map(str, found - self.done.rows))
            olds = sorted(map(str, self.done.rows - found))
            raise BrokenPromiseError(f"{where}: declared more {news}, less {olds}")
        now = self.asked if found == self.asked.rows - lost else self.done
        self.counts.after += now is self.asked
        self.counts.before += now is self.done and self.done.rows != self.asked.rows
        claims = claims_of(broker)
        self.counts.claims += len(claims)
        for key, bodies in claims.items():
            if now.claims[key] != bodies:
                raise BrokenPromiseError(f"{where}: claim {key} has other messages")
        judge_keys(broker, where)
        self._judge_messages(broker, claims, where, committed=now is self.asked)

    def _lost(self, broker: DiskBroker) -> frozenset[Any]:
        """Claims under way that count as lost: not all of their messages were on disk."""
        found = []
        for row in self.asked.rows - self.done.rows:
            if row[0] != "claim":
                continue
            _, queue, name, number, _ = row
            leases = broker.vhost.queues[queue].leases if queue in broker.vhost.queues else None
            group = leases.groups.get(name) if leases is not None else None
            confirmed = set().union(*self.done.messages.values())
            fresh = set(self.asked.claims[queue, name, number]) - confirmed
            if group is not None and number <= group.lost and fresh:
                found.append(row)
        return frozenset(found)

    def _judge_messages(
        self,
        broker: DiskBroker,
        claims: dict[tuple[str, str, int], tuple[bytes, ...]],
        where: str,
        *,
        committed: bool,
    ) -> None:
        entry = broker.broker.publishers.find(PUBLISHER)
        number = 0 if entry is None else entry.next
        if number not in (self.done.number, self.asked.number):
            raise BrokenPromiseError(f"{where}: the publisher is at {number}")
        there: set[bytes] = set()
        for queue in broker.vhost.queues.values():
            there |= self._judge_queue(broker, queue, claims, number, where)
        if committed and there & self.finishing:
            raise BrokenPromiseError(f"{where}: what was committed is back")

    def _judge_queue(
        self,
        broker: DiskBroker,
        queue: Any,
        claims: dict[tuple[str, str, int], tuple[bytes, ...]],
        number: int,
        where: str,
    ) -> set[bytes]:
        """Everything that is ready or claimed, which some of the time is given back first."""
        there: list[bytes] = []
        claimed = [body for key, each in claims.items() if key[0] == queue.name for body in each]
        keys = "x-group-key" in queue.arguments
        if keys and self.rng.random() < 0.5:
            there += taken(queue)
            held = {key_and_number(body)[0] for body in claimed}
            if held & {key_and_number(body)[0] for body in there}:
                raise BrokenPromiseError(f"{where}: {queue.name} lets go of a key that is claimed")
            self._release(broker, queue)
        elif keys or self.rng.random() < 0.5:
            self._release(broker, queue)
        else:
            there += claimed
        there += taken(queue)
        if keys:
            self._judge_order(there, f"{where}: {queue.name}")
        found = set(there)
        if len(there) != len(found):
            raise BrokenPromiseError(f"{where}: queue {queue.name} has a message twice")
        before = self.done.messages.get(queue.identity, set())
        after = self.asked.messages.get(queue.identity, before)
        if not before & after <= found <= before | after:
            less, more = len((before & after) - found), len(found - (before | after))
            raise BrokenPromiseError(f"{where}: {queue.name} lacks {less}, {more} too many")
        for each, (identity, body) in self.numbered.items():
            mine = identity == queue.identity and body in after
            if mine and (each < number) != (body in found):
                raise BrokenPromiseError(f"{where}: number {each} without its message")
        return found

    def _release(self, broker: DiskBroker, queue: Any) -> None:
        """Everything that is claimed goes back."""
        for group in () if queue.leases is None else queue.leases.groups.values():
            broker.broker.leases.release(group, 1, HOLDER)

    def _judge_order(self, there: list[bytes], where: str) -> None:
        """All of a key comes in the order in which it was published."""
        last: dict[bytes, int] = {}
        for key, number in map(key_and_number, there):
            if number < last.get(key, 0):
                raise BrokenPromiseError(f"{where} has key {key!r} out of order")
            last[key] = number


CHANGES: tuple[Callable[[Trial], None], ...] = (
    Trial.declare,
    Trial.undeclare,
    Trial.bind,
    Trial.configure,
    Trial.publish,
    Trial.publish,
    Trial.publish,
    Trial.lease,
    Trial.lease,
    Trial.lease,
    Trial.lease,
)
