"""The power goes at any moment: the newest confirmed message of a key is there, no older one."""

from __future__ import annotations

import os
from typing import Any

import pytest

from harebell.base import impl
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import Commit, Log
from harebell.model.queue import factory
from harebell.model.queue.order.last_value import LastValueOrder
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import SimDisk
from tests.sim.last_values import KEYS, SEGMENT_BYTES, Counts, Trial
from tests.sim.machine import DiskBroker
from tests.sim.prepared import BrokenPromiseError

# Uncompiled it is the same code, and takes longer.
_USUAL = "600" if impl.chosen() == impl.NATIVE else "200"
STATES = int(os.environ.get("HAREBELL_LAST_VALUE_STATES", _USUAL))
SOAK_STATES = 100_000


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few messages fill a segment."""
    monkeypatch.setattr(factory, "LAST_VALUE_SEGMENT_BYTES", SEGMENT_BYTES)


def _trials(states: int, seed: int) -> Counts:
    print(f"last values: from seed {seed}, {states} states")  # noqa: T201 - for a replay
    counts = Counts()
    while counts.states < states:
        Trial(seed, counts).run(12)
        seed += 1
    print(f"last values: {counts}")  # noqa: T201 - the count that is asked for
    return counts


@pytest.mark.timeout(900)
def test_the_newest_confirmed_value_is_there_whenever_the_power_goes() -> None:
    counts = _trials(STATES, 1)
    assert counts.states >= STATES
    assert counts.replaced > STATES // 20


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_the_newest_confirmed_value_is_there_in_many_power_losses() -> None:
    _trials(SOAK_STATES, 1_000_000)


def test_the_disk_is_bounded_by_the_number_of_keys() -> None:
    disk = SimDisk()
    broker = DiskBroker(disk, SimDefinitions(disk))
    queue: Any = broker.vhost.declare_queue(
        "q", durable=True, arguments={"x-last-value-key": "routing_key"}
    )
    for number in range(3_000):
        # Most keys are published once, each behind what fills a segment: none shares it.
        cold = number % 300 == 0
        key = f"cold {number}" if cold else KEYS[number % 4]
        queue.publish(Message("", key, Properties(b"\0\0", PERSISTENT), bytes(1_000)))
        if number % 20 == 0:
            while broker.commit():
                queue.tick()
    while broker.commit():
        queue.tick()
    keys = 10 + len(KEYS)
    assert queue.ready_count() == queue.values.key_count() == keys
    assert disk.used() < (keys + 3) * (SEGMENT_BYTES + 2_000)


# --- the harness finds what is planted ----------------------------------------------------------


def _find(seeds: int) -> None:
    for seed in range(seeds):
        Trial(seed, Counts()).run(12)


def test_older_values_that_are_settled_with_the_newer_ones_are_found_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(log: Log, commit: Commit, options: Any) -> LastValueOrder:
        return LastValueOrder(log, True, "routing_key", None)

    monkeypatch.setattr(factory, "_last_value_order", hasty)
    with pytest.raises(BrokenPromiseError, match="is lost"):
        _find(60)


def test_older_values_that_a_start_does_not_replace_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lenient(log: Log, commit: Commit, options: Any) -> LastValueOrder:
        return LastValueOrder(log, True, "no such key" if log.live() else "routing_key", commit)

    monkeypatch.setattr(factory, "_last_value_order", lenient)
    with pytest.raises(BrokenPromiseError, match="is there more than once"):
        _find(10)
