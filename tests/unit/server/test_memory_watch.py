"""The memory of this process is measured, and given back when much of it is free."""

from __future__ import annotations

import os
import resource

import pytest

from harebell.base.gauge import Gauge
from harebell.base.limits import HEAP_KEEP_BYTES
from harebell.server.limits import (
    HEAP_TRIM_BYTES,
    MEMORY_READ_SECONDS,
    MEMORY_SPILL_SHARE,
    MEMORY_TRIM_SECONDS,
)
from harebell.server.memory_watch import MemoryWatch, resident_bytes

MIB = 1 << 20


class Watched:
    """A watch of this process whose calls of malloc_trim are counted."""

    def __init__(self, high: int) -> None:
        self.now = 0.0
        self.gauge = Gauge(high)
        self.pressed: list[bool] = []
        self.watch = MemoryWatch(self.gauge, self.pressed.append, lambda: self.now)
        self.trims = 0
        self.watch._trim = self.count

    def count(self, _pad: int) -> int:
        self.trims += 1
        return 1


class Simulated(Watched):
    """A watch of a process whose freed memory goes to the system by malloc_trim alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(1 << 50)
        self.resident = 50 * MIB
        monkeypatch.setattr("harebell.server.memory_watch.resident_bytes", lambda: self.resident)
        assert self.trimmed(0), "a start leaves free memory"
        self.trims = 0

    def count(self, pad: int) -> int:
        self.resident = 50 * MIB + self.gauge.used + self.watch._answers
        return super().count(pad)

    def trimmed(self, used: int) -> bool:
        """Whether a look gives memory back when messages use so many bytes."""
        self.gauge.add(used - self.gauge.used)
        self.resident = max(self.resident, 50 * MIB + used + self.watch._answers)
        before = self.trims
        self.now += MEMORY_TRIM_SECONDS
        self.watch.look()
        return self.trims > before


def test_memory_is_given_back_when_much_has_gone_and_things_are_quiet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Simulated(monkeypatch)
    assert not watched.trimmed(3 * HEAP_KEEP_BYTES)
    assert not watched.trimmed(2 * HEAP_KEEP_BYTES), "more may go in the next turn"
    assert watched.trimmed(2 * HEAP_KEEP_BYTES)
    assert not watched.trimmed(2 * HEAP_KEEP_BYTES), "it was given back already"
    assert not watched.trimmed(0)
    assert watched.trimmed(0)


def test_memory_of_messages_that_came_and_went_between_two_looks_is_given_back_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Simulated(monkeypatch)
    watched.resident += HEAP_TRIM_BYTES
    assert watched.trimmed(0)
    watched.resident += HEAP_TRIM_BYTES
    watched.watch.look()
    assert watched.trims == 1, "the next large message takes it again"
    assert watched.trimmed(0)


def test_memory_that_is_in_use_is_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Simulated(monkeypatch)
    monkeypatch.setattr(watched.watch, "_trim", lambda pad: Watched.count(watched, pad))
    watched.resident += HEAP_TRIM_BYTES
    assert watched.trimmed(0)
    assert not watched.trimmed(0), "connections have it, for example"


def test_memory_of_answers_is_given_back_when_their_clients_have_read_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Simulated(monkeypatch)
    watched.watch.count_answers(2 * HEAP_KEEP_BYTES)
    assert not watched.trimmed(0), "they are kept"
    watched.watch.count_answers(-2 * HEAP_KEEP_BYTES)
    assert not watched.trimmed(0), "more may go in the next turn"
    assert watched.trimmed(0)
    assert not watched.trimmed(0), "it was given back already"


def test_the_memory_of_the_process_is_that_of_the_kernel() -> None:
    watched = Watched(1 << 50)
    watched.watch.look()
    found = resident_bytes()
    assert found is not None
    assert found % os.sysconf("SC_PAGE_SIZE") == 0
    assert 0 < found <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 * 2
    assert watched.gauge.resident() == pytest.approx(found, rel=0.1)
    assert watched.pressed == [False]


def test_near_the_watermark_messages_go_to_disk_and_freed_memory_to_the_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harebell.server.memory_watch.resident_bytes", lambda: 50 * MIB)
    watched = Watched(int(50 * MIB / MEMORY_SPILL_SHARE * 0.8))
    watched.watch.look()
    assert watched.pressed == [True]
    assert watched.trims == 2, "one of them as after each start"
    watched.watch.look()
    assert watched.trims == 2, "it gave nothing back, and nothing has gone since"
    watched.now += 1
    watched.watch.look()
    assert watched.trims == 3
    watched.now += 1
    watched.watch.look()
    assert watched.trims == 3, "the pauses grow"


def test_memory_is_measured_a_few_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    resident = [50 * MIB]
    monkeypatch.setattr("harebell.server.memory_watch.resident_bytes", lambda: resident[0])
    watched = Watched(1)
    watched.watch.measure()
    assert watched.gauge.other == 50 * MIB
    resident[0] = 60 * MIB
    assert watched.gauge.crossed()
    assert watched.gauge.other == 50 * MIB, "it was measured just now"
    watched.gauge.set_high(1 << 50)
    assert watched.gauge.crossed()
    watched.now += MEMORY_READ_SECONDS
    watched.gauge.set_high(1)
    assert watched.gauge.crossed()
    assert watched.gauge.other == 60 * MIB
