"""A backup of a running broker is worth what the disk of a killed one is worth, at one commit.

The clients of `load.py` work while backups are made. Each is restored, drained and judged by what
the clients knew when it began: what was confirmed by then is there, unless somebody settled it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from harebell.management.control.client import ControlError
from harebell.wire.v09 import methods as m
from tests.counts import VARIABLE
from tests.robustness.backing_up import (
    back_up,
    finished,
    harebell,
    rows,
    start,
    stored,
    wanted,
)
from tests.robustness.clients import ALL_QUEUES
from tests.robustness.ledger import Transaction
from tests.robustness.lives import kill, life
from tests.robustness.load import Load
from tests.robustness.swift import Envelope, Link, body_of

BACKUPS = 5
SOAK_ROUNDS, SOAK_KILLS = 50, 50
KILLS = 4
_SMALL_SEGMENTS = ("--segment-bytes", "65536", "--stream-segment-bytes", "65536")
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.02
_MOST_SECONDS = 600.0
_NO_LIMIT, _SLOW_BYTES = 0, 4_000_000


class Known:
    """What clients knew when a backup began, and what happened until it ended.

    Args:
        load: the clients, when it begins.
    """

    def __init__(self, load: Load) -> None:
        self._confirmed = set(load.accounts.confirmed)
        self._before = load.ledger.copy()

    def at_the_end(self, load: Load) -> Load:
        """Accounts of the clients, as they have to find the backup."""
        found = Load(load.seed, load.queues)
        ledger = load.ledger.copy()
        ledger._confirmed = set(self._before._confirmed)
        for name in ("_final", "_delivered"):
            setattr(ledger, name, set(getattr(self._before, name)))
        ledger._first = dict(self._before._first)
        # What was not confirmed by then may have come later than the backup.
        ledger._transactions = [
            Transaction(
                each.puts,
                tuple(item for item in each.takes if item[1] in self._confirmed),
                each.life,
            )
            for each in load.ledger._transactions
        ]
        found.ledger = found.accounts.ledger = ledger
        found.accounts.confirmed = self._confirmed
        found.accounts.offsets = dict(load.accounts.offsets)
        found.accounts.sources = dict(load.accounts.sources)
        return found


class Churn:
    """Declares queues, publishes to them and deletes them, all the time.

    Args:
        port: where the broker listens.
    """

    def __init__(self, port: int) -> None:
        self._link = Link(port)
        self._number = 0

    def step(self) -> None:
        """Declare a queue with a message, and delete the one before the last three."""
        name = f"churn.{self._number}"
        self._link.ask(m.QueueDeclare(queue=name, durable=True), m.QueueDeclareOk)
        self._link.send(Envelope(name).around(body_of(self._number)))
        if self._number >= 3:
            old = f"churn.{self._number - 3}"
            self._link.ask(m.QueueDelete(queue=old), m.QueueDeleteOk)
        self._number += 1


def play(directory: Path, seed: int, count: int) -> str:
    """Make so many backups under load, and judge each; says how much there was."""
    rng = Random(seed)
    where = f"{VARIABLE}={seed}"
    load = Load(rng.randrange(1 << 32), ALL_QUEUES)
    data_dir, target = directory / "data", directory / "target"
    made: list[tuple[str, Load]] = []
    copied = 0
    with life(data_dir, *_SMALL_SEGMENTS) as broker:
        load.declare(broker.port)
        churn = Churn(broker.port)
        known: Known | None = None
        due = time.monotonic() + rng.uniform(0, _PAUSE_SECONDS)

        def step() -> bool:
            nonlocal known, due, copied
            if time.monotonic() < due:
                return False
            churn.step()
            due = time.monotonic() + _LOOK_SECONDS
            if known is None:
                known = Known(load)
                start(data_dir, target, rate=rng.choice((_NO_LIMIT, _SLOW_BYTES)))
            elif (row := rows(data_dir)[-1])["ended"]:
                assert row["state"] == "done", f"{where}: {row}"
                made.append((row["name"], known.at_the_end(load)))
                copied += row["copied_files"]
                known = None
                due += rng.uniform(0, _PAUSE_SECONDS)
            return len(made) == count

        assert not load.run(broker.port, time.monotonic() + _MOST_SECONDS, until=step), where
        assert len(made) == count, where
        assert "Traceback" not in broker.log, broker.log
        assert not list((data_dir / "kept").iterdir()), "what was kept for a backup stays"
        load.drain(broker.port, where)
    confirmed = 0
    for name, clients in made:
        restored = directory / "restored"
        done = harebell("restore", target, "--data-dir", restored, "--backup", name)
        assert done.returncode == 0, f"{where}: {done.stderr}"
        checked = harebell("store", "check", restored)
        assert checked.returncode == 0, f"{where}: {checked.stdout}{checked.stderr}"
        assert harebell("store", "check", target, "--backup", name).returncode == 0, where
        with life(restored) as broker:
            confirmed += clients.drain(broker.port, f"{where}, backup {name}").confirmed
        shutil.rmtree(restored)
    return f"{count} backups, {copied} files copied, {confirmed:,} confirmed before them"


def test_a_backup_under_load_has_what_was_confirmed_before_it(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    counted(play(tmp_path, seed, BACKUPS))


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_fifty_backups_under_load_have_what_was_confirmed_before_them(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    parts = range(SOAK_ROUNDS // BACKUPS)
    counted("; ".join([play(tmp_path / str(part), seed + part, BACKUPS) for part in parts]))


def play_kills(directory: Path, seed: int, count: int) -> None:
    """kill -9 of the broker while it makes a backup, so many times."""
    rng = Random(seed)
    where = f"{VARIABLE}={seed}"
    load = Load(rng.randrange(1 << 32), ALL_QUEUES)
    data_dir, target = directory / "data", directory / "target"

    def begin() -> None:
        with suppress(ControlError):
            start(data_dir, target, rate=_SLOW_BYTES)

    for _ in range(count):
        with life(data_dir, *_SMALL_SEGMENTS) as broker:
            assert not (data_dir / "kept").exists(), f"{where}: what was kept outlived a restart"
            load.declare(broker.port)
            begins = time.monotonic() + rng.uniform(0, _PAUSE_SECONDS)
            load.run(
                broker.port,
                begins + rng.uniform(0, 4 * _PAUSE_SECONDS),
                lambda broker=broker: kill(broker),  # type: ignore[misc]
                [(begins, begin)],
            )
        for name in finished(target):
            assert harebell("store", "check", target, "--backup", name).returncode == 0, where
    with life(data_dir) as broker:
        known = Known(load)
        row = back_up(data_dir, target, keep=1)
        clients = known.at_the_end(load)
        load.drain(broker.port, where)
    assert finished(target) == [row["name"]], where
    assert stored(target) == wanted(target, [row["name"]]), where
    restored = directory / "restored"
    assert harebell("restore", target, "--data-dir", restored).returncode == 0, where
    with life(restored) as broker:
        clients.drain(broker.port, where)


def test_a_broker_that_is_killed_during_a_backup_loses_nothing_nor_do_earlier_backups(
    tmp_path: Path, seed: int
) -> None:
    play_kills(tmp_path, seed, KILLS)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_fifty_kills_during_backups_lose_nothing(tmp_path: Path, seed: int) -> None:
    play_kills(tmp_path, seed, SOAK_KILLS)
