"""The lock and record of the resident Spark server, while others start, serve and end."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harebell.spark.runtime.session_server import ServerEntry, SessionServer, find_server
from tests.patience import SECONDS


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    directory = tmp_path / "harebell"
    directory.mkdir(mode=0o700)
    return directory


@contextmanager
def locked(directory: Path, kind: int) -> Iterator[None]:
    descriptor = os.open(directory / "spark.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, kind)
    try:
        yield
    finally:
        os.close(descriptor)


class Entering:
    """A thread that becomes the server."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.code: object = None
        self.entered = threading.Event()
        self._thread = threading.Thread(target=self._enter, daemon=True)
        self._thread.start()

    def _enter(self) -> None:
        try:
            self.entry = ServerEntry(self.stopping)
            self.entered.set()
        except SystemExit as refused:
            self.code = refused.code

    def join(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def test_a_server_waits_for_one_that_ends_and_takes_its_place(runtime: Path) -> None:
    with locked(runtime, fcntl.LOCK_EX):
        assert find_server() is None
        entering = Entering()
        assert not entering.entered.wait(0.5)
    entering.join()
    assert entering.code is None
    made = SessionServer(os.getpid(), 1, "token")
    entering.entry.publish(made)
    assert find_server() == made


def test_a_server_gives_way_to_one_that_was_starting_and_serves_now(runtime: Path) -> None:
    with locked(runtime, fcntl.LOCK_EX):
        entering = Entering()
        assert not entering.entered.wait(0.3)
        (runtime / "spark.json").write_text("{}")
        entering.join()
    assert entering.code == 3
    assert (runtime / "spark.json").exists()


def test_a_program_that_looks_for_a_server_is_not_taken_for_one(runtime: Path) -> None:
    """The record is that of a server that died."""
    (runtime / "spark.json").write_text("{}")
    with locked(runtime, fcntl.LOCK_SH):
        entering = Entering()
        assert not entering.entered.wait(0.3)
    entering.join()
    assert entering.code is None
    assert not (runtime / "spark.json").exists()


def test_a_server_that_waits_ends_when_told(runtime: Path) -> None:
    with locked(runtime, fcntl.LOCK_EX):
        entering = Entering()
        assert not entering.entered.wait(0.3)
        entering.stopping.set()
        entering.join()
    assert entering.code == 3
