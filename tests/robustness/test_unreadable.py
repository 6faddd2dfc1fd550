"""Reads and syncs that the disk refuses at the start: said as what they are, with their code."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from harebell.client.blocking import connect
from harebell.server.limits import EXIT_DISK
from harebell.store.definitions import NAME
from tests.robustness import strace
from tests.robustness.lives import life, segments
from tests.running import DidNotStart, RunningBroker, command


def refused(directory: Path, prefix: Sequence[str]) -> DidNotStart:
    with pytest.raises(DidNotStart) as caught:
        RunningBroker("--data-dir", str(directory), prefix=prefix)
    return caught.value


def reading(file: Path, number: int) -> list[str]:
    """A prefix that has the N-th read of a file fail, and all after it."""
    return [*strace.fail_at("pread64", "EIO", number), "-P", str(file)]


def filled(directory: Path) -> Path:
    """A directory with a queue that has messages; the file of its log."""
    with life(directory) as broker, connect(broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("jobs", durable=True)
        for number in range(10):
            channel.publish(b"body %d" % number, routing_key="jobs", delivery_mode=2)
    return segments(directory)[0]


def files(directory: Path) -> dict[Path, bytes]:
    """All of a directory but what SQLite and the lock leave there to look."""
    return {
        path: path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != "LOCK" and "sqlite-" not in path.name
    }


def looked_into(directory: Path, action: str, prefix: Sequence[str]) -> tuple[int, str]:
    """The exit code and all output of `harebell store`."""
    given = [*prefix, command(), "store", action, str(directory)]
    done = subprocess.run(given, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 9])
def test_definitions_that_cannot_be_read_are_not_called_damaged(
    tmp_path: Path, number: int
) -> None:
    directory = tmp_path / "data"
    with life(directory):
        pass
    error = refused(directory, reading(directory / NAME, number))
    assert error.code == EXIT_DISK, error
    assert "damaged:" not in str(error)
    assert f"the disk cannot read {directory / NAME}" in str(error)
    with life(directory) as broker:
        assert "Traceback" not in broker.log


@pytest.mark.parametrize("number", [1, 3])
def test_a_log_that_cannot_be_read_is_not_called_damaged(tmp_path: Path, number: int) -> None:
    directory = tmp_path / "data"
    log = filled(directory)
    error = refused(directory, reading(log, number))
    assert error.code == EXIT_DISK, error
    assert f"the disk cannot read {log} (Input/output error at byte" in str(error)
    assert not (directory / "quarantine").exists()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that no broker uses; no test changes it."""
    directory = tmp_path_factory.mktemp("stopped") / "data"
    log = filled(directory)
    # A repair would cut this off.
    torn = log.parent.parent / ("f" * 32) / log.name
    torn.parent.mkdir()
    torn.write_bytes(log.read_bytes()[:-9])
    return directory


# Who only looks reads the definitions with three calls.
@pytest.mark.parametrize("action", ["check", "dump", "repair"])
@pytest.mark.parametrize(
    ("definitions", "number"), [(True, 1), (True, 2), (False, 1), (False, 2), (False, 4)]
)
def test_blocks_that_the_disk_cannot_read_are_neither_damaged_nor_repaired(
    stopped: Path, action: str, definitions: bool, number: int
) -> None:
    directory, log = stopped, segments(stopped)[0]
    before = files(directory)
    file = directory / NAME if definitions else log
    code, said = looked_into(directory, action, reading(file, number))
    assert code == EXIT_DISK, said
    assert f"the disk cannot read {file} (Input/output error at byte" in said
    assert "no damage" not in said
    assert f"damaged: {file}" not in said
    assert files(directory) == before


def test_a_directory_above_that_is_not_synced_ends_every_start(tmp_path: Path) -> None:
    directory = tmp_path / "above" / "data"
    failing = strace.fail_at("fsync", "EIO", 1)
    for _ in range(2):
        error = refused(directory, failing)
        assert error.code == EXIT_DISK, error
        assert "the parent of the data directory" in str(error)
        assert "Traceback" not in str(error)
    with life(directory) as broker:
        assert "Traceback" not in broker.log
