"""`harebell spark start`: one server for a user, found by `harebell sql`, closed to others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harebell.spark.runtime.session_server import ServerEntry, SessionServer, versions
from tests.patience import eventually
from tests.running import command, environment
from tests.spark.typed import PATIENCE_S
from tests.warming import warm_once

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]


class Desk:
    """Commands of a user with a runtime directory.

    Args:
        directory: for files.
        url: the broker.
    """

    def __init__(self, directory: Path, url: str) -> None:
        self.runtime = directory / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.env = environment({"HAREBELL_URL": url, "XDG_RUNTIME_DIR": str(self.runtime)})
        self._directory = directory

    def run(self, *words: str) -> Any:
        return subprocess.run(
            [command(), *words],
            env=self.env,
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [command(), "spark", "start", "--json", *words],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def desk(tmp_path: Path, broker_url: str) -> Iterator[Desk]:
    warm_once()
    made = Desk(tmp_path, broker_url)
    yield made
    made.run("spark", "stop")


def test_a_server_is_started_once_used_by_statements_and_ends_when_told(
    desk: Desk, channel: Any, queue: str
) -> None:
    assert desk.run("spark", "status").returncode == 1
    channel.basic_publish("", queue, b"a")
    # Two that start it at once get the same one.
    both = [desk.start(), desk.start()]
    found = [json.loads(each.communicate(timeout=PATIENCE_S)[0]) for each in both]
    assert found[0]["pid"] == found[1]["pid"]
    assert sorted(each["started_now"] for each in found) == [False, True]
    assert desk.run("spark", "start").stdout.startswith("Spark server runs already: sc://localhost")
    other = desk.run("spark", "start", "--master", "local[9]")
    assert "runs its tasks on local[" in other.stderr, other.stderr
    assert other.stderr.endswith("not on local[9]; run `harebell spark stop` first\n")
    directory = desk.runtime / "harebell"
    assert (directory / "spark.log").read_text() == "", "nothing is printed at a start"
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "spark.json").stat().st_mode & 0o777 == 0o600
    asked = desk.run(
        "sql", "--engine", "spark", f"SELECT CAST(value AS STRING) AS body FROM queue('{queue}')"
    )
    assert asked.stdout.splitlines() == ["body", "a"], asked.stderr
    moved = desk.run("sql", f"DELETE FROM queue('{queue}') WHERE true")
    assert moved.stdout == f"1 of 1 messages of queue '{queue}' deleted\n", moved.stderr
    wrong = desk.run("sql", "--engine", "spark", f"SELECT * FROM queue('{queue}x')")
    assert wrong.returncode == 1
    assert wrong.stderr.endswith(f"; did you mean '{queue}'?\n"), wrong.stderr
    _refuse_another_token(found[0]["url"])
    ended = desk.run("spark", "stop")
    assert ended.stdout == f"Spark server, process {found[0]['pid']}, has ended\n"
    assert desk.run("spark", "status").returncode == 1


def _refuse_another_token(url: str) -> None:
    """Nobody who cannot read the user's files gets a session, although the port is open to all."""
    program = (
        "from pyspark.sql import SparkSession\n"
        f"print(SparkSession.builder.remote({url!r}).create().range(3).count())"
    )
    for token in ("wrong", None):
        surroundings = {k: v for k, v in os.environ.items() if "CONNECT_AUTHENTICATE" not in k}
        if token is not None:
            surroundings["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env=surroundings,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 1
        assert "UNAUTHENTICATED" in done.stderr, done.stderr


def test_a_server_that_nobody_uses_ends_and_one_that_died_is_not_found(desk: Desk) -> None:
    first = json.loads(desk.start("--idle", "2").communicate(timeout=PATIENCE_S)[0])
    assert eventually(lambda: desk.run("spark", "status").returncode == 1, PATIENCE_S)
    second = json.loads(desk.start().communicate(timeout=PATIENCE_S)[0])
    assert second["pid"] != first["pid"]
    os.kill(second["pid"], signal.SIGKILL)
    assert eventually(lambda: desk.run("spark", "status").returncode == 1, PATIENCE_S)
    assert (desk.runtime / "harebell" / "spark.json").exists()


def test_a_server_that_cannot_be_found_any_more_ends_and_another_one_takes_its_place(
    desk: Desk,
) -> None:
    first = json.loads(desk.start().communicate(timeout=PATIENCE_S)[0])
    record = desk.runtime / "harebell" / "spark.json"
    record.write_text("{")
    broken = desk.run("spark", "stop")
    assert broken.returncode == 1
    assert broken.stderr.endswith("; remove it\n")
    record.unlink()
    second = json.loads(desk.start().communicate(timeout=PATIENCE_S)[0])
    assert second["pid"] != first["pid"]
    assert eventually(lambda: not Path(f"/proc/{first['pid']}").exists())
    _ask_while_the_jvm_dies(desk, second["pid"])


def _ask_while_the_jvm_dies(desk: Desk, server: int) -> None:
    """A statement whose JVM dies says so at once; Spark tries again for more than ten minutes."""
    program = (
        "from harebell.spark.runtime.session_server import find_server\n"
        "session = find_server().connect()\n"
        "print(session.range(3).count(), flush=True)\n"
        "input()\n"
        "session.range(3).count()"
    )
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program],
        env=desk.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == "3\n"
        [jvm] = map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split())
        os.kill(jvm, signal.SIGKILL)
        assert eventually(lambda: desk.run("spark", "status").returncode == 1, PATIENCE_S)
        _, said = asking.communicate("\n", PATIENCE_S)
    assert f"the Spark server (process {server}) has ended; run the statement again" in said
    log = desk.runtime / "harebell" / "spark.log"
    # It is not found any more before it has said why. Py4J may log a call that was under way.
    why = "the JVM of this server has ended with code -9\n"
    assert eventually(lambda: why in log.read_text())


def test_a_server_of_another_version_is_told_and_not_used(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process is in its place: nobody gets as far as to connect to it.
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(desk.runtime))
    entry = ServerEntry(threading.Event())
    found = versions() | {"harebell": "0.0.1"}
    entry.publish(SessionServer(os.getpid(), 1, "token", versions=found))
    try:
        asked = desk.run("sql", "--engine", "spark", "SELECT 1 AS one")
        assert asked.stdout == "one\n1\n"
        assert "not used: a Spark server with harebell 0.0.1 there and" in asked.stderr
        warm = desk.run("sql", "--warm", "SELECT 1 AS one")
        assert warm.returncode == 1
        assert "run `harebell spark stop` first" in warm.stderr
    finally:
        entry.withdraw()


def test_a_runtime_directory_that_others_can_read_is_refused(desk: Desk) -> None:
    (desk.runtime / "harebell").mkdir(mode=0o755)
    done = desk.run("spark", "start")
    assert done.returncode == 1
    assert "that no other user may read: remove it" in done.stderr
