"""Reads and syncs that the disk refuses at the start: said as what they are, with their code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from harebell.base.limits import EXIT_DISK
from harebell.store.definitions import NAME
from tests.robustness import strace
from tests.robustness.lives import life
from tests.running import DidNotStartError, RunningBroker


def refused(folder: Path, prefix: Sequence[str]) -> DidNotStartError:
    with pytest.raises(DidNotStartError) as caught:
        RunningBroker("--data-dir", str(folder), prefix=prefix)
    return caught.value


def reading(folder: Path, number: int) -> list[str]:
    """A prefix that has the N-th read of the definitions fail, and all after it."""
    command = strace.fail_at("pread64", "EIO", number)
    return [*command, "-P", str(folder / NAME)]


@pytest.mark.parametrize("number", [1, 2, 4])
def test_definitions_that_cannot_be_read_are_not_called_damaged(
    tmp_path: Path, number: int
) -> None:
    folder = tmp_path / "data"
    with life(folder):
        pass
    error = refused(folder, reading(folder, number))
    assert error.code == EXIT_DISK, error
    assert "damaged:" not in str(error)
    assert f"the disk cannot read {folder / NAME}" in str(error)
    with life(folder) as broker:
        assert "Traceback" not in broker.log


def test_a_folder_above_that_is_not_synced_ends_every_start(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "data"
    failing = strace.fail_at("fsync", "EIO", 1)
    for _ in range(2):
        error = refused(folder, failing)
        assert error.code == EXIT_DISK, error
        assert "the folder of the data directory" in str(error)
        assert "Traceback" not in str(error)
    with life(folder) as broker:
        assert "Traceback" not in broker.log
