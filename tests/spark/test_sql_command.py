"""`harebell sql` as a command: the shell, what is piped in, and statements without end."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import deltalake
import pytest

from tests.patience import eventually
from tests.running import command, environment
from tests.spark.families import jvm_of, processor_seconds
from tests.spark.typed import PATIENCE_S, terminal
from tests.warming import warm_once

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

_RUNS_SECONDS = 4.0
"""A JVM takes so much processor time for a statement that does not end, and for nothing else."""


@pytest.fixture
def about(tmp_path: Path, broker_url: str) -> dict[str, str]:
    """The environment of a user who has no Spark server."""
    warm_once()
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    return environment(
        {
            "HAREBELL_URL": broker_url,
            "HAREBELL_PIPELINES": str(tmp_path / "registry"),
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "TERM": "dumb",
        }
    )


def sql(about: dict[str, str], directory: Path, *words: str, piped: str = "") -> Any:
    return subprocess.run(
        [command(), "sql", *words],
        env=about,
        cwd=directory,
        input=piped,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_shell_asks_in_one_session_and_ctrl_c_ends_the_statement_only(
    about: dict[str, str], tmp_path: Path, channel: Any, queue: str
) -> None:
    for number in range(3):
        channel.basic_publish("", queue, b"%d" % number)
    with terminal([command(), "sql", "--engine", "spark"], about, tmp_path) as shell:
        shell.until("harebell> ")
        shell.type(f"SELECT count(*) AS messages\nFROM queue('{queue}');\n")
        assert "messages\r\n3" in shell.until(" s)")
        jvm = jvm_of(shell.process.pid)
        before = processor_seconds(jvm)
        shell.type("SELECT count(*) FROM range(1000000000000) WHERE id % 7 = hash(id);\n")
        shell.until("hash(id);")
        # Not before it runs: Ctrl-C at the prompt would empty the line.
        assert eventually(lambda: processor_seconds(jvm) > before + _RUNS_SECONDS)
        shell.type("\x03")
        shell.until("cancelled")
        shell.type("SELECT nope;\n")
        assert "line 1, column 8" in shell.until("cannot be resolved")
        shell.type(f"INSERT INTO queue('{queue}') SELECT * FROM queue('{queue}');\n")
        shell.until("3 messages published")
        shell.until("harebell> ")
        shell.type("SELECT half of a statement\x03")
        # Python's readline does not notice Ctrl-C that comes just before it waits for a key.
        shell.until("harebell> ", again="\x03")
        shell.type("\x04")
        assert shell.process.wait(PATIENCE_S) == 0
    assert channel.queue_declare(queue, passive=True).method.message_count == 6
    history = tmp_path / "state" / "harebell" / "sql_history"
    assert "FROM queue" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


def test_piped_statements_run_in_order_and_a_mistake_is_found_before_anything_runs(
    about: dict[str, str], tmp_path: Path, channel: Any, queue: str
) -> None:
    text = (
        f"INSERT INTO queue('{queue}') SELECT 'a' AS value;\n\n"
        f"SELECT offset FROM queue('{queue}');\nSHOW TABLES"
    )
    done = sql(about, tmp_path, "--output", "csv", piped=text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"1 messages published to queue '{queue}' and confirmed",
        *("offset", "0"),
        "namespace,tableName,isTemporary",
    ]
    assert done.stderr == ""
    wrong = sql(about, tmp_path, piped=f"DELETE FROM queue('{queue}') WHERE true;\nSELEC 1;")
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "Error: the statement in line 2: there is no verb SELEC: did you mean SELECT?\n"
    )
    assert channel.queue_declare(queue, passive=True).method.message_count == 1


def test_a_streaming_table_runs_until_ctrl_c_and_goes_on_without_loss_or_doubles(
    about: dict[str, str], tmp_path: Path, channel: Any, queue: str
) -> None:
    table = f"STREAMING TABLE numbers AS SELECT offset FROM STREAM queue('{queue}')"

    def rows() -> int:
        directory = tmp_path / "lake" / "numbers"
        if not (directory / "_delta_log").is_dir():
            return 0
        return deltalake.DeltaTable(str(directory)).to_pyarrow_table().num_rows

    for run, verb in enumerate(("CREATE", "CREATE OR REFRESH"), 1):
        for _ in range(10):
            channel.basic_publish("", queue, b"x")
        with (tmp_path / f"log{run}").open("wb") as log:
            words = [command(), "sql", "--lake", "lake", f"{verb} {table}"]
            running = subprocess.Popen(words, env=about, cwd=tmp_path, stdout=log, stderr=log)
        try:
            said = tmp_path / f"log{run}"
            assert eventually(lambda n=run: rows() == 10 * n, PATIENCE_S), said.read_text()
            os.kill(running.pid, signal.SIGINT)
            assert running.wait(PATIENCE_S) == 0, said.read_text()
        finally:
            if running.poll() is None:
                running.kill()
                running.wait()
        assert "numbers: 10 rows read; written 10 to table" in said.read_text()
    found = deltalake.DeltaTable(str(tmp_path / "lake" / "numbers")).to_pyarrow_table()
    assert sorted(found["offset"].to_pylist()) == list(range(20))
    refused = sql(about, tmp_path, "--lake", "lake", f"CREATE {table}")
    assert refused.returncode == 1
    assert "CREATE OR REFRESH STREAMING TABLE numbers goes on where it stopped" in refused.stderr
