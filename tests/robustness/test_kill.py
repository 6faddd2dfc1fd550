"""kill -9 of the real process while clients work: nothing that was promised is broken.

The broker is killed at a random moment, started again on the same data directory, and so on; the
clients of `load.py` go on where they were. At the end everything is drained and the ledger judged.
A kill leaves what was written to the system, so this says nothing of a power loss; it is about
everything between a client's octets and the system's, and about recovery.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from harebell.base import impl
from tests.cluster.workers import workers
from tests.counts import VARIABLE
from tests.robustness.clients import ALL_QUEUES
from tests.robustness.ledger import Verdict
from tests.robustness.lives import kill, life
from tests.robustness.load import Load

PARTS = 4
# Uncompiled it is the same code, and every round takes longer.
ROUNDS_OF_A_PART = 7 if impl.chosen() == impl.NATIVE else 4
SOAK_ROUNDS = 1_500
ROUNDS_TOGETHER = 30
"""So many rounds share a data directory and a ledger."""

_SEGMENTS = ((), ("--segment-bytes", "65536"))
"""Flags of a life: logs of one segment, and logs of many."""
_FIRST_SECONDS, _LAST_SECONDS = 0.05, 0.6


def play(data_dir: Path, seed: int, rounds: int) -> Verdict:
    """So many lives that end violently, and one that takes what is left."""
    rng = Random(seed)
    load = Load(rng.randrange(1 << 32), ALL_QUEUES)
    for number in range(rounds):
        if number % 2:
            # The index of each log is then older than what the next kill leaves.
            with life(data_dir) as broker:
                assert broker.stop() == 0
        with life(data_dir, *rng.choice(_SEGMENTS)) as broker:
            load.declare(broker.port)
            end_at = time.monotonic() + rng.uniform(_FIRST_SECONDS, _LAST_SECONDS)
            assert load.run(broker.port, end_at, lambda: kill(broker)), "it survived a kill -9"
            assert "Traceback" not in broker.log, broker.log
    where = f"{VARIABLE}={seed}"
    with life(data_dir) as broker:
        load.drain(broker.port, where)
        assert broker.stop() == 0
    with life(data_dir) as broker:
        # What was acknowledged before a stop in good order does not come back.
        return load.drain(broker.port, where)


def _play_all(directory: Path, seed: int, rounds: int, counted: Callable[[str], None]) -> None:
    begin = time.monotonic()
    totals = [0, 0, 0, 0]
    for first in range(0, rounds, ROUNDS_TOGETHER):
        data_dir = directory / str(first)
        verdict = play(data_dir, seed + first, min(ROUNDS_TOGETHER, rounds - first))
        shutil.rmtree(data_dir)
        for place, count in enumerate(
            (verdict.sent, verdict.confirmed, verdict.delivered, verdict.again)
        ):
            totals[place] += count
    sent, confirmed, delivered, again = totals
    counted(
        f"{rounds} kills, {sent:,} sent, {confirmed:,} confirmed, {delivered:,} delivered "
        f"({again:,} again), {time.monotonic() - begin:.0f} s"
    )


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_confirmed_is_lost_by_kills(
    tmp_path: Path, seed: int, part: int, counted: Callable[[str], None]
) -> None:
    # The parts run beside each other.
    _play_all(tmp_path, seed + part * ROUNDS_TOGETHER, ROUNDS_OF_A_PART, counted)


@pytest.mark.timeout(1_800)
def test_nothing_confirmed_is_lost_by_kills_of_one_of_two_workers(seed: int) -> None:
    # About half of the clients are accepted by the other worker, which gives them away.
    rng = Random(seed)
    load = Load(rng.randrange(1 << 32), ALL_QUEUES)
    with workers() as both:
        port = both.broker.port
        for _ in range(ROUNDS_OF_A_PART):
            load.declare(port)
            end_at = time.monotonic() + rng.uniform(_FIRST_SECONDS, _LAST_SECONDS)
            assert load.run(port, end_at, lambda: both.kill(1)), "it survived a kill -9"
            assert "Traceback" not in both.broker.log, both.broker.log
        load.drain(port, f"{VARIABLE}={seed}")
        assert both.broker.stop() == 0


@pytest.mark.soak
@pytest.mark.timeout(10_800)
def test_nothing_confirmed_is_lost_by_many_kills(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    _play_all(tmp_path, seed, SOAK_ROUNDS, counted)
