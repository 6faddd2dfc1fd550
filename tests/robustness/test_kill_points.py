"""kill -9 at chosen system calls: instead of the N-th write, sync, rename, removal or cut.

A random moment rarely falls between two calls that belong together. strace counts the broker's
calls and kills it at the N-th, while it starts and recovers as well as while clients work. How many
calls of a kind a life makes is counted first, so that the points lie where there are calls.
"""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from harebell.base import impl
from tests.robustness import strace
from tests.robustness.lives import kill, life
from tests.robustness.load import Load
from tests.running import DidNotStartError

# Uncompiled it is the same code, and every life takes longer.
POINTS = 120 if impl.chosen() == impl.NATIVE else 40
SOAK_POINTS = 2_000
POINTS_TOGETHER = 20
"""So many points share a data directory and a ledger."""

KINDS = ("write", "pwrite64", "fdatasync", strace.RENAMES, "unlink", "ftruncate", "fsync", "mkdir")
KILLED = -signal.SIGKILL
_SECONDS = 0.3
_FLAGS = ("--segment-bytes", "65536")
_LINE = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


class Points:
    """Lives that end at chosen calls, over one data directory.

    Args:
        folder: for the data directory and traces.
        rng: chooses the points.

    Attributes:
        reached: by kind, how many lives ended at their point.
        early: how many of them before the broker was ready.
    """

    def __init__(self, folder: Path, rng: Random) -> None:
        self.data_dir = folder / "data"
        self.reached: Counter[str] = Counter()
        self.early = 0
        self._trace = folder / "trace"
        self._rng = rng
        self._load = Load(rng.randrange(1 << 32))
        self._most = self._count()

    def _count(self) -> Counter[str]:
        """How many calls of each kind the busiest thread of one life makes."""
        everything = ",".join(KINDS)
        command = strace.log_to(strace.kill_at(everything, strace.MOST), self._trace)
        self._live(command)
        threads = Counter(_LINE.findall(self._trace.read_text()))
        most: Counter[str] = Counter()
        for (_, call), count in threads.items():
            kind = next(each for each in KINDS if call in each.split(","))
            most[kind] = max(most[kind], count)
        return most

    def _live(self, command: list[str]) -> bool:
        """One life; returns whether it ended before it was ready."""
        try:
            with life(self.data_dir, *_FLAGS, prefix=command) as broker:
                try:
                    self._load.declare(broker.port)
                except ConnectionError:
                    return False
                end_at = time.monotonic() + _SECONDS
                self._load.run(broker.port, end_at, lambda: kill(broker))
                assert "Traceback" not in broker.log, broker.log
        except DidNotStartError as error:
            if error.code != KILLED:
                raise
            return True
        return False

    def play(self) -> None:
        """One life that ends at a call of a random kind."""
        kinds = [kind for kind in KINDS if self._most[kind]]
        kind = self._rng.choice(kinds)
        number = self._rng.randint(1, self._most[kind])
        self.early += self._live(strace.log_to(strace.kill_at(kind, number), self._trace))
        threads = Counter(_LINE.findall(self._trace.read_text()))
        self.reached[kind.split(",")[0]] += max(threads.values(), default=0) >= number

    def end(self, where: str) -> tuple[int, int]:
        """Drain and judge; how many messages were sent, and confirmed."""
        with life(self.data_dir, *_FLAGS) as broker:
            self._load.declare(broker.port)
            verdict = self._load.drain(broker.port, where)
            assert broker.stop() == 0
        return verdict.sent, verdict.confirmed


def _play_all(folder: Path, seed: int, points: int, counted: Callable[[str], None]) -> None:
    begin = time.monotonic()
    reached: Counter[str] = Counter()
    early = sent = confirmed = 0
    for first in range(0, points, POINTS_TOGETHER):
        here = folder / str(first)
        here.mkdir()
        play = Points(here, Random(seed + first))
        for _ in range(min(POINTS_TOGETHER, points - first)):
            play.play()
        totals = play.end(f"HAREBELL_SEED={seed}")
        sent, confirmed = sent + totals[0], confirmed + totals[1]
        reached += play.reached
        early += play.early
    kinds = ", ".join(f"{count} {kind}" for kind, count in reached.most_common())
    counted(
        f"{points} points, {reached.total()} reached ({kinds}; {early} during the start), "
        f"{sent:,} sent, {confirmed:,} confirmed, {time.monotonic() - begin:.0f} s"
    )
    assert reached.total() >= points // 2, f"few points were reached: {reached}"


@pytest.mark.timeout(400)
def test_nothing_confirmed_is_lost_at_chosen_calls(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    _play_all(tmp_path, seed, POINTS, counted)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_nothing_confirmed_is_lost_at_many_calls(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    _play_all(tmp_path, seed, SOAK_POINTS, counted)


def test_a_broker_is_killed_at_the_call_that_was_asked_for(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    command = strace.log_to(strace.kill_at("write", 3), trace)
    with pytest.raises(DidNotStartError) as caught, life(tmp_path / "data", prefix=command):
        pass
    assert caught.value.code == KILLED
    calls = Counter(_LINE.findall(trace.read_text()))
    assert max(calls.values()) == 3
