"""Weeks of crashes, backups, restores and rotated users: exact, or said; without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.postgresql.servers import PostgresServer, fresh_database
from tests.running import running_broker
from tests.spark.day_after import Database, Directory, play

pytestmark = pytest.mark.timeout(3_600)

CYCLES = 6
SOAK_CYCLES = 40


def _over_a_directory(tmp_path: Path, seed: int, cycles: int) -> str:
    with running_broker() as elsewhere:
        site = Directory(tmp_path, elsewhere)
        try:
            return play(site, elsewhere, seed, cycles)
        finally:
            site.remove()


def test_a_week_of_faults_is_exact_or_said(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    counted(_over_a_directory(tmp_path, seed, CYCLES))


@pytest.mark.soak
def test_many_weeks_of_faults_are_exact_or_said(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    counted(_over_a_directory(tmp_path, seed, SOAK_CYCLES))


@pytest.mark.soak
def test_many_weeks_of_faults_over_postgresql_are_exact_or_said(
    seed: int, counted: Callable[[str], None]
) -> None:
    with (
        PostgresServer() as server,
        fresh_database(server, "weeks") as database,
        running_broker() as elsewhere,
    ):
        site = Database(server, database)
        try:
            counted(play(site, elsewhere, seed, SOAK_CYCLES))
        finally:
            site.remove()
