"""Exactly once, shown by killing: every row comes out once, whatever was killed when."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.postgresql.servers import PostgresServer, fresh_database
from tests.spark.chaos import Chaos, chaos
from tests.spark.owners import Owners

pytestmark = pytest.mark.spark

# A cycle kills kinds of processes by themselves, and then all of them together, in an order of its
# own: in the soak every kind, and in `make test` one of them.
CYCLES = 1
SINGLY = 1
SOAK_CYCLES = 30
OWNER_CYCLES = int(os.environ.get("HAREBELL_POSTGRESQL_CYCLES", "10"))
_LOST = ("failOnDataLoss", "went back to the queue", "taken over")


def exact(run: Chaos, seed: int) -> None:
    """Every output has every row once, and the queues have nothing left."""
    for name, verdict in run.verdicts():
        verdict.check(f"HAREBELL_SEED={seed}, {name}")
    assert run.left() == 0
    assert run.counts.halfway > 0, "everything was killed when there was nothing to do"
    for why in run.ends():
        assert not any(text in why for text in _LOST), why


@pytest.mark.timeout(2_400)
def test_every_row_comes_out_once_whatever_is_killed(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    with chaos(tmp_path, seed, CYCLES, singly=SINGLY) as run:
        exact(run, seed)
        counted(f"{len(run.inputs)} rows through 4 queries; {run.counts}")


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_every_row_comes_out_once_after_many_kills(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    with chaos(tmp_path, seed, SOAK_CYCLES) as run:
        exact(run, seed)
        counted(f"{len(run.inputs)} rows through 4 queries; {run.counts}")


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_every_row_comes_out_once_when_owners_of_a_store_in_postgresql_are_killed(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    with (
        PostgresServer() as server,
        fresh_database(server, "spark") as database,
        Owners(server.url(database)) as owners,
        chaos(tmp_path, seed, OWNER_CYCLES, broker=owners, kinds=("broker",)) as run,
    ):
        exact(run, seed)
        counted(f"{len(run.inputs)} rows through 4 queries; {run.counts}; owners {owners.said}")
