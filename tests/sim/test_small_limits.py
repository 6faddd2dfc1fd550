"""The simulations once more, with limits so small that every run meets them.

With the limits that users have a simulated message is never large, a log is never written early and
a transaction always fits into a turn, so the paths for these would be taken by a few tests only.
Modules read their limits when they are imported, so each simulation has a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harebell.base import impl
from tests.limits import limits

_ROOT = Path(__file__).parents[2]
_SECONDS = 600
FIRST = int(os.environ.get("HAREBELL_SIM_SEED", "1"))
# Uncompiled a seed gives the same run, to the octet, and takes longer.
_USUAL = "8" if impl.chosen() == impl.NATIVE else "3"
SEEDS = int(os.environ.get("HAREBELL_SIM_SEEDS", _USUAL))
SMALL = {
    "LARGE_RECORD_BYTES": 3_000,
    "WRITE_EARLY_BYTES": 4_000,
    "TRANSACTION_AT_ONCE": 6,
    "TRANSACTION_SLICE": 2,
    "REDO_KEEP_BYTES": 20_000,
    "STAGE_UNSYNCED_SEGMENTS": 2,
    "SCAN_WINDOW_BYTES": 4_096,
    "AHEAD_MAX_BYTES": 9_000,
    "AHEAD_WRITE_BYTES": 5_000,
}
LEAK = 770_071
"""A run that found large messages of a deleted queue in the memory gauge."""
_PROGRAM = """
import sys
from tests.limits import set_limit
for word in sys.argv[2:]:
    name, _, value = word.partition("=")
    set_limit(name, int(value))
from tests.sim import scenario, test_prepared, test_staged
eval(sys.argv[1])
"""


def _run(call: str) -> None:
    small = [f"{name}={value}" for name, value in SMALL.items()]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, call, *small],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{call}\n{done.stdout[-2_000:]}{done.stderr[-8_000:]}"


def test_the_limits_are_smaller_than_those_of_users() -> None:
    usual = limits()
    assert {name: value for name, value in SMALL.items() if value >= usual[name]} == {}


@pytest.mark.parametrize("seed", [*range(FIRST, FIRST + SEEDS), LEAK])
def test_nothing_confirmed_is_lost_when_the_machine_loses_its_power(seed: int) -> None:
    _run(f"scenario.simulate_power({seed})")


@pytest.mark.parametrize("module", ["test_prepared", "test_staged"])
def test_one_commit_is_whole_or_absent_whenever_the_power_goes(module: str) -> None:
    _run(f"{module}._trials(200, {FIRST + 500})")
