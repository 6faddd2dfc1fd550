"""Drives a broker over the simulated disk beside the reference, through restarts."""

from __future__ import annotations

from tests.model.driver import Driver
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker


class DiskDriver(Driver):
    """Both brokers, the real one over a disk that is as fast as can be.

    Attributes:
        disk: what the broker is on.
        restarts: how many there were.
    """

    real: DiskBroker

    def __init__(self) -> None:
        self.disk = SimDisk()
        self.restarts = 0
        super().__init__()

    def make_broker(self) -> DiskBroker:
        """A broker on an empty disk."""
        return DiskBroker(self.disk, SimDefinitions(self.disk))

    def settle(self) -> None:
        """Commit until nothing is left to commit."""
        for _ in range(20):
            if not self.real.commit():
                return
        raise AssertionError("the broker commits for ever")

    def restart(self, *, clean: bool) -> None:
        """The power goes while everything is on disk, perhaps after an end in good order."""
        self.restarts += 1
        self.settle()
        if clean:
            self.real.disk_store.close()
            self.settle()
            self.real.disk_store.describe()
            self.real.disk_store.shut()
            assert not self.disk.handles, f"{self.disk.handles} are open"
        rng = Random(self.restarts)
        self.disk = self.disk.crash(rng)
        definitions = self.real.definitions.crash(self.disk, rng)
        self.real = DiskBroker(self.disk, definitions, self.restarts, clean=clean)
        assert not self.real.reports, self.real.reports
        self.links.clear()
        self.confirmed.clear()
        self.reference.restart(clean)
