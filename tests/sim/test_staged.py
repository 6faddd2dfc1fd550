"""The power goes at any moment, and a batch whose rows come in slices is whole or not there.

Rows are appended in slices, each with a commit of the disk or without, and synced or not, while
others publish to the same queues. After every operation of the disk the power goes, and another
broker opens what is left: all rows of the batch are there if its number is, else none, and no
message of others is lost.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from harebell.base import impl
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.model.publishing.publishers import STAGED, Key
from harebell.model.publishing.routed import Routed
from harebell.model.queue.contract import Queue
from harebell.store.commit import Batch
from harebell.store.disk import DiskStore
from harebell.store.log.durable_log import DurableLog
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker

_USUAL = "800" if impl.chosen() == impl.NATIVE else "300"
STATES = int(os.environ.get("HAREBELL_STAGED_STATES", _USUAL))
SOAK_STATES = 100_000
KEY = Key(STAGED, "/", "guest", "p")
QUEUES = {
    "classic": {},
    "quorum": {"x-queue-type": "quorum"},
    "priority": {"x-max-priority": 3},
    "stream": {"x-queue-type": "stream"},
}
SIZES = (1, 100, 5_000, 30_000)
SEGMENTS = (6_000, 65_536)
"""In small segments the rows that are not synced are in many files."""


class Parted(BaseException):
    """A batch is there in part. Nobody on the way up may take it for an error of the disk."""


class Trial:
    """A few batches over one disk.

    Args:
        seed: decides everything.

    Attributes:
        states: how many disks were opened.
        whole: on how many of them the batch was there that was under way.
    """

    def __init__(self, seed: int) -> None:
        self.states = self.whole = 0
        self._seed = seed
        self._rng = Random(f"staged {seed}")
        self._disk = SimDisk(seed=seed)
        self._definitions = SimDefinitions(self._disk)
        self._segment_bytes = SEGMENTS[seed % len(SEGMENTS)]
        self._broker = self._opened(self._disk, self._definitions)
        self._number = 0
        self._batch = 0
        # What must be there, and what comes together with the number of the batch.
        self._there: dict[str, set[bytes]] = {name: set() for name in QUEUES}
        self._rows: dict[str, set[bytes]] = {name: set() for name in QUEUES}
        for name, arguments in QUEUES.items():
            self._broker.vhost.declare_queue(name, durable=True, arguments=arguments)
        self._broker.broker.publishers.enter(self._broker.broker.publishers.entry(KEY), "run")
        self._broker.commit()

    def run(self, batches: int) -> None:
        """Commit some batches, and refuse others."""
        for _ in range(batches):
            self._disk.after = self._lose_power
            self._one(refused=self._rng.random() < 0.3)
            self._disk.after = None

    def _message(self) -> Message:
        self._number += 1
        body = b"%d " % self._number + self._rng.randbytes(self._rng.choice(SIZES))
        return Message("", "k", Properties(b"\0\0", PERSISTENT, self._rng.randrange(-1, 4)), body)

    def _queue(self, names: Sequence[str] = tuple(QUEUES)) -> Queue:
        found: Queue = self._broker.vhost.queues[self._rng.choice(names)]
        return found

    def _one(self, *, refused: bool) -> None:
        broker, rng = self._broker.broker, self._rng
        entry = broker.publishers.find(KEY)
        assert entry is not None
        self._rows = {name: set() for name in QUEUES}
        staging = broker.publishers.begin(entry, self._batch)
        routed = Routed()
        # With few queues a commit often has nothing but rows.
        names = rng.choice((tuple(QUEUES), ("classic",), ("stream", "quorum")))
        for _ in range(rng.randrange(1, 7)):
            broker.commit.staging = staging
            for _ in range(rng.randrange(1, 6)):
                queue, row = self._queue(names), self._message()
                self._rows[queue.name].add(row.body)
                routed.put(row, queue.itself)
            broker.commit.staging = 0
            if rng.random() < 0.3:
                self._publish()
            if rng.random() < 0.6:
                broker.commit.unsynced = rng.random() < 0.8
                self._broker.commit()
            for name in QUEUES:
                self._unseen(name)
        if refused:
            broker.commit.joint = True
            routed.roll_back_batch()
            self._rows = {name: set() for name in QUEUES}
        else:
            broker.publishers.advance(entry, self._batch)
        broker.publishers.finish(entry)
        self._broker.commit()
        if not refused:
            routed.commit_batch()
            self._batch += 1
            for name, rows in self._rows.items():
                self._there[name] |= rows
            self._rows = {name: set() for name in QUEUES}
        for name in QUEUES:
            found = self._waiting(self._broker, name)
            assert found == self._there[name], f"seed {self._seed}: {name} after the batch"

    def _publish(self) -> None:
        """Somebody else publishes, and has it confirmed."""
        queue, message = self._queue(), self._message()
        queue.publish(message)
        self._broker.commit()
        self._there[queue.name].add(message.body)

    def _unseen(self, name: str) -> None:
        queue = self._broker.vhost.queues[name]
        assert queue.ready_count() <= len(self._there[name]), "rows are seen before their batch is"

    @staticmethod
    def _waiting(broker: DiskBroker, name: str) -> set[bytes]:
        queue = broker.vhost.queues[name]
        found = set()
        for log in _logs(broker, queue):
            position = log.first()
            while position < log.end():
                message = log.read(position)
                assert message is not None
                found.add(message.body)
                position = log.next(position + 1)
        return found

    def _lose_power(self) -> None:
        self.states += 1
        where = f"seed {self._seed}, operation {self._disk.operations}"
        image = self._disk.crash(self._rng) if self._rng.random() < 0.7 else self._disk.copy()
        rows = self._definitions.crash(image, self._rng)
        broker = self._opened(image, rows)
        self._judge(broker, where)
        broker.commit()
        self._judge(self._opened(image, rows), f"{where}, opened again")

    def _opened(self, disk: SimDisk, definitions: SimDefinitions) -> DiskBroker:
        return DiskBroker(disk, definitions, self._seed, segment_bytes=self._segment_bytes)

    def _judge(self, broker: DiskBroker, where: str) -> None:
        entry = broker.broker.publishers.find(KEY)
        whole = entry is not None and entry.next > self._batch
        self.whole += whole
        for name in QUEUES:
            found = self._waiting(broker, name)
            rows = self._rows[name]
            if not self._there[name] <= found:
                raise Parted(f"{where}: messages of {name} are lost")
            if rows & found != (rows if whole else set()):
                raise Parted(f"{where}: {len(rows & found)} of {len(rows)} rows are in {name}")


def _logs(broker: DiskBroker, queue: Queue) -> list[DurableLog]:
    logs = broker.disk_store.logs
    return [log for name, log in logs.items() if name.partition("-")[0] == queue.identity]


def _trials(states: int, seed: int) -> None:
    done = whole = 0
    while done < states:
        trial = Trial(seed)
        trial.run(4)
        done += trial.states
        whole += trial.whole
        seed += 1
    assert whole > 0, "no batch was ever found whole before it was told so"


@pytest.mark.timeout(900)
def test_a_batch_in_slices_is_whole_or_absent_whenever_the_power_goes() -> None:
    _trials(STATES, 1)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_a_batch_in_slices_is_whole_or_absent_in_many_power_losses() -> None:
    _trials(SOAK_STATES, 1_000_000)


# --- the harness finds what is planted ----------------------------------------------------------


def test_rows_that_no_commit_syncs_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    perform = Batch.perform

    def forgetful(batch: Batch) -> None:
        for part in batch.parts:
            part.early = []
        perform(batch)

    monkeypatch.setattr(Batch, "perform", forgetful)
    with pytest.raises(Parted, match="rows are in"):
        _trials(STATES, 1)


def test_a_start_that_takes_no_rows_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DiskStore, "take_back", lambda store, identity, position: None)
    with pytest.raises(Parted, match="rows are in"):
        _trials(STATES, 1)
