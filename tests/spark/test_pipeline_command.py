"""`harebell pipeline run` as a process: it is listed, told to stop, and goes on where it was."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harebell.client import blocking
from harebell.pipeline.registry import state_of
from harebell.pipeline.run.logged_claims import claims_of
from tests.patience import eventually
from tests.running import command, environment
from tests.spark.commanded import PATIENCE_S, Commanded
from tests.spark.families import jvm_of

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


def test_a_pipeline_outlives_no_jvm_and_ends_as_told_when_a_signal_comes_to_its_group(
    broker_url: str, tmp_path: Path
) -> None:
    hourly = PIPELINE.replace("200ms", "1h")
    (tmp_path / "live.yaml").write_text(hourly.replace("${URL}", broker_url))
    live = Commanded(["run", "live.yaml", "--set", "QUEUE=group"], tmp_path)
    with blocking.connect(broker_url) as connection:
        channel = connection.channel()
        channel.declare_queue("group", durable=True)
        channel.publish_many([b"0", b"1"], routing_key="group")
        with live.running() as process:
            assert eventually(lambda: "2 rows so far" in live.said, PATIENCE_S), live.said
            os.kill(jvm_of(process.pid), signal.SIGKILL)
            assert live.ended(process) == 1
        assert live.said.splitlines()[-1].startswith("Error: Spark's JVM has ended with code -9")
        assert "Traceback" not in live.said
        assert state_of(live.registry, "live").error.startswith("Spark's JVM has ended")
        channel.publish_many([b"2"], routing_key="group")
        with live.running() as process:
            assert eventually(lambda: "1 rows so far" in live.said, PATIENCE_S), live.said
            # As `timeout` does: to the process and to its group.
            process.terminate()
            os.killpg(process.pid, signal.SIGTERM)
            assert live.ended(process) == 0, live.said
        # Acknowledged now, and not when Spark would have asked again, in an hour.
        [(_, offset)] = claims_of(tmp_path / "checkpoints" / "live", "commits")
        lease = channel.lease_open("group", offset.group)
        assert (lease.committed, lease.claims) == (offset.claim, ())
        channel.lease_close("group", offset.group, lease.epoch)
    assert "Traceback" not in live.said
    assert state_of(live.registry, "live").state == "ended"
    stored = pq.read_table(tmp_path / "lake")["value"].to_pylist()
    assert sorted(stored) == ["0", "1", "2"]


def test_a_call_that_waits_for_a_jvm_that_ends_fails_in_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import signal, threading\n"
        "from harebell.pipeline.hosting import session\n"
        "from harebell.spark.runtime.java import SessionError\n"
        "try:\n"
        "    with session('ends', {}) as spark:\n"
        "        jvm = spark.sparkContext._gateway.proc\n"
        # What a process has not read when it ends is a reset for the other end.
        "        jvm.send_signal(signal.SIGSTOP)\n"
        "        threading.Timer(1, jvm.kill).start()\n"
        # It may still answer one.
        "        while True:\n"
        "            spark._jvm.java.lang.System.nanoTime()\n"
        "except SessionError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, program], env=environment(), capture_output=True, text=True, timeout=600
    )
    assert done.stdout.startswith("Spark's JVM has ended with code -9"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_jvm_that_is_killed_while_it_stops_is_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import signal, threading\n"
        "from harebell.pipeline.hosting import session\n"
        "from harebell.spark.runtime.java import SessionError\n"
        "try:\n"
        "    with session('ends', {}) as spark:\n"
        "        jvm = spark.sparkContext._gateway.proc\n"
        "        jvm.send_signal(signal.SIGSTOP)\n"
        "        threading.Timer(1, jvm.kill).start()\n"
        "except SessionError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, program], env=environment(), capture_output=True, text=True, timeout=600
    )
    assert done.stdout.startswith("Spark's JVM has ended with code -9"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_failure_is_one_sentence_without_the_tracebacks_of_spark(
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
