"""A simulated machine: the broker over the simulated disk, commits that take time, power cuts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harebell.base.ports import Store, log_identities
from harebell.store.disk import DiskStore
from harebell.store.log.loaded_offsets import LoadedOffsets
from harebell.store.log.segment import INDEX_SUFFIX
from tests.model.memory import MemoryBroker, entropy
from tests.sim.database import Database
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import CHANGES, PowerCut, SimDisk
from tests.sim.faults import CutNth
from tests.sim.network import World

SEGMENT_SIZE = 65_536
AHEAD_FROM = 1_024
OFFSETS_BYTES = 400
OFFSETS_MIN_MESSAGES = 4
LEISURE = 0.05
STALL = 0.25


class DiskBroker(MemoryBroker):
    """A broker whose queues are on a simulated disk; what it finds there it brings back.

    Args:
        disk: its disk.
        definitions: what is declared there.
        seed: decides generated names.
        high: octets of queued messages above which publishers are blocked; 0 for no limit.
        clean: whether the last broker on this disk ended in good order.
        segment_bytes: of the logs of queues.
    """

    def __init__(
        self,
        disk: SimDisk,
        definitions: SimDefinitions | Database,
        seed: int = 0,
        high: int = 0,
        *,
        clean: bool = False,
        segment_bytes: int = SEGMENT_SIZE,
    ) -> None:
        self._segment_bytes = segment_bytes
        self.disk = disk
        self.definitions = definitions
        self._entropy = entropy(seed + 1)
        self._clean = clean
        self.reports: list[tuple[str, str]] = []
        super().__init__(seed, high)
        identities = log_identities(definitions)
        self.disk_store.clean(identities)
        for sentence in self.broker.restore():
            self.misses(sentence)

    def misses(self, sentence: str) -> None:
        """Something could not be brought back as it was."""
        raise AssertionError(f"could not be brought back: {sentence}")

    def make_store(self) -> Store:
        """A store on the disk."""
        self.disk_store = DiskStore(
            self.disk,
            self.definitions,
            self.gauge,
            self.clock,
            self._entropy,
            lambda level, text: self.reports.append((level, text)),
            segment_bytes=self._segment_bytes,
            ahead_from=AHEAD_FROM,
            clean=self._clean,
        )
        self.disk_store.offsets = LoadedOffsets(
            self.disk, self.disk_store.handles, OFFSETS_BYTES, OFFSETS_MIN_MESSAGES
        )
        return self.disk_store

    def commit(self) -> bool:
        """Make everything durable now; False when there was nothing to do."""
        batch = self.disk_store.commit.gather()
        if batch is None:
            return False
        batch.perform()
        assert batch.failed is None, batch.failed
        assert batch.stalled is None, batch.stalled
        self.finish(batch)
        return True

    def finish(self, batch: Any) -> None:
        """A batch is on disk: let out what waited for it."""
        self.disk_store.commit.finish(batch)
        self.registry.committed()
        self.broker.committed()


class Machine(World):
    """A world whose broker has a disk.

    Args:
        seed: decides everything.
        high: the broker's memory watermark in octets.
        restarted: called when the broker was started again.

    Attributes:
        lives: how many brokers there were.
        cuts: how many of them ended by a power cut.
        stalls: how often a batch had to wait for room on the disk.
    """

    broker: DiskBroker

    def __init__(self, seed: int, high: int, restarted: Callable[[], None]) -> None:
        self.disk = SimDisk(seed=seed)
        # Every other machine has the broker's own database; the rest take fewer operations.
        keep = Database if seed % 2 else SimDefinitions
        self.definitions: SimDefinitions | Database = keep(self.disk)
        self.lives = 0
        self.cuts = 0
        self.stalls = 0
        self._restarted = restarted
        self._batch: Any = None
        self._due = False
        super().__init__(seed, high)

    def start_broker(self, *, clean: bool = False) -> DiskBroker:
        """A broker on what the disk holds; `clean`: the last one ended in good order."""
        self.lives += 1
        self._batch = None
        self._due = False
        seed = self.seed * 1000 + self.lives
        return DiskBroker(self.disk, self.definitions, seed, self.high, clean=clean)

    # --- commits --------------------------------------------------------------------------------

    def flush(self) -> None:
        """At the end of a turn: write output, and see that what changed reaches the disk."""
        self.broker.clock.ms = int(self.now * 1000)
        super().flush()
        commit: Any = self.broker.broker.commit
        if self._batch is not None or self._due:
            return
        if commit.urgent:
            self._soon(self.rng.choice((0.0, 0.001, 0.01)))
        elif commit.waiting or self.definitions.gathered:
            self._soon(LEISURE)

    def _soon(self, delay: float) -> None:
        self._due = True
        self._then(delay, self._gather)

    def _then(self, delay: float, what: Callable[[], None]) -> None:
        """Do something after a while, unless the broker is another one by then."""
        life = self.lives
        self.later(delay, lambda: what() if life == self.lives else None)

    def _gather(self) -> None:
        self._due = False
        if self._batch is None:
            commit: Any = self.broker.broker.commit
            self._batch = batch = commit.gather()
            if batch is not None:
                self._then(self.rng.expovariate(100), lambda: self._perform(batch))

    def _perform(self, batch: Any) -> None:
        if batch is not self._batch:
            return
        try:
            batch.perform()
        except PowerCut:
            self.restart(cut=True)
            return
        assert batch.failed is None, batch.failed
        if batch.stalled is not None:
            self.stalls += 1
            self._then(STALL, lambda: self._perform(batch))
            return
        self._then(self.rng.expovariate(200), lambda: self._finish(batch))

    def _finish(self, batch: Any) -> None:
        if batch is self._batch:
            self._batch = None
            self.broker.finish(batch)

    def settle_disk(self) -> None:
        """The disk is well, and everything that changed is on it when this returns."""
        self.disk.hook = None
        self.disk.capacity = 0
        batch = self._batch
        if batch is not None:
            batch.perform()
            assert batch.failed is None, batch.failed
            self._finish(batch)
        while self.broker.commit():
            pass
        self.flush()

    # --- power ----------------------------------------------------------------------------------

    def end_well(self) -> None:
        """The broker ends in good order, and another is started."""
        self.settle_disk()
        self.broker.disk_store.close()
        while self.broker.commit():
            pass
        self.broker.disk_store.describe()
        self.broker.disk_store.shut()
        self.restart(cut=False, clean=True)

    def restart(self, *, cut: bool, clean: bool = False) -> None:
        """The broker dies, with the power or without it, and another is started."""
        self.note("power" if cut else "end" if clean else "kill", self.lives, b"")
        image = self.disk.crash(self.rng) if cut else self.disk.copy()
        # A full disk may keep a broker from starting; here it has room again.
        image.capacity = 0
        self.cuts += cut
        self.definitions = self.definitions.crash(image, self.rng)
        self.disk = image
        links = list(self.links)
        self.broker = self.start_broker(clean=clean)
        self._restarted()
        for link in links:
            link.die()

    def cut_soon(self) -> None:
        """The power goes in the middle of the next batches.

        Not while the loop writes the index of a segment: tests of the store have that.
        """
        self.disk.hook = CutNth(self.disk, self.rng.randint(1, 12), CHANGES, INDEX_SUFFIX)

    def fill(self, seconds: float) -> None:
        """The disk is full for a while."""
        disk = self.disk
        disk.capacity = disk.used() + self.rng.choice((1, 500, 20_000))
        self.later(seconds, lambda: setattr(disk, "capacity", 0))
