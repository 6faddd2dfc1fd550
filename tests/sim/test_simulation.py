"""The broker keeps its promises in simulated networks, and a seed says all about a run."""

from __future__ import annotations

import gc
import os

import pytest

from harebell.base import impl
from harebell.front.amqp_0_9_1.connection import Connection
from tests.sim.scenario import simulate
from tests.sim.uncompiled import trace_in_python

FIRST = int(os.environ.get("HAREBELL_SIM_SEED", "1"))
# Uncompiled a seed gives the same run, to the octet, and takes longer.
_USUAL = "12" if impl.chosen() == impl.NATIVE else "4"
SEEDS = int(os.environ.get("HAREBELL_SIM_SEEDS", _USUAL))
SOAK_SEEDS = int(os.environ.get("HAREBELL_SIM_SOAK_SEEDS", "2000"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_is_lost_invented_or_changed(seed: int) -> None:
    outcome = simulate(seed)
    assert outcome.checker.confirmed, "nothing was published in this run"
    assert outcome.faults, "nothing went wrong in this run"


def test_a_seed_gives_the_same_run_to_the_octet() -> None:
    first, second, other = simulate(7, 10.0), simulate(7, 10.0), simulate(8, 10.0)
    assert first.trace == second.trace
    assert first.steps == second.steps
    assert first.trace != other.trace


def test_the_runs_reach_the_alarm_and_uncertain_publishes() -> None:
    outcomes = [simulate(seed) for seed in range(21, 31)]
    assert sum(len(outcome.checker.acked) for outcome in outcomes) > 500
    assert any(outcome.alarms for outcome in outcomes)
    assert any(outcome.checker.uncertain for outcome in outcomes)
    assert any(outcome.checker.settled for outcome in outcomes)
    assert any(outcome.checker.excused for outcome in outcomes)


def test_both_implementations_give_the_same_run_to_the_octet() -> None:
    assert trace_in_python("simulate(7, 10.0)") == simulate(7, 10.0).trace


def _connections() -> int:
    gc.collect()
    return sum(isinstance(thing, Connection) for thing in gc.get_objects())


def test_no_connection_object_outlives_its_run() -> None:
    before = _connections()
    simulate(3, 10.0)
    assert _connections() <= before


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nothing_is_lost_in_thousands_of_runs() -> None:
    for seed in range(10_000, 10_000 + SOAK_SEEDS):
        simulate(seed)
