"""Brokers and servers die, stop and lose each other: nothing that was promised is broken.

`HAREBELL_POSTGRESQL_CYCLES` sets how many cycles the long run has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from random import Random

import pytest

from tests.postgresql.brokers import LEASE_MS
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

# From the declaration of the last queue on.
CONFIRMS_EARLY = """
import os
from harebell.cluster.postgresql.fenced_log_writer import FencedLogWriter
seen, append = [], FencedLogWriter.append
send, answered = FencedLogWriter.send, FencedLogWriter.answered
always, end = os.pipe()
os.write(end, b".")
def later(self, changes):
    changes = list(changes)
    if not seen:
        append(self, changes)
    if any(b"load.moved" in bytes(each.data) for each in changes):
        seen.append(True)
FencedLogWriter.append = later
FencedLogWriter.send = lambda self, changes: always if seen else send(self, changes)
FencedLogWriter.answered = lambda self: True if seen else answered(self)
"""
IGNORES_ITS_EPOCH = """
from harebell.cluster.postgresql.step_down import StepDown
from harebell.cluster.postgresql.fenced_log_writer import FencedLogWriter
from harebell.cluster.postgresql.ownership import Deposed, Ownership
def whatever(call):
    def called(*arguments):
        try:
            call(*arguments)
        except Deposed:
            pass
    return called
FencedLogWriter.append = whatever(FencedLogWriter.append)
FencedLogWriter.clean = whatever(FencedLogWriter.clean)
Ownership.holds = lambda self: True
StepDown.start = lambda self: None
"""


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


def test_a_broker_that_confirms_before_it_commits_is_found() -> None:
    with Chaos(5, CONFIRMS_EARLY, LEASE_MS) as chaos:
        accounts = chaos.history.load.accounts
        # Before that nothing would be lost. What a stream has shown stays in it.
        chaos.work(until=lambda: accounts.confirmed & accounts.sources.keys())
        chaos.play("owner")
        with pytest.raises(AssertionError, match=r"was confirmed|not in the stream"):
            chaos.judge("planted")


def test_a_broker_that_ignores_its_epoch_is_found() -> None:
    with Chaos(6, IGNORES_ITS_EPOCH) as chaos:
        overlaps = chaos.history.tenures.overlaps
        with pytest.raises(AssertionError, match="a still serves"):
            chaos.play("pause", until=overlaps)
        found = overlaps()
        assert found
        assert "'a' still served" in found[0]
