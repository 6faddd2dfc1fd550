"""A restore that cannot be made says why, and leaves nothing that a broker would start on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harebell.store.backup.manifest import decode
from tests.patience import SECONDS
from tests.robustness.backing_up import back_up, finished, harebell
from tests.robustness.lives import life
from tests.robustness.raw import MIB
from tests.robustness.small_disk import small_disk
from tests.robustness.test_backup_targets import WITHOUT_RIGHTS, fill, purge
from tests.running import command

_SEGMENT = ("--segment-bytes", str(MIB))
COUNT = 60


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A target with a backup of 6 MB."""
    place = tmp_path / "target"
    with life(tmp_path / "data", *_SEGMENT) as broker:
        fill(broker, COUNT)
        back_up(tmp_path / "data", place)
    return place


def _run(prefix: tuple[str, ...] | list[str], *words: object) -> subprocess.CompletedProcess[str]:
    given = [*prefix, command(), *map(str, words)]
    return subprocess.run(given, capture_output=True, text=True, timeout=SECONDS * 5)


def test_a_disk_that_is_too_small_is_said_and_a_larger_one_takes_the_backup(
    tmp_path: Path, target: Path
) -> None:
    with small_disk(tmp_path / "small", 4 * MIB) as disk:
        done = _run(disk.prefix, "restore", target, "--data-dir", disk.data_dir)
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        left = os.listdir(disk.seen / "data")
        assert left == ["LOCK"], left
    restored = tmp_path / "restored"
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored, *_SEGMENT) as broker:
        assert purge(broker) == COUNT


def test_directories_without_rights_are_said(tmp_path: Path, target: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(0o500)
    done = _run(WITHOUT_RIGHTS, "restore", target, "--data-dir", locked / "data")
    assert done.returncode == 1
    assert "Permission denied" in done.stderr
    segment = next(target.rglob("*.seg"))
    segment.chmod(0)
    restored = tmp_path / "restored"
    done = _run(WITHOUT_RIGHTS, "restore", target, "--data-dir", restored)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(
        f"the backup in {target} is not restored: Permission denied ({segment})"
    )
    assert os.listdir(restored) == ["LOCK"]


def test_a_restore_to_a_directory_in_use_leaves_it_alone(tmp_path: Path, target: Path) -> None:
    restored = tmp_path / "restored"
    with life(restored, *_SEGMENT) as broker:
        fill(broker, 3)
        done = harebell("restore", target, "--data-dir", restored)
        assert done.returncode == 1
        assert f"{restored} is not empty" in done.stderr
        # As a restore beside it leaves it that has begun: the lock tells that it is in use.
        (restored / "restoring").touch()
        done = harebell("restore", target, "--data-dir", restored)
        assert done.returncode == 1
        assert f"runs on the data directory {restored}" in done.stderr
        assert purge(broker) == 3
    file = tmp_path / "file"
    file.write_text("Dear")
    done = harebell("restore", target, "--data-dir", file)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert file.read_text() == "Dear"


def test_an_invalid_target_is_reported(tmp_path: Path, target: Path) -> None:
    for source, said in (
        (tmp_path / "nowhere", "there is no finished backup in"),
        (tmp_path / "data", "which is no backup"),
        (target / finished(target)[0], "which is no backup"),
    ):
        done = harebell("restore", source, "--data-dir", tmp_path / "restored")
        assert done.returncode == 1
        assert said in done.stderr
        assert not (tmp_path / "restored").exists()


def test_a_backup_of_another_machine_is_restored_and_one_of_a_later_version_is_named(
    tmp_path: Path, target: Path
) -> None:
    name = finished(target)[0]
    path = target / name / "manifest"
    manifest = decode(name, path.read_bytes(), str(target))
    assert manifest.about["node"] != "other@elsewhere"
    restored = tmp_path / "restored"
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored, *_SEGMENT, "--node-name", "other@elsewhere") as broker:
        assert purge(broker) == COUNT
    manifest.about["harebell_backup"] = 99
    path.write_bytes(b"".join(manifest.encode()))
    done = harebell("restore", target, "--data-dir", tmp_path / "again")
    assert done.returncode == 1
    assert "has format 99, and this version of Harebell reads 2" in done.stderr
    assert not (tmp_path / "again").exists()
