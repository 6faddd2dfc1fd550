"""The scheduler of tests: it finds what two threads do to each other, and nothing else."""

from __future__ import annotations

import sys

import pytest

from tests.interleaving import Deadlock, Lock, explore

HERE = [sys.modules[__name__]]


class Counter:
    """Adds in two steps, with a lock or without."""

    def __init__(self, lock: Lock | None) -> None:
        self.total = 0
        self._lock = lock

    def add(self) -> None:
        if self._lock is None:
            self._add()
        else:
            with self._lock:
                self._add()

    def _add(self) -> None:
        seen = self.total
        self.total = seen + 1


def orders(lock: bool) -> int:
    """Explore two additions; how many orders there were."""
    counter = Counter(None)

    def make() -> list[object]:
        nonlocal counter
        counter = Counter(Lock() if lock else None)
        return [counter.add, counter.add]

    def check() -> None:
        assert counter.total == 2

    return explore(HERE, make, check)  # type: ignore[arg-type]


def test_a_sum_that_is_not_locked_is_found_wrong() -> None:
    with pytest.raises(AssertionError) as found:
        orders(lock=False)
    assert "with switches before the steps" in found.value.__notes__[0]


def test_locks_that_are_taken_in_two_orders_are_found() -> None:
    first, second = Lock(), Lock()

    def one() -> None:
        with first, second:
            pass

    def other() -> None:
        with second, first:
            pass

    with pytest.raises(Deadlock):
        explore(HERE, lambda: [one, other], lambda: None, switches=1)
