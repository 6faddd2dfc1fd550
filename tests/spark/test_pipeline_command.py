"""`harebell pipeline run` as a process: it is listed, told to stop, and goes on where it was."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harebell.client import blocking
from tests.patience import eventually
from tests.running import command, environment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

PIPELINE = """
pipeline: live
source:
  url: ${URL}
  queue: ${QUEUE}
  fetchTimeout: 300s
steps:
  - sql: SELECT CAST(value AS STRING) AS value FROM source
sinks:
  - parquet: lake
trigger: 200ms
"""


def test_a_pipeline_that_is_told_to_stop_ends_its_micro_batch_first(
    broker_url: str, tmp_path: Path
) -> None:
    queue = "live"
    (tmp_path / "live.yaml").write_text(PIPELINE)
    about = environment(
        {"URL": broker_url, "QUEUE": queue, "HAREBELL_PIPELINES": str(tmp_path / "registry")}
    )

    def harebell(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [command(), "pipeline", *arguments],
            env=about,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def rows() -> int:
        listed = harebell("list", "--json").stdout
        return sum(state["rows"] for state in json.loads(listed or "[]"))

    with blocking.connect(broker_url) as connection:
        connection.channel().declare_queue(queue, durable=True)
        bodies = [b"%d" % number for number in range(5)]
        connection.channel().publish_many(bodies, routing_key=queue)
    with (tmp_path / "log").open("wb") as log:
        running = subprocess.Popen(
            [command(), "pipeline", "run", "live.yaml", "--metrics", "0"],
            env=about,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        assert eventually(lambda: rows() == 5 or running.poll() is not None, 400)
        assert running.poll() is None, (tmp_path / "log").read_text()
        told = re.search(r"^metrics: (\S+)$", (tmp_path / "log").read_text(), re.M)
        assert told is not None
        with urllib.request.urlopen(told[1], timeout=300) as answer:
            metrics = answer.read().decode()
        assert 'harebell_pipeline_up{pipeline="live"} 1\n' in metrics
        assert 'harebell_pipeline_rows_read_total{pipeline="live"} 5\n' in metrics
        assert f'harebell_pipeline_lag_messages{{pipeline="live",queue="{queue}"}} 0\n' in metrics
        stopped = harebell("stop", "live", "--timeout", "250")
        assert stopped.stdout == "pipeline live has ended\n", stopped.stderr
        assert running.wait(300) == 0, (tmp_path / "log").read_text()
    finally:
        if running.poll() is None:
            os.kill(running.pid, 9)
            running.wait()
    assert "live: 5 rows read; written 5 to parquet" in (tmp_path / "log").read_text()
    assert harebell("status", "live").stdout.splitlines()[3] == "state: ended"
    stored = pq.read_table(tmp_path / "lake")["value"].to_pylist()
    assert sorted(stored) == ["0", "1", "2", "3", "4"]


def test_what_fails_is_one_sentence_without_the_tracebacks_of_spark(
    broker_url: str, tmp_path: Path
) -> None:
    def archive(url: str, queue: str) -> tuple[int, str]:
        done = subprocess.run(
            [command(), "pipeline", "archive", queue, "--to", "lake", "--url", url],
            env=environment({"HAREBELL_PIPELINES": str(tmp_path / "registry")}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert "Exception" not in done.stderr
        return done.returncode, done.stderr.splitlines()[-1]

    code, said = archive(broker_url, "no.such.queue")
    assert code == 1
    assert said.startswith(
        "Error: archive-no.such.queue: failed: there is no queue 'no.such.queue'"
    )
    code, said = archive(broker_url.replace("://", "://guest:wrong@"), "any")
    assert code == 4
    assert said.startswith("Error: archive-any: failed: 403 ACCESS_REFUSED")
