"""`harebell store` on the data directory of a real broker, whole and with planted damage."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from harebell.cli.verb import DAMAGED, FAILED
from harebell.client.blocking import connect
from tests.cli.conftest import error_of, run_harebell
from tests.patience import eventually
from tests.robustness.lives import kill, life
from tests.running import RunningBroker, asked, command, running_broker

COUNT = 20


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory that a broker closed: queues with many messages, one, and none."""
    directory = tmp_path_factory.mktemp("store") / "data"
    with running_broker("--data-dir", str(directory)) as broker:
        _fill(broker)
        assert broker.stop() == 0
    return directory


def _fill(broker: RunningBroker) -> None:
    with connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("jobs", durable=True)
        channel.declare_queue("none", durable=True)
        channel.declare_queue("few", durable=True)
        channel.publish(b"alone", routing_key="few", delivery_mode=2)
        for number in range(COUNT):
            headers = {"number": number}
            body = b"body %d" % number if number else b"\xff"
            channel.publish(body, routing_key="jobs", headers=headers, delivery_mode=2)
        for _ in range(3):
            message = channel.get("jobs")
            assert message is not None
            message.ack() if message.body == b"\xff" else message.nack(requeue=True)


@pytest.fixture
def data(closed: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    copy = tmp_path / "data"
    shutil.copytree(closed, copy, ignore=shutil.ignore_patterns("control.sock"))
    return copy


def _segment(data: Path) -> Path:
    (found,) = (path for path in data.glob("queues/*/*.seg") if path.stat().st_size > 500)
    return found


def _state(data: Path) -> dict[str, tuple[bytes, int]]:
    """All files of a directory, with the times of their last changes."""
    return {
        str(path.relative_to(data)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(data.rglob("*"))
        if path.is_file()
    }


def test_records_of_jobs_are_no_messages_that_are_dumped(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_broker("--data-dir", str(data)) as broker:
        with connect(broker.address()) as connection:
            channel = connection.channel()
            for name in ("jobs", "done"):
                channel.declare_queue(name, durable=True)
            channel.publish(b"moved", routing_key="jobs", persistent=True)
        moved = asked(broker, "queues", "move", "jobs", "true", "--to-queue", "done")
        assert moved.returncode == 0, moved.stderr
        assert eventually(lambda: " done " in asked(broker, "jobs", "list").stdout)
        assert broker.stop() == 0
    rows = run_harebell("store", "check", str(data)).stdout.decode().splitlines()
    assert ["-", "jobs", "jobs", "1"] in [row.split()[:4] for row in rows]
    dumped = run_harebell("store", "dump", str(data))
    assert dumped.returncode == 0, dumped.stderr
    (message,) = map(json.loads, dumped.stdout.splitlines())
    assert (message["queue"], message["body"]) == ("done", "moved")


def _flip(data: Path) -> None:
    """Damage one bit of one message."""
    path = _segment(data)
    octets = bytearray(path.read_bytes())
    octets[octets.index(b"body 7")] ^= 0x10
    path.write_bytes(octets)


def test_a_whole_directory_is_described_and_left_alone(data: Path) -> None:
    before = _state(data)
    result = run_harebell("store", "check", str(data))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.decode().splitlines()
    assert lines[0].split()[:4] == ["vhost", "queue", "kind", "messages"]
    rows = {line.split()[1]: line.split() for line in lines[1:4]}
    assert rows["jobs"][:5] == ["/", "jobs", "classic", str(COUNT - 1), "1"]
    assert rows["none"][:5] == ["/", "none", "classic", "0", "0"]
    assert rows["few"][:5] == ["/", "few", "classic", "1", "0"]
    assert lines[-1] == "no damage"
    assert _state(data) == before


def test_the_messages_of_a_queue_are_dumped_as_json(data: Path) -> None:
    before = _state(data)
    result = run_harebell("store", "dump", str(data), "--queue", "jobs")
    assert result.returncode == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["headers"]["number"] for each in found] == list(range(1, COUNT))
    assert found[0]["body"] == "body 1"
    assert found[0]["redelivered"]
    assert not found[-1]["redelivered"]
    assert {each["queue"] for each in found} == {"jobs"}
    assert found[0]["properties"]["delivery_mode"] == 2
    assert _state(data) == before


def test_damage_is_reported_and_a_check_changes_nothing(data: Path) -> None:
    _flip(data)
    before = _state(data)
    result = run_harebell("store", "check", str(data))
    assert result.returncode == DAMAGED
    said = result.stdout.decode()
    assert "damaged: queue 'jobs': " in said
    assert "would go to quarantine/" in said
    assert _state(data) == before


def test_a_repair_keeps_a_copy_of_what_is_damaged_and_the_rest(data: Path) -> None:
    _flip(data)
    result = run_harebell("store", "repair", str(data))
    assert result.returncode == DAMAGED
    (copy,) = (data / "quarantine").iterdir()
    assert f"moved to quarantine/{copy.name}" in result.stdout.decode()
    assert copy.stat().st_size > 0
    dumped = run_harebell("store", "dump", str(data), "--queue", "jobs")
    numbers = [json.loads(line)["headers"]["number"] for line in dumped.stdout.splitlines()]
    assert numbers == [number for number in range(1, COUNT) if number != 7]


def test_a_broker_starts_on_what_was_repaired_and_delivers_the_rest(data: Path) -> None:
    _flip(data)
    run_harebell("store", "repair", str(data))
    with running_broker("--data-dir", str(data)) as broker, connect(broker.address()) as link:
        channel = link.channel()
        bodies = []
        while (message := channel.get("jobs")) is not None:
            bodies.append(message.body)
            message.ack()
    assert bodies == [b"body %d" % number for number in range(1, COUNT) if number != 7]


def test_a_broker_tells_of_damage_in_its_status(data: Path) -> None:
    with running_broker("--data-dir", str(data)):
        assert _damage(data) == (0, "", 0)
    _flip(data)
    with running_broker("--data-dir", str(data)) as broker:
        reports, last, kept = _damage(data)
        assert (reports, kept) == (1, 1)
        assert "are damaged and skipped" in last
        assert eventually(lambda: last in broker.log)
    with running_broker("--data-dir", str(data)):
        assert _damage(data)[2] == 1, "what is in quarantine stays"


def _damage(data: Path) -> tuple[int, str, int]:
    """What a running broker tells of damage."""
    shown = json.loads(run_harebell("status", "--data-dir", str(data), "--json").stdout)
    return shown["damage_reports"], shown["damage_last"], shown["quarantined_files"]


def test_a_torn_end_is_cut_by_a_repair_alone(data: Path) -> None:
    path = _segment(data)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"\x77" * 100)
    run_harebell("store", "check", str(data))
    assert path.stat().st_size == size + 100
    run_harebell("store", "repair", str(data))
    assert path.stat().st_size == size
    (copy,) = (data / "quarantine").iterdir()
    assert copy.read_bytes() == b"\x77" * 100


def test_a_segment_of_another_log_is_found(data: Path) -> None:
    path = _segment(data)
    (other,) = (each for each in (data / "queues").iterdir() if each != path.parent)
    shutil.copy(path, other / path.name)
    result = run_harebell("store", "check", str(data))
    assert result.returncode == DAMAGED
    assert "damaged: queue 'few': " in result.stdout.decode()


@pytest.mark.parametrize("directory_too", [False, True])
def test_files_that_are_missing_are_told_by_a_check_and_by_the_broker(
    data: Path, directory_too: bool
) -> None:
    segment = _segment(data)
    if directory_too:
        shutil.rmtree(segment.parent)
    else:
        segment.unlink()
    told = f"queues/{segment.parent.name}: 1 of its segments are missing"
    named = f"queue 'jobs' in vhost '/': {told}"
    result = run_harebell("store", "check", str(data))
    assert result.returncode == DAMAGED
    assert f"damaged: queue 'jobs': {told}" in result.stdout.decode()
    with running_broker("--data-dir", str(data)) as broker:
        # Another thread writes the log.
        assert eventually(lambda: named in broker.log)
        assert broker.stop() == 0
    assert run_harebell("store", "check", str(data)).returncode == 0


def test_without_definitions_the_messages_can_still_be_read(data: Path) -> None:
    (data / "definitions.sqlite").write_bytes(b"not a database, but long enough" * 40)
    result = run_harebell("store", "check", str(data))
    assert result.returncode == DAMAGED
    assert "(no queue)" in result.stdout.decode()
    assert "definitions.sqlite" in result.stdout.decode()
    dumped = run_harebell("store", "dump", str(data))
    assert len(dumped.stdout.splitlines()) == COUNT


@pytest.mark.parametrize("action", ["check", "dump", "repair"])
def test_a_store_of_a_newer_version_is_left_alone(data: Path, action: str) -> None:
    link = sqlite3.connect(data / "definitions.sqlite")
    link.execute("UPDATE meta SET version = 99")
    link.commit()
    link.close()
    # To this version it would be damage, and be mended.
    _flip(data)
    before = _state(data)
    result = run_harebell("store", action, str(data))
    assert result.returncode == FAILED
    assert "has format 99" in error_of(result)
    assert _state(data) == before


def test_a_directory_in_use_is_refused() -> None:
    with running_broker() as broker:
        result = run_harebell("store", "check", str(broker.data_dir))
        assert result.returncode == FAILED
        assert "another broker runs on the data directory" in error_of(result)


_SEALED = (
    'mount -t tmpfs none "$4" && cp -a "$2/." "$4" && mount -o remount,ro "$4" '
    '&& exec "$1" store "$3" "$4"'
)


def _sealed(data: Path, action: str) -> subprocess.CompletedProcess[str]:
    """Run `harebell store` where the directory is on a file system that is only read."""
    sealed = data.parent / "sealed"
    sealed.mkdir(exist_ok=True)
    words = [command(), str(data), action, str(sealed)]
    script = ["unshare", "-rm", "sh", "-c", _SEALED, "sh", *words]
    return subprocess.run(script, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("gone", [(), ("LOCK",)])
def test_a_store_on_a_read_only_file_system_can_be_read(data: Path, gone: tuple[str, ...]) -> None:
    for name in gone:
        (data / name).unlink()
    checked = _sealed(data, "check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "no damage" in checked.stdout
    assert len(_sealed(data, "dump").stdout.splitlines()) == COUNT
    repaired = _sealed(data, "repair")
    assert repaired.returncode == FAILED
    assert "Read-only file system" in repaired.stderr


def test_the_store_of_a_killed_broker_can_be_read_on_a_read_only_file_system(
    tmp_path: Path,
) -> None:
    with life(tmp_path / "data") as broker:
        _fill(broker)
        kill(broker)
    checked = _sealed(tmp_path / "data", "check")
    assert (checked.returncode, checked.stderr) == (0, "")
    # The message that was acknowledged last may be there again.
    dumped = _sealed(tmp_path / "data", "dump").stdout.splitlines()
    assert len(dumped) in (COUNT, COUNT + 1)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("check", "/nowhere/at/all"), FAILED, "is no data directory of Harebell"),
        (("chekc", "x"), 2, "'chekc' is not one of"),
    ],
)
def test_an_impossible_request_is_one_sentence(
    arguments: tuple[str, ...], code: int, words: str
) -> None:
    result = run_harebell("store", *arguments)
    assert result.returncode == code
    assert words in error_of(result)


