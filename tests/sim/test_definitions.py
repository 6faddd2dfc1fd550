"""Transactions of the simulated definitions are there whole or not at all."""

from __future__ import annotations

import errno
import random

import pytest

from tests.sim.definitions import SimDefinitions
from tests.sim.disk import SimDisk
from tests.sim.faults import FailNth


def _rows(definitions: SimDefinitions) -> dict[tuple[str, ...], object]:
    return dict(definitions.load("queue"))


def test_changes_count_when_they_are_written() -> None:
    definitions = SimDefinitions(SimDisk())
    definitions.put("queue", ("/", "q"), {"durable": True})
    assert _rows(definitions) == {}
    definitions.write(definitions.take())
    assert _rows(definitions) == {("/", "q"): {"durable": True}}
    definitions.put("queue", ("/", "q"), {"durable": False})
    definitions.put("queue", ("/", "other"), {})
    definitions.drop("queue", ("/", "none"))
    definitions.drop("queue", ("/", "q"))
    definitions.write(definitions.take())
    assert _rows(definitions) == {("/", "other"): {}}
    assert definitions.take() == []


def test_a_power_loss_during_a_transaction_finds_all_of_it_or_nothing() -> None:
    disk = SimDisk()
    definitions = SimDefinitions(disk)
    definitions.put("queue", ("first",), {})
    definitions.write(definitions.take())
    found: list[set[tuple[str, ...]]] = []

    def crash() -> None:
        for seed in range(20):
            image = disk.crash(random.Random(seed))
            left = _rows(definitions.crash(image, random.Random(seed)))
            found.append({each[0] for each in left})

    disk.after = crash
    definitions.put("queue", ("second",), {})
    definitions.put("queue", ("third",), {})
    definitions.write(definitions.take())
    during, then = found[:20], found[20:]
    assert {frozenset(each) for each in during} == {
        frozenset(("first",)),
        frozenset(("first", "second", "third")),
    }
    assert all(each == {"first", "second", "third"} for each in then)


def test_a_transaction_that_fails_changes_nothing() -> None:
    disk = SimDisk()
    definitions = SimDefinitions(disk)
    disk.hook = FailNth(1, errno.ENOSPC, ("transaction",), forever=False)
    definitions.put("queue", ("q",), {})
    changes = definitions.take()
    with pytest.raises(OSError, match="No space left"):
        definitions.write(changes)
    assert _rows(definitions) == {}
    definitions.write(changes)
    assert _rows(definitions) == {("q",): {}}
