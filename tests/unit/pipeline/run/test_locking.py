"""A checkpoint belongs to one driver at a time, and to nobody when that has died."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.locking import CheckpointLock

HOLD = """
import sys
from pathlib import Path
from harebell.pipeline.run.locking import CheckpointLock
with CheckpointLock(Path(sys.argv[1]), "first"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_driver_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(PipelineError) as error, CheckpointLock(tmp_path, "second"):
            pass
        assert f"is in use by pipeline first, process {first.pid}" in str(error.value)
        first.kill()
        first.wait()
    with CheckpointLock(tmp_path, "second"):
        assert f"process {os.getpid()}" in (tmp_path / "harebell.lock").read_text()


def test_a_lock_is_given_back(tmp_path: Path) -> None:
    for _ in range(2):
        with CheckpointLock(tmp_path / "new", "one"):
            pass


def test_a_checkpoint_that_is_no_directory_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for place, said in ((file, "File exists"), (file / "deeper", "Not a directory")):
        with pytest.raises(PipelineError) as error, CheckpointLock(place, "p"):
            pass
        assert str(error.value) == f"the checkpoint {place} cannot be used: {said}"