def test_a_queue_that_is_not_there_is_a_failure(data: Path) -> None:
    result = run_harebell("store", "dump", str(data), "--queue", "jbos")
    assert result.returncode == FAILED
    assert "there is no queue 'jbos'" in error_of(result)


def test_a_store_in_postgresql_has_to_be_copied_before_it_is_repaired() -> None:
    result = run_harebell("store", "repair", "postgresql://ann:secret@localhost/d")
    said = error_of(result)
    assert "copy the store into one first" in said
    assert "secret" not in said


def _orphan(data: Path, queue: str) -> str:
    """Take away the row of a queue; returns the identity of its log."""
    with sqlite3.connect(data / "definitions.sqlite") as link:
        (identity,) = link.execute(
            "SELECT identity FROM queues WHERE name = ?", (queue,)
        ).fetchone()
        link.execute("DELETE FROM queues WHERE name = ?", (queue,))
    link.close()
    return str(identity)


def _said(data: Path, identity: str) -> list[str]:
    """What a broker says of a log when it starts."""
    with running_broker("--data-dir", str(data)) as broker:
        assert broker.stop() == 0
        return [line for line in broker.log.splitlines() if identity in line]


def test_a_log_without_a_queue_is_damage_and_can_be_adopted(data: Path) -> None:
    identity = _orphan(data, "jobs")
    sentence = f"{COUNT - 1} messages belong to no queue"
    checked = run_harebell("store", "check", str(data))
    assert checked.returncode == DAMAGED
    assert f"damaged: logs {identity}: {sentence}" in checked.stdout.decode()
    (line,) = _said(data, identity)
    assert sentence in line
    assert "harebell store adopt" in line
    assert run_harebell("store", "check", str(data)).returncode == DAMAGED
    adopted = run_harebell("store", "adopt", str(data), identity, "--queue", "found")
    assert adopted.returncode == 0, adopted
    assert adopted.stdout.decode() == f"queue 'found' in vhost '/' has {COUNT - 1} messages now\n"
    assert run_harebell("store", "check", str(data)).returncode == 0
    with running_broker("--data-dir", str(data)) as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        assert channel.declare_queue("found", passive=True).message_count == COUNT - 1
        message = channel.get("found", no_ack=True)
        assert message is not None
        assert message.body.startswith(b"body ")
        assert "belong to no queue" not in broker.log


