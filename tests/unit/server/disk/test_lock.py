"""The lock on a data directory: one owner, whoever dies lets it go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harebell.base.errors import StoreError
from harebell.server.disk.lock import DirectoryLock

HOLD = """
import sys, time
from pathlib import Path
from harebell.server.disk.lock import DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_owner_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    first = DirectoryLock(tmp_path / "deep" / "data")
    with pytest.raises(StoreError, match=r"another broker runs on the data directory .*/deep/data"):
        DirectoryLock(tmp_path / "deep" / "data")
    first.release()
    first.release()
    DirectoryLock(tmp_path / "deep" / "data").release()


def test_a_new_directory_belongs_to_its_owner_alone(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "data" / "LOCK").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another broker runs"):
            DirectoryLock(tmp_path)
        holder.send_signal(signal.SIGKILL)
    DirectoryLock(tmp_path).release()


def test_a_place_where_nothing_can_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot use the data directory .*Not a directory"):
        DirectoryLock(tmp_path / "file" / "data")


def test_a_reader_is_refused_while_there_is_an_owner(tmp_path: Path) -> None:
    owner = DirectoryLock(tmp_path)
    with pytest.raises(StoreError, match="another broker runs"):
        DirectoryLock(tmp_path, looking=True)
    owner.release()
    DirectoryLock(tmp_path, looking=True).release()
