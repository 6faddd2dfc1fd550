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

from tests.counts import VARIABLE
from tests.patience import SECONDS
from tests.robustness import strace
from tests.robustness.lives import kill, life
from tests.robustness.load import Load
from tests.running import DidNotStart

# Every run has points of its own, and each share of them is one of every kind at least.
POINTS = 18
SOAK_POINTS = 2_000
SHARES = 2
"""The points are spread over so many tests, which can run side by side."""
LIVES_TOGETHER = 10
"""So many lives share a data directory and a ledger."""

SYNCS = ("fdatasync", "fsync", "syncfs")
KINDS = ("write", "pwrite64", *SYNCS, strace.RENAMES, "unlink", "ftruncate", "mkdir")
KILLED = -signal.SIGKILL
_CONFIRMS, _MAX_CONFIRMS, _MORE = 6_000, 100_000, 1.25
"""A life ends after so many confirms: on any machine it has about as many calls."""
_FLAGS = ("--segment-bytes", "65536")
_LINE = re.compile(r"^(\d+) +(\w+)\(", re.MULTILINE)


class Points:
    """Lives that end at chosen calls, over one data directory.

    Args:
        data_dir: where; the first life makes it.
        counts: how many calls of each kind a first life makes, and how many a later one.
        rng: chooses the points.
        tries: by kind, how many points were chosen.
        reached: by kind, how many of them were reached. Both are added to.
        confirms: how many messages are confirmed in a life that does not reach its point.

    Attributes:
        early: how many lives ended before the broker was ready.
        lives: how many there were.
        confirms: what it has become: more where points were not reached.
    """

    def __init__(
        self,
        data_dir: Path,
        counts: tuple[Counter[str], Counter[str]],
        rng: Random,
        tries: Counter[str],
        reached: Counter[str],
        confirms: float = _CONFIRMS,
    ):
        self.early = self.lives = 0
        self.confirms = confirms
        self._data_dir = data_dir
        self._trace = data_dir.with_suffix(".trace")
        self._counts = counts
        self._rng = rng
        self._tries = tries
        self._reached = reached
        self._load = Load(rng.randrange(1 << 32))

    def _live(self, command: list[str]) -> bool:
        """One life; returns whether it ended before it was ready."""
        try:
            with life(self._data_dir, *_FLAGS, prefix=command) as broker:
                try:
                    self._load.declare(broker.port)
                except ConnectionError:
                    return False
                confirmed = self._load.accounts.confirmed
                enough = len(confirmed) + self.confirms
                end_at = time.monotonic() + SECONDS
                self._load.run(
                    broker.port,
                    end_at,
                    lambda: kill(broker),
                    until=lambda: len(confirmed) >= enough,
                )
                assert "Traceback" not in broker.log, broker.log
        except DidNotStart as error:
            if error.code != KILLED:
                raise
            return True
        return False

    def count(self) -> Counter[str]:
        """One life that reaches no point: what its busiest thread calls how often."""
        everything = ",".join(KINDS)
        self._live(strace.log_to(strace.kill_at(everything, strace.MAX), self._trace))
        threads = Counter(_LINE.findall(self._trace.read_text()))
        limit: Counter[str] = Counter()
        for (_, call), count in threads.items():
            kind = next(each for each in KINDS if call in each.split(","))
            limit[kind] = max(limit[kind], count)
        return limit

    def play(self) -> None:
        """One life that ends at a call of a kind that was reached least."""
        limit = self._counts[min(self.lives, 1)]
        self.lives += 1
        kinds = [kind for kind in KINDS if limit[kind]]
        self._rng.shuffle(kinds)
        # Some calls are made by a first life alone, which is one of ten: it tries them first.
        kind = min(kinds, key=lambda each: (self._reached[each], self._tries[each]))
        self._tries[kind] += 1
        # Lives differ: not every one makes as many calls as the one that was counted.
        number = self._rng.randint(1, max(1, limit[kind] * 3 // 4))
        self.early += self._live(strace.log_to(strace.kill_at(kind, number), self._trace))
        threads = Counter(_LINE.findall(self._trace.read_text()))
        if max(threads.values(), default=0) >= number:
            self._reached[kind] += 1
        else:
            # A machine that has become slower writes more at a time, with fewer calls.
            self.confirms = min(self.confirms * _MORE, _MAX_CONFIRMS)

    def end(self, where: str) -> tuple[int, int]:
        """Drain and judge; how many messages were sent, and confirmed."""
        with life(self._data_dir, *_FLAGS) as broker:
            self._load.declare(broker.port)
            verdict = self._load.drain(broker.port, where)
            assert broker.stop() == 0
        return verdict.sent, verdict.confirmed


def _play_all(directory: Path, seed: int, points: int, counted: Callable[[str], None]) -> None:
    """Lives until so many have ended at their points; some end before."""
    begin = time.monotonic()
    rng = Random(seed)
    scout = Points(directory / "scout", (Counter(), Counter()), rng, Counter(), Counter())
    counts = (scout.count(), scout.count())
    made = {kind for kind in KINDS if counts[0][kind] or counts[1][kind]}
    tries: Counter[str] = Counter()
    reached: Counter[str] = Counter()
    early = lives = sent = confirmed = 0
    confirms: float = _CONFIRMS

    def enough() -> bool:
        return reached.total() >= points and made <= reached.keys()

    while not enough():
        assert lives < points * 6, f"few points were reached: {reached} of {tries}, by {counts}"
        play = Points(directory / str(lives), counts, rng, tries, reached, confirms)
        while play.lives < LIVES_TOGETHER and not enough():
            play.play()
        totals = play.end(f"{VARIABLE}={seed}")
        sent, confirmed = sent + totals[0], confirmed + totals[1]
        confirms = play.confirms
        early += play.early
        lives += play.lives
    kinds = ", ".join(f"{count} {kind.split(',')[0]}" for kind, count in reached.most_common())
    counted(
        f"{reached.total()} points reached in {lives} lives ({kinds}; {early} during the start), "
        f"{sent:,} sent, {confirmed:,} confirmed, {time.monotonic() - begin:.0f} s"
    )


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("share", range(SHARES))
def test_nothing_confirmed_is_lost_at_chosen_calls(
    tmp_path: Path, seed: int, counted: Callable[[str], None], share: int
) -> None:
    _play_all(tmp_path, seed + share, POINTS // SHARES, counted)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_nothing_confirmed_is_lost_at_many_calls(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    _play_all(tmp_path, seed, SOAK_POINTS, counted)
