"""The power goes at any moment, and a prepared branch is whole: it can be committed or undone."""

from __future__ import annotations

import os

import pytest

from harebell.base import impl
from harebell.base.message import Message
from harebell.model.queue.queue import MessageQueue
from harebell.model.xa import branches as xa
from harebell.store.commit import Batch
from tests.sim.prepared import BrokenPromiseError, Counts, Trial

# Uncompiled it is the same code, and takes longer.
_USUAL = "600" if impl.chosen() == impl.NATIVE else "200"
STATES = int(os.environ.get("HAREBELL_PREPARED_STATES", _USUAL))
SOAK_STATES = 100_000


def _trials(states: int, seed: int) -> Counts:
    print(f"prepared branches: from seed {seed}, {states} states")  # noqa: T201 - for a replay
    counts = Counts()
    while counts.states < states:
        Trial(seed, counts).run(6)
        seed += 1
    print(f"prepared branches: {counts}")  # noqa: T201 - the count that is asked for
    return counts


@pytest.mark.timeout(900)
def test_a_prepared_branch_is_whole_whenever_the_power_goes() -> None:
    counts = _trials(STATES, 1)
    assert counts.states >= STATES
    assert counts.in_doubt > STATES // 10
    assert counts.ended > STATES // 10


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_a_prepared_branch_is_whole_in_many_power_losses() -> None:
    _trials(SOAK_STATES, 1_000_000)


# --- the harness finds what is planted ----------------------------------------------------------


def _find(seeds: int) -> None:
    for seed in range(seeds):
        Trial(seed, Counts()).run(6)


def test_a_commit_without_its_redo_file_is_found_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batch, "_write_redo", lambda batch: None)
    with pytest.raises(BrokenPromiseError):
        _find(20)


def test_a_queue_that_does_not_keep_messages_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(data: bytes) -> object:
        record = decode(data)
        record.settlements.clear()
        return record

    decode = xa.decode
    monkeypatch.setattr(xa, "decode", forgetful)
    with pytest.raises(BrokenPromiseError, match="that were taken"):
        _find(20)


def test_promised_queues_are_what_the_trial_uses() -> None:
    trial = Trial(1, Counts())
    assert all(isinstance(each, MessageQueue) for each in trial.broker.vhost.queues.values())
    assert isinstance(trial._message(), Message)
