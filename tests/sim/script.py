"""Random work for the logs of a simulated process: everything that a broker does with them."""

from __future__ import annotations

from dataclasses import dataclass

from tests.sim.disk import Random
from tests.sim.logs import AHEAD_FROM, Life

NEVER = 1 << 60
"""A size that no segment reaches."""


@dataclass(frozen=True)
class Shape:
    """What a script is like.

    Args:
        steps: how many actions it has.
        sizes: of the bodies, in octets.
        segment_bytes: the size of the segments.
        logs: how many there are at most at a time.
        commits: how likely every step is a commit, in percent.
        stream: whether old segments are let go, and transient messages kept.
        churn: how likely a step makes or deletes a log, in percent.
        patience: how likely the oldest delivered message is left alone when others are settled.
        transactions: how likely a step is a transaction, in percent.
        ahead_from: the size of a segment from which space is written ahead of its records.
    """

    steps: int = 60
    sizes: tuple[int, ...] = (0, 10, 100, 700, 3000)
    segment_bytes: int = 4096
    logs: int = 3
    commits: int = 25
    stream: bool = False
    churn: int = 4
    patience: float = 0.0
    transactions: int = 5
    ahead_from: int = AHEAD_FROM


SHAPES: dict[str, Shape] = {
    "mixed": Shape(),
    "one log, tiny records": Shape(sizes=(0, 10, 30), logs=1, segment_bytes=1024),
    "large records": Shape(sizes=(3000, 9000, 500), logs=2, steps=40),
    "stream": Shape(stream=True, logs=1, segment_bytes=2048),
    "churn": Shape(churn=25, logs=4, steps=50, ahead_from=NEVER),
    "few commits": Shape(commits=6, segment_bytes=2048, ahead_from=NEVER),
    "every step a commit": Shape(commits=70, steps=50),
    "stragglers": Shape(
        sizes=(10, 100, 300), segment_bytes=1024, logs=1, commits=35, churn=0, patience=0.85
    ),
    "one segment": Shape(segment_bytes=1 << 20, logs=2),
    "transactions": Shape(sizes=(10, 100, 700), segment_bytes=2048, logs=4, transactions=40),
}


class Script:
    """Drives one life.

    Args:
        life: whom.
        shape: what the work is like.
        rng: decides everything.

    Attributes:
        stalled: how many commits had to wait for the disk.
    """

    def __init__(self, life: Life, shape: Shape, rng: Random) -> None:
        self.life = life
        self.shape = shape
        self.rng = rng
        self.stalled = 0

    def run(self, steps: int | None = None) -> None:
        """Work for some steps, and commit at the end."""
        if not self.life.logs:
            self._new_log()
        for _ in range(self.shape.steps if steps is None else steps):
            self._step()
        self._commit()

    def _step(self) -> None:
        life, rng, shape = self.life, self.rng, self.shape
        life.clock.ms += rng.choice((0, 1, 1000))
        dice = rng.randrange(100)
        if dice < shape.commits:
            self._commit()
            return
        if dice < shape.commits + shape.churn or not life.logs:
            self._churn()
            return
        if rng.randrange(100) < shape.transactions:
            self._transact()
            return
        identity = rng.choice(list(life.logs))
        act = rng.randrange(20)
        if act < 7:
            self._append(identity)
        elif act < 11:
            for _ in range(rng.randint(1, 6)):
                life.deliver(identity)
        elif act < 16:
            self._settle(identity)
        elif act == 16:
            self._count(identity)
        elif act in (17, 18):
            life.gather()
        elif shape.stream:
            life.retain(identity, shape.segment_bytes * rng.choice((1, 2, 4)))
        elif rng.random() < 0.3:
            life.settle_all(identity)

    def _commit(self) -> None:
        for identity in self.life.logs:
            if self.rng.random() < 0.5:
                self.life.sync_soon(identity)
        if not self.life.commit():
            self.stalled += 1

    def _new_log(self) -> None:
        stream = self.shape.stream
        self.life.new_log(keep_all=stream, segment_bytes=self.shape.segment_bytes)

    def _churn(self) -> None:
        life = self.life
        if len(life.logs) < self.shape.logs and (not life.logs or self.rng.random() < 0.6):
            self._new_log()
        elif len(life.logs) > 1:
            life.delete_log(self.rng.choice(list(life.logs)))

    def _append(self, identity: str) -> None:
        rng = self.rng
        for _ in range(rng.randint(1, 6)):
            self.life.append(identity, rng.choice(self.shape.sizes), rng.random() < 0.85, rng)

    def _transact(self) -> None:
        """Publish to some logs and acknowledge from some, as one."""
        rng, sizes = self.rng, self.shape.sizes
        logs = list(self.life.logs)
        puts = [(rng.choice(logs), rng.choice(sizes)) for _ in range(rng.randint(1, 4))]
        takes = [identity for identity in logs if rng.random() < 0.5]
        self.life.transact(puts, takes, rng)

    def _settle(self, identity: str) -> None:
        rng, held = self.rng, self.life.held[identity]
        spared = 1 if rng.random() < self.shape.patience else 0
        for _ in range(rng.choice((1, 1, 3, len(held)))):
            if len(held) <= spared:
                return
            self.life.settle(identity, rng.choice((spared, rng.randrange(spared, len(held)))))

    def _count(self, identity: str) -> None:
        held = self.life.held[identity]
        if held:
            self.life.count(identity, self.rng.randrange(len(held)), self.rng.randint(1, 5))