def test_a_log_of_priorities_is_adopted_as_a_priority_queue(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_broker("--data-dir", str(data)) as broker:
        with connect(broker.address()) as connection:
            channel = connection.channel()
            channel.declare_queue("jobs", durable=True, arguments={"x-max-priority": 4})
            for priority in (1, 4, 2):
                channel.publish(
                    b"%d" % priority, routing_key="jobs", priority=priority, delivery_mode=2
                )
        assert broker.stop() == 0
    identity = _orphan(data, "jobs")
    adopted = run_harebell("store", "adopt", str(data), identity, "--queue", "found")
    assert adopted.returncode == 0, adopted
    with running_broker("--data-dir", str(data)) as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        got = [channel.get("found", no_ack=True) for _ in range(3)]
        assert [each and each.body for each in got] == [b"4", b"2", b"1"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("0" * 31 + "9", "--queue", "found"), "there is no log"),
        (("{identity}",), "give --queue NAME"),
        (("{identity}", "--queue", "few"), "there is a queue 'few' in vhost '/' already"),
        (("{identity}", "--queue", "amq.found"), "cannot be the name of a queue"),
        (("{identity}", "--queue", "n" * 256), "cannot be the name of a queue"),
        (("{identity}", "--queue", "found", "--vhost", "v"), "there is no vhost 'v'"),
    ],
    ids=str,
)
def test_a_log_that_cannot_be_adopted_is_refused_with_the_reason(
    data: Path, words: tuple[str, ...], reason: str
) -> None:
    identity = _orphan(data, "jobs")
    given = [word.format(identity=identity) for word in words]
    refused = run_harebell("store", "adopt", str(data), *given)
    assert refused.returncode in (1, 2)
    assert reason in refused.stderr.decode()
    assert "Traceback" not in refused.stderr.decode()
    checked = run_harebell("store", "check", str(data))
    assert f"damaged: logs {identity}" in checked.stdout.decode()
