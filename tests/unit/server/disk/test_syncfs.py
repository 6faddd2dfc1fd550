"""One call that syncs a whole file system, and where it is not relied on."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from harebell.server.disk import syncfs
from harebell.server.disk.syncfs import WholeSync, whole_sync


def _mounted(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the system say that a directory is on such a file system."""
    device = os.stat(tmp_path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    table = tmp_path / "mountinfo"
    other = b"21 1 0:999 / /mnt/\xff rw - proc proc rw\n"
    own = f"36 35 {number} / / rw,noatime shared:1 - {kind} /dev/x rw\n"
    table.write_bytes(other + own.encode())
    monkeypatch.setattr(syncfs, "_MOUNTS", table)


@pytest.mark.parametrize(
    ("kind", "relied_on"),
    [("ext4", True), ("xfs", True), ("fuse.sshfs", False), ("nfs4", False), ("tmpfs", False)],
)
def test_only_known_file_systems_are_relied_on(
    kind: str, relied_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _mounted(tmp_path, kind, monkeypatch)
    found = whole_sync(str(tmp_path))
    assert (found is not None) == relied_on
    if found is not None:
        found()
        found.close()
        found.close()


@pytest.mark.parametrize("release", ["5.7.19-generic", "4.18.0", "odd"])
def test_a_kernel_that_does_not_tell_of_failed_writes_is_not_relied_on(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _mounted(tmp_path, "ext4", monkeypatch)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert whole_sync(str(tmp_path)) is None


def test_a_system_that_does_not_say_what_is_mounted_is_not_relied_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncfs, "_MOUNTS", tmp_path / "missing")
    assert whole_sync(str(tmp_path)) is None


def test_a_failure_names_the_directory(tmp_path: Path) -> None:
    whole = WholeSync(str(tmp_path))
    whole.close()
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        whole()
    assert caught.value.filename == str(tmp_path)
