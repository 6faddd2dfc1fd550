"""`harebell store copy`: a store goes to PostgreSQL and back, or stays as it is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harebell.client.blocking import connect
from tests.postgresql.cluster import Member
from tests.postgresql.servers import PostgresServer
from tests.running import RunningBroker, command, environment, running_broker

MESSAGES = 200


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
    checked = subprocess.run(
        [command(), "store", "check", str(back)], capture_output=True, text=True, check=True
    )
    assert "no damage" in checked.stdout
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
    found = "SELECT count(*) FROM pg_namespace WHERE nspname = 'harebell'"
    assert postgresql.execute(found, database) == [(0,)]
    broken.unlink()
    assert _copy(first, postgresql.url(database)).returncode == 0


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
