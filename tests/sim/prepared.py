"""Branches of distributed transactions over the simulated disk, and what a power loss leaves.

A trial has three queues. Each round publishes some messages, lets a branch take them and publish
others, prepares it and ends it, with other work between. `Trial.judge` opens what a power loss has
left, at any moment, and compares it with what was promised by then:

    began    nothing was promised: the branch is there as a whole or not at all
    prepared it has to be there, its messages out, and both ends possible
    asked    an end was asked for: there, or ended in that way, but nothing between
    ended    in that way
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.slices import at_once
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT
from harebell.model.xa.branch import OPERATOR, Branch
from harebell.model.xa.states import Call
from harebell.model.xa.xid import Xid
from tests.sim.database import Database
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker

QUEUES: dict[str, dict[str, Any]] = {
    "classic": {},
    "levels": {"x-max-priority": 3},
    "quorum": {"x-queue-type": "quorum"},
}
BIG = 40_000
"""Some bodies are so large that two of them fill a segment."""


Rows = SimDefinitions | Database
Copy = tuple[str, bytes]
"""A message in one queue: the queue's name, and the body."""


class BrokenPromiseError(BaseException):
    """What a power loss left is not what was promised; nobody on the way up may catch it."""


@dataclass
class Counts:
    """What was tried: disks that were judged, and those where the branch was still in doubt."""

    states: int = 0
    in_doubt: int = 0
    ended: int = 0


@dataclass
class Round:
    """One branch: what it takes and brings, and what has been promised of it."""

    xid: Xid
    commit: bool
    taken: set[Copy] = field(default_factory=set)
    brought: set[Copy] = field(default_factory=set)
    stage: str = "began"


