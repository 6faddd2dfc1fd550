"""Backups in an object store: the same as in a directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.management.control.client import ControlError, ask_command
from tests.object_store import BUCKET, ObjectStore, object_store
from tests.patience import eventually
from tests.refusing_store import refusing_store
from tests.robustness.backing_up import back_up, ended, harebell
from tests.robustness.lives import life
from tests.robustness.raw import MIB
from tests.robustness.test_backup_targets import fill, purge

_SEGMENT = ("--segment-bytes", str(MIB))
KEYS = {"AWS_ACCESS_KEY_ID": "clerk", "AWS_SECRET_ACCESS_KEY": "hunter2"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An object store, whose credentials are in the environment."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with object_store() as made:
        yield made


def test_a_backup_goes_to_an_object_store_and_comes_back(
    tmp_path: Path, store: ObjectStore
) -> None:
    data_dir, restored = tmp_path / "data", tmp_path / "restored"
    place = f"s3://{BUCKET}/backups?{store.query}"
    with life(data_dir, *_SEGMENT) as broker:
        fill(broker, 30)
        rows = []
        for _ in range(3):
            ask_command(data_dir, "backups.start", {"target": place, "rate": 0, "keep": 2})
            rows.append(ended(data_dir))
            fill(broker, 1)
        assert [row["problem"] for row in rows] == [""] * 3
        assert rows[0]["copied_files"] == rows[0]["files"] > 3
        # The definitions, and what was written since.
        assert all(row["copied_files"] <= 3 for row in rows[1:])
    manifests = [key for key in store.objects if key.endswith("/manifest")]
    assert sorted(manifests) == [f"backups/{row['name']}/manifest" for row in rows[1:]]
    assert not [key for key in store.objects if "manifest.new" in key]
    checked = harebell("store", "check", place)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    done = harebell("restore", place, "--data-dir", restored)
    assert done.returncode == 0, done.stderr
    with life(restored, *_SEGMENT) as broker:
        assert purge(broker) == 32
    # What is damaged there is found.
    victim = next(key for key in sorted(store.objects) if key.endswith(".seg"))
    content = bytearray(store.objects[victim])
    content[len(content) // 2] ^= 1
    store.objects[victim] = bytes(content)
    done = harebell("restore", place, "--data-dir", tmp_path / "again")
    assert done.returncode == 1
    assert "is damaged: the checksum of" in done.stderr


def test_an_object_store_that_takes_no_more_fails_the_backup_and_nothing_else(
    tmp_path: Path, store: ObjectStore
) -> None:
    data_dir = tmp_path / "data"
    place = f"s3://{BUCKET}/backups?{store.query}"
    with life(data_dir, *_SEGMENT) as broker:
        fill(broker, 30)
        store.room = MIB
        ask_command(data_dir, "backups.start", {"target": place, "rate": 0})
        row = ended(data_dir)
        assert row["state"] == "failed"
        assert row["problem"].startswith(f"the backup to {place} cannot be made: ")
        assert "\n" not in row["problem"]
        store.room = -1
        ask_command(data_dir, "backups.start", {"target": place, "rate": 0})
        row = ended(data_dir)
        assert row["state"] == "done", row
        names = {key.split("/")[1] for key in store.objects if key.split("/")[1:2] != [""]}
        assert names == {row["name"]}
        assert purge(broker) == 30


def test_an_object_store_without_rights_or_with_credentials_in_its_address_is_one_sentence(
    tmp_path: Path, store: ObjectStore
) -> None:
    data_dir = tmp_path / "data"
    with life(data_dir), refusing_store() as port:
        place = f"s3://bucket/backups?scheme=http&endpoint_override=127.0.0.1:{port}&region=eu"
        ask_command(data_dir, "backups.start", {"target": place})
        problem = ended(data_dir)["problem"]
        assert problem.startswith(f"the backup to {place} cannot be made: ")
        assert "ACCESS_DENIED" in problem
        with pytest.raises(ControlError, match="without credentials"):
            ask_command(data_dir, "backups.start", {"target": "s3://clerk:hunter2@bucket/backups"})


def test_an_object_store_that_does_not_answer_fails_the_backup_in_time_and_nothing_else(
    tmp_path: Path, store: ObjectStore
) -> None:
    data_dir = tmp_path / "data"
    place = f"s3://{BUCKET}/backups?{store.query}"
    with life(data_dir, *_SEGMENT, "--backup-timeout-seconds", "10") as broker:
        fill(broker, 30)
        store.answers.clear()
        ask_command(data_dir, "backups.start", {"target": place, "rate": 0})
        assert ended(data_dir)["problem"] == (
            f"the backup to {place} is not made: the target has not answered for 10 seconds "
            "(backup_timeout_seconds): look whether its disk or network works"
        )
        # Its thread hangs; another target can be used.
        assert back_up(data_dir, tmp_path / "target")["files"] > 3
        store.answers.set()

        def works() -> bool:
            ask_command(data_dir, "backups.start", {"target": place, "rate": 0})
            return bool(ended(data_dir)["state"] == "done")

        assert eventually(works)
        assert harebell("store", "check", place).returncode == 0
        assert purge(broker) == 30
