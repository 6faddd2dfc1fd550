"""Brokers and servers die, stop and lose each other: nothing that was promised is broken.

`HAREBELL_POSTGRESQL_CYCLES` sets how many cycles the long run has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from tests.postgresql.chaos import FAULTS, Chaos
from tests.robustness.ledger import Verdict

CYCLES = int(os.environ.get("HAREBELL_POSTGRESQL_CYCLES", "1000"))
_TOGETHER = 50
"""So many cycles share servers, brokers and a ledger."""
_MANY = {
    "owner": 10,
    "primary": 5,
    "database": 2,
    "clients": 1,
    "standby": 2,
    "pause": 1,
    "drain": 1,
}
"""How often each fault comes in a long run, beside the others: what dies comes first."""


def _said(chaos: Chaos, verdict: Verdict) -> str:
    done = ", ".join(f"{count} {fault}" for fault, count in sorted(chaos.done.items()))
    waits = ", ".join(
        f"{fault} {sorted(times)[len(times) // 2]:.1f}/{max(times):.1f} s"
        for fault, times in sorted(chaos.pauses.items())
    )
    return f"{done}; {verdict}; fail-over, middle/longest: {waits}"


@pytest.mark.timeout(600)
def test_nothing_confirmed_is_lost_by_any_fault(seed: int, counted: Callable[[str], None]) -> None:
    faults = list(FAULTS)
    Random(seed).shuffle(faults)
    with Chaos(seed) as chaos:
        for fault in faults:
            chaos.play(fault)
        counted(_said(chaos, chaos.judge(f"HAREBELL_SEED={seed}")))


@pytest.mark.soak
@pytest.mark.timeout(36_000)
def test_nothing_confirmed_is_lost_by_many_faults(
    seed: int, counted: Callable[[str], None]
) -> None:
    rng = Random(seed)
    said = []
    for first in range(0, CYCLES, _TOGETHER):
        with Chaos(seed + first) as chaos:
            for _ in range(min(_TOGETHER, CYCLES - first)):
                chaos.play(rng.choices(list(_MANY), list(_MANY.values()))[0])
            said.append(_said(chaos, chaos.judge(f"HAREBELL_SEED={seed}, cycle {first}")))
    counted("; ".join(said))
