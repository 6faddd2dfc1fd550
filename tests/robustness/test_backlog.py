"""A backlog is on disk: it takes little memory, slows nobody down, and outlives the process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harebell.base import impl
from tests.robustness.bulk import Filler, Order, declare, depth, drain
from tests.robustness.cgroup import memory_limit
from tests.robustness.lives import life
from tests.robustness.raw import MIB, memory_of
from tests.robustness.swift import Link
from tests.running import RunningBroker

QUEUE = "backlog"
SIZE = 128
# Uncompiled it is the same code, and twenty times slower.
MESSAGES = 1_000_000 if impl.chosen() == impl.NATIVE else 100_000
MEMORY_OCTETS = 160 * MIB
SOAK_MESSAGES = 10_000_000
SOAK_MEMORY_OCTETS = 400 * MIB
SOAK_GROUP_OCTETS = 512 * MIB
RATE_AT_THE_END = 0.7
"""Of the start's; what a long run has to keep."""
RATE_OF_A_SHORT_RUN = 0.2
"""What a short one has to, on a machine that does other things: every message costs more than the
last one only where this is missed."""
_CHUNKS = 20


def _slowdown(rates: list[float]) -> float:
    """How fast the last quarter was at its best, as a share of the first.

    The best chunk of each counts: other work on the machine makes chunks slower, never faster.
    """
    quarter = max(len(rates) // 4, 1)
    return max(rates[-quarter:]) / max(rates[:quarter])


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used, with its threads that have ended."""
    # As `clock_getcpuclockid` of the C library makes it; what is summed up over the threads that
    # are there goes back when one ends.
    return time.clock_gettime(~pid << 3 | 2)


def _fill(
    broker: RunningBroker, count: int, max_bytes: int, rate: float = RATE_OF_A_SHORT_RUN
) -> str:
    """Publish a backlog, and say what it took."""
    declare(broker.port, QUEUE)
    filler = Filler(broker.port, QUEUE, SIZE)
    # Seconds of the broker's own work: how fast the machine is at the moment says nothing of it.
    rates = filler.fill(count, _CHUNKS, lambda: cpu_of(broker.pid))
    share = _slowdown(rates)
    memory = memory_of(broker.pid)
    filler.link.goodbye()
    assert filler.confirmed == count
    said = (
        f"{count:,} x {SIZE} B in at {statistics.median(rates):,.0f} per CPU second, at the end "
        f"{share:.0%} of the start, {memory['VmRSS'] // MIB} MiB, "
        f"at most {memory['VmHWM'] // MIB} MiB"
    )
    assert memory["VmHWM"] <= max_bytes, said
    # A short chunk says nothing: the broker may have most of it still before it.
    if count >= MESSAGES:
        assert share >= rate, f"{said}: {[round(rate) for rate in rates]}"
    return said


def _empty(broker: RunningBroker, count: int, max_bytes: int) -> str:
    begin = time.monotonic()
    drain(broker.port, QUEUE, count, Order(SIZE).check)
    memory = memory_of(broker.pid)
    said = (
        f"out at {count / (time.monotonic() - begin):,.0f}/s, {memory['VmRSS'] // MIB} MiB, "
        f"at most {memory['VmHWM'] // MIB} MiB"
    )
    assert memory["VmHWM"] <= max_bytes, said
    return said


@pytest.mark.timeout(1_200)
def test_a_backlog_takes_little_memory_and_outlives_a_restart(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    with life(tmp_path / "data") as broker:
        filled = _fill(broker, MESSAGES, MEMORY_OCTETS)
        assert broker.stop() == 0
    begin = time.monotonic()
    with life(tmp_path / "data") as broker:
        link = Link(broker.port)
        assert depth(link, QUEUE) == MESSAGES
        started = time.monotonic() - begin
        link.goodbye()
        emptied = _empty(broker, MESSAGES, MEMORY_OCTETS)
        assert broker.stop() == 0
    left = sum(path.stat().st_size for path in (tmp_path / "data" / "queues").rglob("*.seg"))
    assert left <= 16 * MIB, f"{left} octets are left of an empty queue"
    counted(f"{filled}; back after {started:.2f} s; {emptied}")


@pytest.mark.timeout(1_200)
def test_a_backlog_that_is_drained_by_the_same_broker_is_complete(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    count = MESSAGES // 5
    with life(tmp_path / "data") as broker:
        filled = _fill(broker, count, MEMORY_OCTETS)
        emptied = _empty(broker, count, MEMORY_OCTETS)
        counted(f"{filled}; {emptied}")
        declare(broker.port, QUEUE)
        filler = Filler(broker.port, QUEUE, SIZE)
        filler.fill(1_000, 2)
        filler.link.goodbye()
        drain(broker.port, QUEUE, 1_000, Order(SIZE).check)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_ten_million_messages_take_little_memory(
    tmp_path: Path, counted: Callable[[str], None]
) -> None:
    with memory_limit(SOAK_GROUP_OCTETS) as prefix:
        with life(tmp_path / "data", prefix=prefix) as broker:
            filled = _fill(broker, SOAK_MESSAGES, SOAK_MEMORY_OCTETS, RATE_AT_THE_END)
            assert broker.stop() == 0
        begin = time.monotonic()
        with life(tmp_path / "data", prefix=prefix) as broker:
            started = time.monotonic() - begin
            emptied = _empty(broker, SOAK_MESSAGES, SOAK_MEMORY_OCTETS)
    counted(f"{filled}; back after {started:.2f} s; {emptied}")
