"""A backup that cannot be made fails with a sentence, and with nothing else."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from urllib.request import urlopen

import pytest

from harebell.management.control.client import ControlError, ask_command
from harebell.server.backup.target import DirectoryTarget, read_manifest
from harebell.store.backup.manifest import Manifest
from harebell.wire.v09 import methods as m
from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.backing_up import (
    back_up,
    ended,
    finished,
    harebell,
    rows,
    start,
    stored,
    wanted,
)
from tests.robustness.lives import kill, life
from tests.robustness.raw import MIB
from tests.robustness.small_disk import small_disk
from tests.robustness.swift import Envelope, Link, body_of
from tests.running import RunningBroker

QUEUE = "backed.up"
SIZE = 100_000
SLOW_BYTES = MIB
"""A second; a backup goes on for so long that a busy machine sees it going on."""
SMALL_BYTES = 4 * MIB
_SEGMENT = ("--segment-bytes", str(MIB))
_ROOT = os.geteuid() == 0
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if _ROOT else ()
"""Runs a command for which the modes of files count, for the superuser too."""


def fill(broker: RunningBroker, count: int, queue: str = QUEUE) -> None:
    """Publish messages of 100 KB that do not compress; they are on disk then."""
    link = Link.to(broker)
    link.ask(m.QueueDeclare(queue=queue, durable=True), m.QueueDeclareOk)
    link.ask(m.TxSelect(), m.TxSelectOk)
    envelope, rng = Envelope(queue), Random(count)
    for number in range(count):
        link.send(envelope.around(body_of(number, rng.randbytes(SIZE))))
    link.ask(m.TxCommit(), m.TxCommitOk)
    link.goodbye()


def purge(broker: RunningBroker, queue: str = QUEUE) -> int:
    """Remove all messages; how many there were."""
    link = Link.to(broker)
    answer = link.ask(m.QueuePurge(queue=queue), m.QueuePurgeOk)
    assert isinstance(answer, m.QueuePurgeOk)
    link.goodbye()
    return answer.message_count


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """The data directory of the broker."""
    return tmp_path / "data"


@pytest.fixture
def broker(data_dir: Path) -> Iterator[RunningBroker]:
    """A broker with 8 MB in segments of 1 MiB."""
    with life(data_dir, *_SEGMENT) as made:
        fill(made, 80)
        yield made


def test_only_new_and_grown_segments_are_copied_again(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "target"
    first = back_up(data_dir, target)
    assert first["copied_files"] == first["files"] > 8
    again = back_up(data_dir, target)
    # The definitions are copied each time.
    assert (again["files"], again["copied_files"]) == (first["files"], 1)
    fill(broker, 1)
    third = back_up(data_dir, target)
    assert third["copied_files"] == 2 + third["files"] - first["files"]
    assert third["bytes"] - again["bytes"] == pytest.approx(SIZE, abs=10_000)
    kill(broker)
    with life(data_dir, *_SEGMENT):
        # After a restart too.
        assert back_up(data_dir, target)["copied_files"] <= 3
    assert len(finished(target)) == 4


def test_a_restored_directory_is_backed_up_anew_because_its_files_are_others(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    back_up(data_dir, target)
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored, *_SEGMENT) as again:
        row = back_up(restored, target)
        assert row["copied_files"] == row["files"]
        assert purge(again) == 80


def test_old_backups_go_and_what_later_ones_need_of_them_stays(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "target"
    for _ in range(3):
        back_up(data_dir, target, keep=2)
        fill(broker, 1)
    assert len(finished(target)) == 2
    assert stored(target) == wanted(target, finished(target))
    assert finished(target)[0].startswith("000002")
    purge(broker)
    row = back_up(data_dir, target, keep=1)
    assert finished(target) == [row["name"]]
    assert stored(target) == wanted(target, [row["name"]])
    assert sorted(os.listdir(target)) == sorted(
        {path.split("/")[0] for path in stored(target)} | {"LOCK"}
    )
    assert harebell("store", "check", target).returncode == 0


def test_a_full_target_fails_the_backup_and_nothing_else(tmp_path: Path, data_dir: Path) -> None:
    with small_disk(tmp_path / "disk", SMALL_BYTES) as disk:
        target = tmp_path / "disk" / "target"
        with life(data_dir, *_SEGMENT, prefix=disk.prefix) as broker:
            before = disk.free()
            fill(broker, 20)
            back_up(data_dir, target)
            fill(broker, 60)
            free = disk.free()
            start(data_dir, target)
            row = ended(data_dir)
            assert row["state"] == "failed"
            assert row["problem"].startswith(
                f"the backup to {target} cannot be made: No space left on device"
            )
            assert free < before
            assert disk.free() == free, "what was copied stays"
            assert eventually(lambda: row["problem"] in broker.log)
            assert "Traceback" not in broker.log
            # With more room, the next one is complete.
            purge(broker)
            assert back_up(data_dir, target, keep=1)["state"] == "done"


def test_a_target_that_vanishes_fails_the_backup_and_nothing_else(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "target"
    start(data_dir, target, rate=SLOW_BYTES)
    assert eventually(lambda: rows(data_dir)[-1]["copied_files"] > 2)
    shutil.move(target, tmp_path / "gone")
    row = ended(data_dir)
    assert row["state"] == "failed"
    assert "cannot be made: No such file or directory" in row["problem"]
    assert not target.exists(), "a target that has vanished is made anew"
    assert purge(broker) == 80
    assert not any((data_dir / "kept").iterdir())
    shutil.move(tmp_path / "gone", target)
    row = back_up(data_dir, target)
    assert stored(target) == wanted(target, [row["name"]])


def test_a_target_that_hangs_fails_the_backup_in_time_and_nothing_else(
    tmp_path: Path, data_dir: Path
) -> None:
    target, other = tmp_path / "target", tmp_path / "other"
    with life(data_dir, *_SEGMENT, "--backup-timeout-seconds", "5") as broker:
        fill(broker, 80)
        start(data_dir, target, rate=SLOW_BYTES)
        # The definitions and a segment, so the directory of the others is there.
        assert eventually(lambda: rows(data_dir)[-1]["copied_files"] > 1)
        # Nobody reads from it: whoever opens it to write waits.
        last = max(data_dir.rglob("queues/*/*.seg"))
        stuck = target / rows(data_dir)[-1]["name"] / "files" / last.relative_to(data_dir)
        os.mkfifo(stuck)
        assert purge(broker) == 80
        assert eventually(lambda: any((data_dir / "kept").iterdir()))
        row = ended(data_dir)
        assert row["problem"] == (
            f"the backup to {target} is not made: the target has not answered for 5 seconds "
            "(backup_timeout_seconds): look whether its disk or network works"
        )
        assert not any((data_dir / "kept").iterdir()), "a target that hangs costs the broker disk"
        # The thread still hangs: nobody else can use this target, and everybody another one.
        fill(broker, 5)
        start(data_dir, target)
        assert "another backup writes to" in ended(data_dir)["problem"]
        back_up(data_dir, other)
        os.close(os.open(stuck, os.O_RDONLY | os.O_NONBLOCK))
        assert eventually(lambda: os.listdir(target) == ["LOCK"])
        assert eventually(lambda: _starts_and_ends(data_dir, target))
        assert stored(target) == wanted(target, finished(target))
        assert purge(broker) == 5
        assert "Traceback" not in broker.log


def _starts_and_ends(data_dir: Path, target: Path) -> bool:
    start(data_dir, target)
    return bool(ended(data_dir)["state"] == "done")


def test_files_removed_during_a_backup_are_in_it(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    start(data_dir, target, rate=SLOW_BYTES)
    assert eventually(lambda: rows(data_dir)[-1]["copied_bytes"])
    assert purge(broker) == 80
    link = Link.to(broker)
    link.ask(m.QueueDelete(queue=QUEUE), m.QueueDeleteOk)
    assert eventually(lambda: any((data_dir / "kept").glob("[0-9]*")))
    assert ended(data_dir)["state"] == "done"
    assert not any((data_dir / "kept").iterdir())
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored, *_SEGMENT) as again:
        assert purge(again) == 80


def test_a_backup_that_keeps_removed_files_ends_before_the_disk_of_the_broker_is_short(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 64 * MIB) as disk:
        target = tmp_path / "target"
        flags = (*_SEGMENT, "--disk-free-limit", str(24 * MIB))
        # The path into the namespace is too long for a socket.
        control = tmp_path / "data"
        control.symlink_to(disk.seen / "data")
        with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
            fill(broker, 80)
            start(control, target, rate=SLOW_BYTES)
            assert eventually(lambda: rows(control)[-1]["copied_bytes"])
            purge(broker)
            disk.fill(leave=20 * MIB)
            row = ended(control)
            assert row["state"] == "failed"
            assert "less than disk_free_limit (25165824 bytes) left" in row["problem"]
            disk.give_back()
            assert eventually(lambda: back_up(control, target)["state"] == "done")


def test_a_backup_can_be_ended_and_nothing_of_it_stays(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "target"
    start(data_dir, target, rate=10_000)
    with pytest.raises(ControlError, match="is being made: wait for its end"):
        start(data_dir, target)
    ask_command(data_dir, "backups.cancel", {})
    row = ended(data_dir)
    assert (row["state"], row["problem"]) == (
        "failed",
        f"the backup to {target} is not made: it was stopped",
    )
    assert stored(target) == set()
    with pytest.raises(ControlError, match="no backup is being made"):
        ask_command(data_dir, "backups.cancel", {})


def test_a_broker_that_stops_ends_its_backup(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "target"
    start(data_dir, target, rate=10_000)
    assert eventually(lambda: rows(data_dir)[-1]["copied_bytes"])
    assert broker.stop() == 0
    assert stored(target) == set()
    assert harebell("store", "check", data_dir).returncode == 0
    with life(data_dir, *_SEGMENT) as again:
        assert purge(again) == 80


def test_a_target_without_rights_is_said_and_left_alone(tmp_path: Path, data_dir: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(0o500)
    with life(data_dir, *_SEGMENT, prefix=WITHOUT_RIGHTS) as broker:
        fill(broker, 1)
        start(data_dir, target)
        assert ended(data_dir)["problem"] == (
            f"the backup to {target} cannot be made: Permission denied ({target}/LOCK)"
        )
        target.chmod(0o700)
        name = back_up(data_dir, target)["name"]
        # A backup that may not be read is not taken for one that does not exist.
        (target / name / "manifest").chmod(0)
        start(data_dir, target)
        assert "cannot be made: Permission denied" in ended(data_dir)["problem"]
        (target / name / "manifest").chmod(0o600)
        back_up(data_dir, target)
        assert len(finished(target)) == 2


def test_two_brokers_never_write_to_one_target_at_once(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, other = tmp_path / "target", tmp_path / "other"
    with life(other, *_SEGMENT) as second:
        fill(second, 3)
        start(data_dir, target, rate=SLOW_BYTES)
        assert eventually(lambda: rows(data_dir)[-1]["copied_bytes"])
        start(other, target)
        assert ended(other)["problem"] == (
            f"another backup writes to {target}: wait for its end, or give another directory"
        )
        row = ended(data_dir)
        assert row["state"] == "done"
        assert stored(target) == wanted(target, [row["name"]])
        # Afterwards the place belongs to the one.
        start(other, target)
        assert "has backups of other data" in ended(other)["problem"]


def test_a_backup_after_a_killed_one_copies_what_no_finished_one_has(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    first = back_up(data_dir, target)
    fill(broker, 80)
    start(data_dir, target, rate=SLOW_BYTES)
    assert eventually(lambda: rows(data_dir)[-1]["copied_files"] > 3)
    kill(broker)
    assert stored(target) > wanted(target, finished(target))
    with life(data_dir, *_SEGMENT) as again:
        row = back_up(data_dir, target)
        assert finished(target) == [first["name"], row["name"]]
        assert stored(target) == wanted(target, finished(target))
        assert row["files"] - first["files"] <= row["copied_files"] < first["files"] + 3
        assert row["copied_bytes"] == pytest.approx(80 * SIZE, rel=0.3)
        assert purge(again) == 160
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored, *_SEGMENT) as again:
        assert purge(again) == 160


def test_a_target_with_something_else_is_left_alone(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "documents"
    target.mkdir()
    (target / "letter.txt").write_text("Dear")
    start(data_dir, target)
    row = ended(data_dir)
    assert row["problem"] == (
        f"{target} has 'letter.txt', which is no backup: give an empty directory, or one that has "
        "backups only"
    )
    assert os.listdir(target) == ["letter.txt"]
    start(data_dir, data_dir / "queues")
    assert "is in the data directory" in ended(data_dir)["problem"]
    start(data_dir, tmp_path / "a" / "b")
    assert "cannot be made: No such file or directory" in ended(data_dir)["problem"]
    with pytest.raises(ControlError, match="must be an absolute path"):
        start(data_dir, Path("relative"))


def test_a_backup_of_the_configuration_is_made_when_it_is_due(tmp_path: Path) -> None:
    data_dir, target = tmp_path / "data", tmp_path / "target"
    flags = (
        *("--backup-target", str(target), "--backup-interval-seconds", "1"),
        *("--backup-keep", "2"),
    )
    with life(data_dir, *flags):
        assert eventually(lambda: len(finished(target)) == 2)
        assert eventually(lambda: finished(target)[0] > "000002")
    with life(data_dir, "--backup-target", str(target)) as broker:
        # A day has not passed since the newest.
        there = finished(target)
        assert eventually(lambda: rows(data_dir) == [])
        assert broker.stop() == 0
    assert finished(target) == there


def test_a_backup_from_the_future_does_not_end_those_of_the_configuration(tmp_path: Path) -> None:
    data_dir, target = tmp_path / "data", tmp_path / "target"
    with life(data_dir):
        name = back_up(data_dir, target)["name"]
    late = name.partition("-")[0] + "-20991231T235959Z"
    manifest = read_manifest(DirectoryTarget(target), name)
    files = {path: file._replace(place=late) for path, file in manifest.files.items()}
    (target / name).rename(target / late)
    DirectoryTarget(target).publish(late, Manifest(late, manifest.about, files))
    with life(data_dir, "--backup-target", str(target)):
        assert eventually(lambda: len(finished(target)) == 2)


def test_a_target_with_backups_of_other_data_is_left_alone(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    name = back_up(data_dir, target)["name"]
    there = stored(target)
    other = tmp_path / "other"
    with life(other, "--backup-target", str(target), "--backup-keep", "1"):
        # Not due, as the newest one is of today, but none of its own either.
        assert eventually(lambda: [row["ended"] for row in rows(other)][:1] not in ([], [""]))
        start(other, target, keep=1)
        row = ended(other)
        assert [row["state"] for row in rows(other)] == ["failed", "failed"]
        assert f"{target} has backups of other data, of the broker 'harebell@" in row["problem"]
    assert stored(target) == there
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored):
        # It goes on with the data, so with its backups.
        back_up(restored, target, keep=1)
    assert name not in finished(target)


@pytest.mark.parametrize("link", ["", "files", "files/queues", "LOCK"])
def test_a_link_in_a_target_leads_a_backup_nowhere(
    tmp_path: Path, data_dir: Path, broker: RunningBroker, link: str
) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    place = target / back_up(data_dir, target)["name"] / link
    if link == "LOCK":
        place = target / link
        place.unlink()
    else:
        place.rename(elsewhere)
        (elsewhere / "letter.txt").write_text("Dear")
    place.symlink_to(elsewhere)
    there = stored(elsewhere)
    start(data_dir, target, keep=1)
    row = ended(data_dir)
    if link == "files/queues":
        # Nothing of it counts as copied before.
        assert row["state"] == "done"
        assert row["copied_files"] == row["files"]
    else:
        assert f"{place} is a symbolic link" in row["problem"]
    assert stored(elsewhere) == there
    assert link != "LOCK" or not elsewhere.exists()


def test_metrics_tell_the_age_and_size_of_the_newest_backup_and_count_failures(
    tmp_path: Path, data_dir: Path
) -> None:
    target, metrics = tmp_path / "target", free_port()

    def figures() -> dict[str, float]:
        with urlopen(f"http://127.0.0.1:{metrics}/metrics") as answer:
            lines = [line.split() for line in answer.read().decode().splitlines()]
        return {line[0]: float(line[1]) for line in lines if line[0].startswith("harebell_backup")}

    began = int(time.time())
    with life(data_dir, "--metrics-port", str(metrics)):
        none = {f"harebell_{name}": 0.0 for name in ("backup_failures_total", "backups_running")}
        assert figures() == {**none, "harebell_backups_made_total": 0.0}
        row = back_up(data_dir, target)
        start(data_dir, tmp_path / "a" / "b")
        ended(data_dir)
        found = figures()
        assert began <= found["harebell_backup_last_success_timestamp_seconds"] <= time.time()
        assert found["harebell_backup_last_duration_seconds"] > 0
        assert found["harebell_backup_last_bytes"] == row["bytes"]
        assert found["harebell_backup_last_copied_bytes"] == row["copied_bytes"]
        assert found["harebell_backups_made_total"] == found["harebell_backup_failures_total"] == 1
    with life(data_dir, "--metrics-port", str(metrics), "--backup-target", str(target)):
        # After a restart the target has the time.
        name = "harebell_backup_last_success_timestamp_seconds"
        assert eventually(lambda: figures().get(name) == found[name])


# --- restoring ------------------------------------------------------------------------------------


def test_a_damaged_backup_restores_nothing(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    name = back_up(data_dir, target)["name"]
    victim = sorted(target.rglob("*.seg"))[3]
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    for words in (("restore", target, "--data-dir", restored), ("store", "check", target)):
        done = harebell(*words)
        where = f"the checksum of {victim.relative_to(target)} is wrong"
        assert where in done.stdout + done.stderr
        assert done.returncode == (1 if words[0] == "restore" else 3)
    assert sorted(os.listdir(restored)) in ([], ["LOCK"])
    victim.unlink()
    # A pipe would be waited for.
    os.mkfifo(victim)
    done = harebell("restore", target, "--data-dir", restored)
    assert f"{victim.relative_to(target)} is missing" in done.stderr
    (target / name / "manifest").unlink()
    done = harebell("restore", target, "--data-dir", restored)
    assert f"there is no finished backup in {target}" in done.stderr
    # The next backup does not rely on what is not there.
    back_up(data_dir, target)
    assert harebell("store", "check", target).returncode == 0


def eras(directory: Path) -> dict[str, bytes]:
    """The eras of the logs of a data directory whose broker does not run."""
    with closing(sqlite3.connect(directory / "definitions.sqlite")) as link:
        return {str(row[0]): repr(row[1:]).encode() for row in link.execute("SELECT * FROM eras")}


def test_a_restored_directory_begins_a_new_history(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    link = Link.to(broker)
    arguments: dict[str, object] = {"x-queue-type": "stream"}
    declare = m.QueueDeclare(queue="history", durable=True, arguments=arguments)
    link.ask(declare, m.QueueDeclareOk)
    link.goodbye()
    fill_stream(broker)
    back_up(data_dir, target)
    assert broker.stop() == 0
    before = eras(data_dir)
    assert before
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    assert eras(restored) == before
    with life(restored, *_SEGMENT) as again:
        assert again.stop() == 0
    after = eras(restored)
    assert after.keys() == before.keys()
    assert all(after[each] != before[each] for each in before)


def fill_stream(broker: RunningBroker) -> None:
    """Publish to the stream; the message is on disk then."""
    link = Link.to(broker)
    link.ask(m.TxSelect(), m.TxSelectOk)
    link.send(Envelope("history").around(body_of(1)))
    link.ask(m.TxCommit(), m.TxCommitOk)
    link.goodbye()


def test_a_restore_leaves_a_directory_with_content_alone(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target = tmp_path / "target"
    back_up(data_dir, target)
    full = tmp_path / "full"
    full.mkdir()
    (full / "letter.txt").write_text("Dear")
    for place in (full, data_dir):
        done = harebell("restore", target, "--data-dir", place)
        assert done.returncode == 1
        assert f"{place} is not empty" in done.stderr
    assert os.listdir(full) == ["letter.txt"]
    done = harebell("restore", target, "--data-dir", tmp_path / "new", "--backup", "000009-x")
    assert "there is no finished backup '000009-x'" in done.stderr


def test_no_broker_starts_on_half_a_restore_and_the_next_restore_is_whole(
    tmp_path: Path, data_dir: Path, broker: RunningBroker
) -> None:
    target, restored = tmp_path / "target", tmp_path / "restored"
    back_up(data_dir, target)
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    # As a kill in the middle leaves it.
    (restored / "restoring").touch()
    next(restored.rglob("*.seg")).unlink()
    sentence = "has a part of a backup, as its restore did not end: run `harebell restore` again"
    assert sentence in harebell("serve", "--data-dir", restored, "--port", 0).stderr
    assert sentence in harebell("store", "check", restored).stderr
    assert harebell("restore", target, "--data-dir", restored).returncode == 0
    with life(restored, *_SEGMENT) as again:
        assert purge(again) == 80
