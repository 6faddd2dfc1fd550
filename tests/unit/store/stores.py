"""A store on a simulated disk, and batches performed at once."""

from __future__ import annotations

from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.store.disk import DiskStore
from harebell.store.limits import AHEAD_FROM_BYTES
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import PowerCut, Random, SimDisk

IDENTITY = "0123456789abcdef" * 2
DIRECTORY = f"queues/{IDENTITY}"
NOW = 1_700_000_000_000


def message(body: bytes = b"body", mode: int = PERSISTENT, key: str = "key") -> Message:
    """A message to a topic exchange."""
    return Message("amq.topic", key, Properties(b"\x10\x00\x02", mode), body)


class Bench:
    """A store to try things on.

    Args:
        disk: its disk; an empty one without it.
        segment_bytes: the size of its segments.
        clean: whether the last process said that it ended in good order.
        ahead_from: the size of a segment from which space is written ahead of its records.
    """

    def __init__(
        self,
        disk: SimDisk | None = None,
        segment_bytes: int = 2048,
        *,
        clean: bool = False,
        ahead_from: int = AHEAD_FROM_BYTES,
    ) -> None:
        self.disk = disk or SimDisk()
        self.definitions = SimDefinitions(self.disk)
        self.clock = Clock(NOW)
        self.gauge = Gauge()
        self.reports: list[tuple[str, str]] = []
        self.store = DiskStore(
            self.disk,
            self.definitions,
            self.gauge,
            self.clock,
            Random(7).randbytes,
            lambda level, text: self.reports.append((level, text)),
            segment_bytes,
            clean,
            ahead_from,
        )

    def log(self, **options: bool):  # type: ignore[no-untyped-def]
        """The log that every test uses."""
        return self.store.open_log(IDENTITY, **{"durable": True, **options})

    def commit(self) -> int:
        """Perform batches until there is nothing to do; how many there were."""
        count = 0
        while (batch := self.store.commit.gather()) is not None:
            batch.perform()
            assert batch.failed is None, batch.failed
            assert batch.stalled is None, batch.stalled
            self.store.commit.finish(batch)
            count += 1
        return count

    def cut_power(self, operations: int) -> bool:
        """Perform a batch until the power goes after so many operations of the disk.

        Returns:
            False if the batch has fewer.
        """
        left = operations

        def after() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise PowerCut

        batch = self.store.commit.gather()
        assert batch is not None
        self.disk.after = after
        try:
            batch.perform()
        except PowerCut:
            self.disk.after = None
            return True
        return False

    def again(self) -> Bench:
        """The same disk after the process was killed: only what it wrote is there."""
        return Bench(self.disk)

    def files(self) -> list[str]:
        """The log's segments."""
        return self.disk.names(DIRECTORY)
