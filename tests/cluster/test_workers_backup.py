"""Backups of several workers: one target has all stores, and a restore is what one broker was."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from harebell.client.blocking import connect
from harebell.management.control.client import ControlError
from tests.cluster.workers import EVERYTHING, Workers, publish, take_all, workers
from tests.patience import eventually
from tests.ports import free_port
from tests.robustness.backing_up import back_up, ended, finished, harebell, rows, start, stored
from tests.running import DidNotStart, RunningBroker
from tests.unit.management.http.asking import Api

BODY = bytes(1_000)
SLOW_BYTES = 20_000
"""Bytes per second of a backup that is to be met under way."""
SMALL_SEGMENTS = ("--segment-bytes", "65536")


def _restored(target: Path, home: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    done = harebell("restore", target, "--data-dir", home, *flags)
    assert done.returncode == 0, done.stderr
    return done


def test_a_restored_backup_has_both_stores_and_is_incremental(tmp_path: Path) -> None:
    target, home = tmp_path / "target", tmp_path / "restored"
    with workers() as found:
        found.ask("users.add", name="alice", password="secret")
        found.ask("permissions.set", user="alice", vhost="far", **EVERYTHING)
        publish(found.amqp(), b"near")
        publish(found.amqp("far"), b"distant")
        # Asked of the other worker: that of store 1 makes it.
        first = found.ask("backups.start", 2, target=str(target))
        assert first["target"] == str(target)
        assert ended(found.data_dir(2))["state"] == "done"
        publish(found.amqp("far"), b"later", queue="more")
        second = back_up(found.data_dir(1), target)
        # The definitions of both stores, and the log of the new queue.
        assert second["copied_files"] == 3 < second["files"]
        assert rows(found.data_dir(2)) == rows(found.data_dir(1))
        publish(found.amqp("far"), b"after", queue="more")
    check = harebell("store", "check", target)
    assert check.returncode == 0, check.stderr
    assert "store 1:" in check.stdout
    assert "store 2:" in check.stdout
    dump = harebell("store", "dump", target, "--queue", "more").stdout
    assert "later" in dump
    assert "after" not in dump
    assert "has 2 stores: start the broker with --workers 2" in _restored(target, home).stdout
    with pytest.raises(DidNotStart, match="has 2 stores: set workers = 2"):
        RunningBroker("--data-dir", str(home))
    with workers("--data-dir", str(home)) as again:
        assert take_all(again.amqp()) == [b"near"]
        assert take_all(again.amqp("far", "alice:secret")) == [b"distant"]
        assert take_all(again.amqp("far"), "more") == [b"later"]
    old = tmp_path / "old"
    _restored(target, old, "--backup", finished(target)[0])
    with workers("--data-dir", str(old)) as again:
        assert {row["name"] for row in again.ask("queues.list", 2, vhost="far")} == {"jobs"}


def test_what_is_confirmed_before_a_backup_is_in_it(tmp_path: Path) -> None:
    target, home = tmp_path / "target", tmp_path / "restored"
    confirmed: dict[str, list[bytes]] = {"%2F": [], "far": []}
    over = threading.Event()
    with workers(*SMALL_SEGMENTS) as found:

        def fill(vhost: str) -> None:
            with (
                connect(found.amqp(vhost)) as connection,
                connection.channel(confirms=True) as channel,
            ):
                channel.declare_queue("jobs", durable=True)
                number = 0
                while not over.is_set():
                    number += 1
                    body = b"%06d" % number
                    channel.publish(body + BODY, routing_key="jobs", delivery_mode=2)
                    confirmed[vhost].append(body)

        threads = [threading.Thread(target=fill, args=(vhost,), daemon=True) for vhost in confirmed]
        for each in threads:
            each.start()
        try:
            assert eventually(lambda: all(len(each) > 100 for each in confirmed.values()))
            for _ in range(3):
                before = {vhost: list(bodies) for vhost, bodies in confirmed.items()}
                back_up(found.data_dir(1), target)
        finally:
            over.set()
            for each in threads:
                each.join()
    _restored(target, home)
    with workers("--data-dir", str(home)) as again:
        for vhost, bodies in before.items():
            kept = [body[:6] for body in take_all(again.amqp(vhost))]
            assert kept[: len(bodies)] == bodies


def _filled(found: Workers) -> list[bytes]:
    """Some segments in store 2."""
    bodies = [b"%06d" % number for number in range(400)]
    with (
        connect(found.amqp("far")) as connection,
        connection.channel(confirms=True) as channel,
    ):
        channel.declare_queue("jobs", durable=True)
        for body in bodies:
            channel.publish(body + BODY, routing_key="jobs", delivery_mode=2)
    return bodies


def _begun(found: Workers, target: Path) -> None:
    """Begin a slow backup, and wait until it has the cuts of both stores."""
    start(found.data_dir(1), target, rate=SLOW_BYTES)
    image = found.data_dir(2) / "kept" / "definitions.sqlite"
    assert eventually(lambda: image.exists() and rows(found.data_dir(1))[-1]["copied_files"] > 1)


def _no_rest(found: Workers) -> bool:
    return eventually(lambda: not any((found.data_dir(2) / "kept").iterdir()))


def test_segments_that_a_client_empties_meanwhile_are_set_aside(tmp_path: Path) -> None:
    target, home = tmp_path / "target", tmp_path / "restored"
    with workers(*SMALL_SEGMENTS) as found:
        bodies = _filled(found)
        _begun(found, target)
        assert len(take_all(found.amqp("far"))) == len(bodies)
        found.ask("queues.delete", vhost="far", name="jobs")
        assert ended(found.data_dir(1))["state"] == "done"
        assert _no_rest(found)
    _restored(target, home)
    with workers("--data-dir", str(home)) as again:
        assert [body[:6] for body in take_all(again.amqp("far"))] == bodies


@pytest.mark.parametrize("store", [1, 2])
def test_a_worker_that_is_killed_meanwhile_leaves_no_half_of_a_backup(
    tmp_path: Path, store: int
) -> None:
    target, home = tmp_path / "target", tmp_path / "restored"
    with workers(*SMALL_SEGMENTS) as found:
        bodies = _filled(found)
        _begun(found, target)
        found.kill(store)
        if store == 2:
            row = ended(found.data_dir(1))
            assert row["state"] == "failed"
            assert "store 2 cannot be backed up, because its process has ended" in row["problem"]
            assert stored(target) == set()
        assert finished(target) == []
        assert eventually(lambda: _made(found, target))
        assert _no_rest(found)
    _restored(target, home)
    with workers("--data-dir", str(home)) as again:
        assert [body[:6] for body in take_all(again.amqp("far"))] == bodies


def _made(found: Workers, target: Path) -> bool:
    """Whether a backup can be made; a worker that starts again is away for a moment."""
    start(found.data_dir(1), target)
    return bool(ended(found.data_dir(1))["state"] == "done")


def test_a_worker_that_hangs_fails_the_backup_in_time(tmp_path: Path) -> None:
    with workers(backup_timeout_seconds=1) as found:
        publish(found.amqp("far"), b"kept")
        pid = found.pid(2)
        os.kill(pid, signal.SIGSTOP)
        try:
            start(found.data_dir(1), tmp_path / "target")
            row = ended(found.data_dir(1))
        finally:
            os.kill(pid, signal.SIGCONT)
        assert row["state"] == "failed"
        assert "store" in row["problem"]
        assert eventually(lambda: _made(found, tmp_path / "target"))


def test_damage_of_any_store_in_a_backup_is_found(tmp_path: Path) -> None:
    target = tmp_path / "target"
    with workers() as found:
        publish(found.amqp("far"), b"distant")
        back_up(found.data_dir(1), target)
    segment = next(target.glob("*/files/stores/2/queues/*/*.seg"))
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    check = harebell("store", "check", target)
    assert check.returncode == 3
    assert "store 2:" in check.stdout.partition("damaged: ")[0]
    done = harebell("restore", target, "--data-dir", tmp_path / "restored")
    assert done.returncode
    assert "the checksum of" in done.stderr
    assert not (tmp_path / "restored" / "stores").exists()


def test_backups_by_themselves_are_made_by_one_worker_for_all(tmp_path: Path) -> None:
    target, port = tmp_path / "target", free_port()
    with workers(backup_target=target, backup_interval_seconds=86_400, management_port=port) as one:
        assert eventually(lambda: finished(target) != [])
        assert len(list(target.glob("*/files/stores/2/definitions.sqlite"))) == 1
        assert ended(one.data_dir(2))["state"] == "done"
        assert len(one.ask("backups.list", 2)) == 1
        # A user without the tag learns nothing of it, whichever worker answers.
        one.ask("users.add", name="bob", password="secret", tags=["monitoring"])
        api = Api(port)
        for _ in range(4):
            for method, body in (("POST", {"target": str(tmp_path / "mine")}), ("DELETE", None)):
                assert api.ask(method, "/api/backups", body, user="bob:secret").status == 401
            assert api.ask("GET", "/api/backups", user="bob:secret").status == 401
        assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("target", "reason"),
    [("", "must not be empty"), ("relative", "absolute")],
)
def test_wrong_targets_are_refused(target: str, reason: str) -> None:
    with workers() as found:
        for store in (1, 2):
            with pytest.raises(ControlError, match=reason):
                found.ask("backups.start", store, target=target)
