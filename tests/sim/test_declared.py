"""The power goes at any moment: what is declared, claimed or numbered is as it was promised."""

from __future__ import annotations

import os
from functools import partial

import pytest

from harebell.base import impl
from harebell.model.lease import leases as lease
from harebell.model.lease.record import GroupRecord
from harebell.model.queue.order.ordering_keys import OrderingKeys
from harebell.store.commit import Batch
from tests.sim.database import Database
from tests.sim.declared import Counts, Trial
from tests.sim.prepared import BrokenPromiseError

# Uncompiled it is the same code, and takes longer.
_USUAL = "250" if impl.chosen() == impl.NATIVE else "80"
STATES = int(os.environ.get("HAREBELL_DECLARED_STATES", _USUAL))
SOAK_STATES = 50_000


def _trials(states: int, seed: int) -> Counts:
    print(f"declarations: from seed {seed}, {states} states")  # noqa: T201 - for a replay
    counts = Counts()
    while counts.states < states:
        Trial(seed, counts).run(12)
        seed += 1
    print(f"declarations: {counts}")  # noqa: T201 - the count that is asked for
    return counts


@pytest.mark.timeout(900)
def test_declarations_and_claims_are_as_promised_whenever_the_power_goes() -> None:
    counts = _trials(STATES, 1)
    assert counts.states >= STATES
    assert counts.before > STATES // 10
    assert counts.after > STATES // 10
    assert counts.claims > STATES // 10


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_declarations_and_claims_are_as_promised_in_many_power_losses() -> None:
    _trials(SOAK_STATES, 1_000_000)


# --- the harness finds what is planted ----------------------------------------------------------


def _find(keep: type[Database] | partial[Database] = Database, first: int = 0) -> None:
    for seed in range(first, 20):
        Trial(seed, Counts(), keep).run(12)


def test_a_database_that_does_not_wait_for_the_disk_is_found() -> None:
    with pytest.raises(BrokenPromiseError, match="declared more"):
        _find(partial(Database, synced=False))


def test_commits_of_claims_that_are_not_repeated_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(octets: bytes) -> GroupRecord:
        record = decode(octets)
        return GroupRecord(
            record.epoch,
            record.committed,
            record.last,
            record.lost,
            record.timeout,
            record.claims,
        )

    decode = lease.decode
    monkeypatch.setattr(lease, "decode", forgetful)
    with pytest.raises(BrokenPromiseError, match="what was committed is back"):
        _find(first=4)


def test_a_number_that_is_written_apart_from_its_message_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Batch, "_write_redo", lambda batch: None)
    with pytest.raises(BrokenPromiseError):
        _find()


def test_claims_that_do_not_hold_their_keys_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OrderingKeys, "hold", lambda *_: None)
    with pytest.raises(BrokenPromiseError, match=r"two groups of|lets go of a key that is claimed"):
        _find()
