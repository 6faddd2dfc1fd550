"""`harebell store copy`: a store goes to PostgreSQL and back, or stays as it is."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.client.blocking import connect
from harebell.cluster.postgresql import store_copy
from harebell.cluster.postgresql.database import Database
from harebell.cluster.postgresql.log_reader import LogReader
from harebell.cluster.postgresql.tables import Tables
from harebell.store.journal.replaying import Replica
from tests.patience import eventually
from tests.postgresql.cluster import Member
from tests.postgresql.servers import PostgresServer
from tests.running import RunningBroker, command, environment, running_broker

MESSAGES = 200
_KILLS = 3
_LATEST_SECONDS = 0.01
"""After the first sign of a copy it is killed within this time."""
_BEGUN = (
    "SELECT 1 FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND datname = current_database()"
)
_OF_THE_LOOK = ("LOCK", "definitions.sqlite-shm", "definitions.sqlite-wal")
"""What a look into a directory leaves behind when it is killed; nothing is in it."""
_SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname = 'harebell'"


def _copy(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "store", "copy", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
        check=False,
    )


def _filled(directory: Path) -> None:
    with running_broker("--data-dir", str(directory)) as broker:
        _fill(broker)


def _fill(broker: RunningBroker) -> None:
    with connect(broker.url) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue("jobs", durable=True)
        channel.declare_queue("events", durable=True, arguments={"x-queue-type": "stream"})
        for number in range(MESSAGES):
            body = b"%06d" % number * 500
            channel.publish(body, routing_key="jobs", delivery_mode=2)
            channel.publish(body, routing_key="events", delivery_mode=2)


def _bodies(url: str) -> list[bytes]:
    with connect(url) as connection, connection.channel() as channel:
        found = [channel.get("jobs", no_ack=False) for _ in range(MESSAGES + 1)]
        assert channel.declare_queue("events", passive=True).message_count == MESSAGES
        return [bytes(each.body)[:6] for each in found if each is not None]


def _check(directory: Path) -> None:
    checked = subprocess.run(
        [command(), "store", "check", str(directory)], capture_output=True, text=True, check=True
    )
    assert "no damage" in checked.stdout


def test_a_store_goes_to_postgresql_and_back(
    postgresql: PostgresServer, database: str, tmp_path: Path
) -> None:
    url = postgresql.url(database)
    first, back = tmp_path / "first", tmp_path / "back"
    _filled(first)
    done = _copy(first, url)
    assert done.returncode == 0, done.stderr
    assert "copied and compared" in done.stdout
    wanted = [b"%06d" % number for number in range(MESSAGES)]
    with Member(url, "one") as one:
        one.wait("running")
        assert _bodies(one.amqp) == wanted
        refused = _copy(url, back)
        assert (refused.returncode, "stop it first" in refused.stderr) == (1, True), refused.stderr
        assert not back.exists()
        one.stop()
    done = _copy(url, back)
    assert done.returncode == 0, done.stderr
    _check(back)
    with running_broker("--data-dir", str(back)) as broker:
        assert _bodies(broker.url) == wanted
    # A target that has something is left as it is.
    for source, target in ((first, url), (url, back)):
        refused = _copy(source, target)
        assert refused.returncode == 1
        assert "has a store already" in refused.stderr or "is not empty" in refused.stderr


def test_a_copy_that_is_cut_leaves_nothing(
    postgresql: PostgresServer, database: str, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    _filled(first)
    # It fails in the middle: the kernel refuses to read this file.
    segment = next((first / "queues").rglob("*.seg"))
    broken = segment.with_name("broken.seg")
    broken.symlink_to("/proc/self/mem")
    done = _copy(first, postgresql.url(database))
    assert done.returncode == 1, done.stdout
    assert postgresql.execute(_SCHEMAS, database) == [(0,)]
    broken.unlink()
    assert _copy(first, postgresql.url(database)).returncode == 0


def test_a_copy_that_differs_is_found_in_both_directions(
    postgresql: PostgresServer, database: str, tmp_path: Path
) -> None:
    first, back = tmp_path / "first", tmp_path / "back"
    _filled(first)
    back.mkdir()
    tables = Tables("harebell")
    place = Database(postgresql.url(database), "harebell", 3_000, store_copy.COPIER, "fsync")
    with place.connect() as link:
        tables.make(link)
        image = store_copy._image_of(first)
        store_copy._append_all(link, tables, first, image)
        store_copy._check_rows(link, tables, first, image)
        with pytest.raises(StoreError, match="definitions in PostgreSQL are not those"):
            store_copy._check_rows(link, tables, first, image + b"x")
        segment = next((first / "queues").rglob("*.seg"))
        with segment.open("r+b") as file:
            file.write(b"x")
        with pytest.raises(StoreError, match=f"the copy differs from .*{segment.name}"):
            store_copy._check_rows(link, tables, first, image)
        replica = Replica(str(back), OsFiles(str(back)))
        damaged: list[object] = []
        reader = LogReader(tables, replica, damaged.append)
        reader.follow(link)
        replica.close()
    store_copy._check_files(back, reader)
    segment = next((back / "queues").rglob("*.seg"))
    with segment.open("ab") as file:
        file.write(b"x")
    with pytest.raises(StoreError, match=f"the copy differs from the log: .*{segment.name}"):
        store_copy._check_files(back, reader)


def _killed(has_begun: Callable[[], object], rng: Random, *arguments: object) -> bool:
    """Begin a copy, and kill it in the middle.

    Returns:
        Whether there was time: it may have ended before.
    """
    with subprocess.Popen(
        [command(), "store", "copy", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(),
    ) as process:
        assert eventually(lambda: has_begun() or process.poll() is not None)
        time.sleep(rng.uniform(0, _LATEST_SECONDS))
        process.kill()
        assert process.wait() <= 0
        return process.returncode < 0


def _sums(root: Path) -> dict[str, str]:
    """The checksum of each file of a data directory."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file() and path.name not in _OF_THE_LOOK
    }


