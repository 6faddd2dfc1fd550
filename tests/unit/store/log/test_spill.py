"""A large segment of a transient log goes to disk in slices, and is readable all the while."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from harebell.base.work import Step
from harebell.store.limits import TRANSIENT_MEMORY_BYTES, TRANSIENT_SLICE_BYTES
from tests.sim.disk import SimDisk
from tests.unit.store.stores import IDENTITY, Bench, message

LARGE = 9 * TRANSIENT_SLICE_BYTES
MANY = TRANSIENT_MEMORY_BYTES // LARGE + 4


def body(number: int) -> bytes:
    return bytes([number]) * LARGE


class Slices:
    """A store whose long operations go on when the test says so."""

    def __init__(self, disk: SimDisk | None = None) -> None:
        self.bench = Bench(disk)
        self.steps: list[Step] = []
        self.bench.store.work.later = self.steps.append
        self.log: Any = self.bench.store.open_log(IDENTITY, durable=False)

    def fill(self) -> None:
        """Append more large messages than stay in memory, in turns that end with each slice."""
        self.bench.store.work.begin(1)
        for number in range(MANY):
            self.log.append(message(body(number)))

    def files(self) -> dict[str, int]:
        """What is on disk."""
        disk = self.bench.disk
        directory = f"transient/{IDENTITY}"
        return {name: disk.open(f"{directory}/{name}").size() for name in disk.names(directory)}

    def go_on(self) -> None:
        """Do one slice of what waits."""
        step = self.steps.pop(0)
        if not step():
            self.steps.append(step)

    def finish(self) -> None:
        while self.steps:
            self.go_on()


def test_a_large_segment_is_written_slice_by_slice() -> None:
    slices = Slices()
    slices.fill()
    assert slices.steps
    sizes = set()
    while slices.steps:
        sizes |= set(slices.files().values())
        assert [slices.log.read(at).body for at in range(MANY)] == [body(at) for at in range(MANY)]
        slices.go_on()
    assert len(sizes) > 9
    steps = [after - before for before, after in pairwise(sorted(sizes))]
    assert max(steps) <= TRANSIENT_SLICE_BYTES
    assert [slices.log.read(at).body for at in range(MANY)] == [body(at) for at in range(MANY)]


def test_a_written_message_is_in_memory_no_longer() -> None:
    slices = Slices()
    slices.fill()
    before = slices.bench.gauge.used
    slices.finish()
    assert slices.bench.gauge.used <= before - LARGE
    slices.log.delete()
    assert (slices.bench.gauge.used, slices.files()) == (0, {})


def test_a_message_that_is_settled_amid_its_way_to_disk_leaves_nothing() -> None:
    slices = Slices()
    slices.fill()
    slices.go_on()
    assert slices.files()
    slices.log.settle_range(0, MANY)
    slices.finish()
    assert (slices.bench.gauge.used, slices.files()) == (0, {})


def test_a_log_that_is_deleted_amid_its_way_to_disk_leaves_nothing() -> None:
    slices = Slices()
    slices.fill()
    slices.go_on()
    slices.log.delete()
    slices.finish()
    assert (slices.bench.gauge.used, slices.files()) == (0, {})


def test_without_room_a_large_segment_stays_in_memory_and_that_is_said() -> None:
    slices = Slices(SimDisk(capacity=LARGE // 2))
    slices.fill()
    slices.finish()
    assert "stays in memory" in slices.bench.reports[0][1]
    assert slices.files() == {}
    assert [slices.log.read(at).body for at in range(MANY)] == [body(at) for at in range(MANY)]
