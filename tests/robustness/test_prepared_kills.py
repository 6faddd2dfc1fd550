"""kill -9 instead of the N-th call to the disk, while branches are prepared and completed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.robustness import strace
from tests.robustness.lives import life
from tests.robustness.prepared_lives import Branches, LostError
from tests.running import DidNotStart

POINTS = 10
SOAK_POINTS = 400
KINDS = ("pwrite64", "fdatasync,fsync,syncfs", "write")
_FLAGS = ("--segment-bytes", "65536")
_MAX = 120
"""The latest call: a branch makes some ten, and the start some twenty."""


def _lives(directory: Path, seed: int, points: int) -> Branches:
    rng = Random(seed)
    branches = Branches(seed)
    data_dir = directory / "data"
    lives = 0
    # A life that is killed early ends no branch, and chance may make many of them.
    while lives < points or branches.ended <= points:
        lives += 1
        assert lives <= points * 5, f"{branches.ended} branches ended in {lives} lives"
        prefix = strace.kill_at(rng.choice(KINDS), rng.randint(1, _MAX))
        try:
            with life(data_dir, *_FLAGS, prefix=prefix) as broker:
                with pytest.raises(LostError):
                    branches.live(broker.port)
                assert broker.process.wait(60) == -signal.SIGKILL, broker.log
                assert "Traceback" not in broker.log, broker.log
        except DidNotStart as error:
            if error.code != -signal.SIGKILL:
                raise
    with life(data_dir, *_FLAGS) as broker:
        branches.settle(broker.port)
        assert broker.stop() == 0
    return branches


@pytest.mark.timeout(900)
def test_a_prepared_branch_is_there_until_its_end_whenever_the_broker_is_killed(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    branches = _lives(tmp_path, seed, POINTS)
    counted(f"{branches.ended} branches ended, {branches.survived} were found prepared")


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_prepared_branches_bear_many_kills(tmp_path: Path, seed: int) -> None:
    branches = _lives(tmp_path, seed, SOAK_POINTS)
    assert branches.survived > SOAK_POINTS // 40