class _Out:
    def __init__(self, queue: Queue, position: int) -> None:
        self.queue = queue
        self.position = position


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
        keep: Callable[[SimDisk], Rows] = SimDefinitions,
    ) -> None:
        self.seed = seed
        self.rng = Random(f"prepared {seed}")
        self.counts = counts
        self.disk = SimDisk(seed=seed)
        self.definitions = keep(self.disk)
        self.broker = DiskBroker(self.disk, self.definitions, seed)
        self.number = 0
        self.round: Round | None = None
        for name, arguments in QUEUES.items():
            self.broker.vhost.declare_queue(name, durable=True, arguments=arguments)
        self._sync()

    def run(self, rounds: int) -> None:
        """Rounds, one after the other; now and then the broker is another one in between."""
        for number in range(rounds):
            self._round(Xid(number, b"transaction", b"branch"))
            if self.rng.random() < 0.2:
                self._restart()

    # --- work -----------------------------------------------------------------------------------

    def _queue(self) -> Queue:
        found: Queue = self.broker.vhost.queues[self.rng.choice(list(QUEUES))]
        return found

    def _message(self) -> Message:
        self.number += 1
        size = self.rng.choice((1, 100, 5_000, BIG))
        body = f"{self.seed} {self.number} ".encode() + self.rng.randbytes(size)
        raw = Properties(b"\0\0", PERSISTENT, self.rng.randrange(-1, 5))
        return Message("", "key", raw, body)

    def _publish(self, count: int) -> None:
        for _ in range(count):
            message = self._message()
            self._queue().publish(message)
        self._sync()

    def _consume(self) -> None:
        """Somebody else takes a message, outside of any branch."""
        queue = self._queue()
        got = queue.get()
        if got is not None:
            queue.settle(got[1])
            queue.sync_soon()
        self._sync()

    def _round(self, xid: Xid) -> None:
        rng, branches = self.rng, self.broker.broker.branches
        self._publish(rng.randrange(2, 5))
        branch = branches.begin("/", xid, OPERATOR)
        branch.sessions = 1
        trial = Round(xid, rng.random() < 0.5)
        self._work(branch, trial)
        self._leave(branch)
        self.round = trial
        self.disk.after = partial(self._lose_power, self.disk)
        at_once(branches.prepare("/", xid, OPERATOR))
        self._sync()
        trial.stage = "prepared"
        if rng.random() < 0.3:
            self._restart()
        self._publish(rng.randrange(3))
        self._end(trial)
        self.disk.after = None
        self.round = None
        self._consume()

    def _work(self, branch: Branch, trial: Round) -> None:
        for _ in range(self.rng.randrange(1, 4)):
            queue = self._queue()
            got = queue.get()
            if got is not None:
                branch.settle([_Out(queue, got[1])], ACCEPT)
                trial.taken.add((queue.name, got[0].body))
        for _ in range(self.rng.randrange(1, 4)):
            message = self._message()
            targets = {self._queue(): None, self._queue(): None}
            branch.publish(message, tuple(targets), 0)
            trial.brought |= {(queue.name, message.body) for queue in targets}

    def _leave(self, branch: Branch) -> None:
        branch.sessions = 0
        self.broker.broker.branches.apply(branch, Call.LAST_END)

    def _end(self, trial: Round) -> None:
        branches = self.broker.broker.branches
        trial.stage = "asked"
        if trial.commit:
            at_once(branches.commit("/", trial.xid, OPERATOR, one_phase=False))
        else:
            at_once(branches.rollback("/", trial.xid, OPERATOR))
        self._sync()
        trial.stage = "ended"

    def _sync(self) -> None:
        self.broker.commit()

    def _restart(self) -> None:
        """The process dies, and the power with it or not; another one goes on."""
        after, self.disk.after = self.disk.after, None
        image = self.disk.crash(self.rng) if self.rng.random() < 0.5 else self.disk.copy()
        self.definitions = self.definitions.crash(image, self.rng)
        self.disk = image
        self.broker = DiskBroker(image, self.definitions, self.rng.getrandbits(30))
        self.disk.after = None if after is None else partial(self._lose_power, self.disk)

    # --- power losses ---------------------------------------------------------------------------

    def _lose_power(self, disk: SimDisk) -> None:
        image = disk.crash(self.rng)
        rows = self.definitions.crash(image, self.rng)
        self.judge(image, rows)

    def judge(self, image: SimDisk, rows: Rows) -> None:
        """Open what was left, and compare it with what was promised."""
        trial = self.round
        assert trial is not None
        self.counts.states += 1
        broker = DiskBroker(image, rows, self.rng.getrandbits(30))
        known = broker.broker.branches.in_doubt("/", OPERATOR) == [trial.xid]
        where = f"seed {self.seed}, {trial.stage}, operation {self.disk.operations}"
        if trial.stage == "prepared" and not known:
            raise BrokenPromiseError(f"{where}: a prepared branch is lost")
        if trial.stage == "ended" and known:
            raise BrokenPromiseError(f"{where}: an ended branch is back")
        if not known:
            done = trial.commit and trial.stage != "began"
            undecided = trial.stage == "began"
            self._compare(broker, trial, do=done and not undecided, where=where)
            self.counts.ended += 1
            return
        self.counts.in_doubt += 1
        self._compare(broker, trial, do=None, where=where)
        commit = self.rng.random() < 0.5
        again = DiskBroker(image.copy(), rows, self.rng.getrandbits(30))
        if commit:
            at_once(again.broker.branches.commit("/", trial.xid, OPERATOR, one_phase=False))
        else:
            at_once(again.broker.branches.rollback("/", trial.xid, OPERATOR))
        again.commit()
        self._compare(again, trial, do=commit, where=f"{where}, ended after the restart")
        last = again.disk.crash(self.rng)
        final = DiskBroker(last, rows.crash(last, self.rng), self.rng.getrandbits(30))
        if final.broker.branches.in_doubt("/", OPERATOR):
            raise BrokenPromiseError(f"{where}: it comes back after its end")
        self._compare(final, trial, do=commit, where=f"{where}, ended and restarted")

    def _compare(self, broker: DiskBroker, trial: Round, *, do: bool | None, where: str) -> None:
        """What is ready: with the work of the branch, without it, or with neither (None)."""
        found: set[Copy] = set()
        for queue in broker.vhost.queues.values():
            got = queue.get()
            while got is not None:
                found.add((queue.name, got[0].body))
                got = queue.get()
        wanted = {True: trial.brought, False: trial.taken, None: set()}[do]
        mine = found & (trial.brought | trial.taken)
        if mine != wanted:
            raise BrokenPromiseError(
                f"{where}: {len(mine & trial.taken)} of {len(trial.taken)} that were taken and "
                f"{len(mine & trial.brought)} of {len(trial.brought)} that were brought are ready"
            )