def test_a_copy_that_is_killed_leaves_no_store_and_can_be_made_again(
    postgresql: PostgresServer, database: str, tmp_path: Path, seed: int
) -> None:
    url, rng = postgresql.url(database), Random(seed)
    first, back = tmp_path / "first", tmp_path / "back"
    draft = back.with_name("back.copying")
    _filled(first)
    before = _sums(first)
    with postgresql.connect(database) as looking:
        kills = 0
        while kills < _KILLS:
            killed = _killed(lambda: looking.execute(_BEGUN.encode()).fetchone(), rng, first, url)
            assert eventually(lambda: not looking.execute(_BEGUN.encode()).fetchone())
            assert _sums(first) == before
            if looking.execute(_SCHEMAS.encode()).fetchone() == (0,):
                assert killed, "it has copied nothing"
                kills += 1
                continue
            # The kill came after the last step, the commit: then the copy is whole.
            assert _copy(url, back).returncode == 0
            _check(back)
            shutil.rmtree(back)
            looking.execute("DROP SCHEMA harebell CASCADE")
        assert _copy(first, url).returncode == 0
        rows = "SELECT number, epoch, md5(content) FROM harebell.log_0000000001 ORDER BY number"
        stored = looking.execute(rows.encode()).fetchall()
        kills = 0
        while kills < _KILLS:
            kills += _killed(lambda: draft.exists() and any(draft.iterdir()), rng, url, back)
            if back.exists():
                # The kill came after the last step, the rename: then the copy is whole.
                _check(back)
                shutil.rmtree(back)
            assert looking.execute(rows.encode()).fetchall() == stored
    done = _copy(url, back)
    assert done.returncode == 0, done.stderr
    assert not draft.exists()
    with running_broker("--data-dir", str(back)) as broker:
        assert _bodies(broker.url) == [b"%06d" % number for number in range(MESSAGES)]


@pytest.mark.parametrize("running", [True, False])
def test_a_directory_that_is_in_use_or_was_not_closed_is_refused(
    postgresql: PostgresServer, database: str, tmp_path: Path, running: bool
) -> None:
    with running_broker("--data-dir", str(tmp_path / "d")) as broker:
        if not running:
            broker.kill()
        done = _copy(tmp_path / "d", postgresql.url(database))
    assert done.returncode == 1
    wanted = "another broker runs" if running else "not stopped in good order"
    assert wanted in done.stderr
