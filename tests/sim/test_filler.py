"""Space that is written ahead of records is no damage, whenever the process dies.

A process that is killed takes nothing with it that it has written: its octets are in the system's
memory. So nothing that is found then was ever damaged, and whatever is reported is a false alarm.
Here it dies after every operation of the disk, while transactions go through the redo file, logs
roll over into new segments, and space is written ahead.
"""

from __future__ import annotations

import pytest

from harebell.base import impl
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.logs import Accounts, Life
from tests.sim.script import Script, Shape

# Uncompiled it is the same code, and takes longer.
SCRIPTS = 60 if impl.chosen() == impl.NATIVE else 20
SOAK_SCRIPTS = 20_000
SHAPE = Shape(
    steps=30,
    sizes=(10, 100, 300, 700),
    segment_bytes=1536,
    logs=2,
    commits=15,
    churn=0,
    transactions=30,
    ahead_from=256,
)


class FalseAlarm(BaseException):
    """Something counts as damage. Nobody on the way up may take it for an error of the disk."""


class Killed:
    """A script, and a kill after every operation of the disk.

    Args:
        seed: decides everything.

    Attributes:
        kills: how many there were.
    """

    def __init__(self, seed: int) -> None:
        self.kills = 0
        self._seed = seed
        self._rng = Random(f"filler {seed}")
        self._disk = SimDisk(seed=seed)
        self._definitions = SimDefinitions(self._disk)
        self._accounts = Accounts()

    def run(self) -> None:
        """Work, and die after each operation."""
        life = Life(self._disk, self._definitions, self._accounts, 0, ahead_from=SHAPE.ahead_from)
        life.recover()
        self._disk.after = self._kill
        Script(life, SHAPE, Random(f"filler script {self._seed}")).run()
        self._disk.after = None

    def _kill(self) -> None:
        self.kills += 1
        where = f"seed {self._seed}, operation {self._disk.operations}"
        image = self._disk.copy()
        rows = self._definitions.crash(image, self._rng)
        life = Life(image, rows, self._accounts.copy(), 1, ahead_from=SHAPE.ahead_from)
        life.recover()
        alarms = [text for level, text in life.reports if level == "error"]
        if alarms:
            raise FalseAlarm(f"{where}: {alarms}")
        life.judge(where, life.look(where))


def _scripts(count: int, first: int = 0) -> None:
    kills = 0
    for seed in range(first, first + count):
        killed = Killed(seed)
        killed.run()
        kills += killed.kills
    assert kills > count * SHAPE.steps, "hardly anything was killed"


@pytest.mark.timeout(900)
def test_no_kill_leaves_anything_that_counts_as_damage() -> None:
    _scripts(SCRIPTS)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_no_kill_of_many_leaves_anything_that_counts_as_damage() -> None:
    _scripts(SOAK_SCRIPTS, first=1_000)
