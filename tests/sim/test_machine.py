"""The broker keeps its promises when the power goes, and a seed says all about a run."""

from __future__ import annotations

import os

import pytest

from harebell.base import impl
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.model.peer import Reader, call, login, publish
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker
from tests.sim.scenario import PowerScenario, simulate_power
from tests.sim.uncompiled import trace_in_python

FIRST = int(os.environ.get("HAREBELL_SIM_SEED", "1"))
# Uncompiled a seed gives the same run, to the octet, and takes longer.
_USUAL = "12" if impl.chosen() == impl.NATIVE else "4"
SEEDS = int(os.environ.get("HAREBELL_SIM_SEEDS", _USUAL))
SOAK_SEEDS = int(os.environ.get("HAREBELL_SIM_SOAK_SEEDS", "2000"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_nothing_confirmed_is_lost_when_the_machine_loses_its_power(seed: int) -> None:
    outcome = simulate_power(seed)
    assert outcome.checker.confirmed, "nothing was published in this run"
    assert outcome.faults, "nothing went wrong in this run"


def test_the_runs_reach_power_cuts_kills_and_full_disks() -> None:
    runs = [PowerScenario(seed) for seed in range(31, 37)]
    outcomes = [run.run() for run in runs]
    assert sum(len(outcome.checker.confirmed) for outcome in outcomes) > 2000
    assert sum(run.machine.cuts for run in runs) > 10
    assert sum(run.machine.lives - run.machine.cuts for run in runs) > len(runs)
    assert any(run.machine.stalls for run in runs)
    assert any(outcome.checker.uncertain for outcome in outcomes)


def test_a_seed_gives_the_same_machine_to_the_octet() -> None:
    first, second, other = (simulate_power(seed, 10.0) for seed in (7, 7, 8))
    assert (first.trace, first.steps) == (second.trace, second.steps)
    assert first.trace != other.trace


def test_both_implementations_give_the_same_machine_to_the_octet() -> None:
    assert trace_in_python("simulate_power(7, 10.0)") == simulate_power(7, 10.0).trace


def test_a_confirm_waits_for_the_disk_and_a_restart_brings_the_queue_back() -> None:
    disk = SimDisk()
    broker = DiskBroker(disk, SimDefinitions(disk))
    connection = broker.accept()
    steps = (m.ChannelOpen(), m.ConfirmSelect(), m.QueueDeclare(queue="q", durable=True))
    connection.receive(login() + b"".join(call(1, step) for step in steps), 0.0)
    assert broker.commit()
    reader = Reader()
    assert reader.feed(connection.take_output(0.0))[-1].method.NAME == "queue.declare-ok"
    properties = BasicProperties(delivery_mode=2)
    connection.receive(publish(1, "", "q", b"body", properties=properties), 0.0)
    assert reader.feed(connection.take_output(0.0)) == []
    assert broker.commit()
    assert [e.method.NAME for e in reader.feed(connection.take_output(0.0))] == ["basic.ack"]
    image = disk.crash(Random(1))
    again = DiskBroker(image, broker.definitions.crash(image, Random(1)))
    assert again.vhost.queues["q"].ready_count() == 1


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_nothing_confirmed_is_lost_in_thousands_of_machines() -> None:
    for seed in range(10_000, 10_000 + SOAK_SEEDS):
        simulate_power(seed)
