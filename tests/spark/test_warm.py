"""The class-data archive is made, and sessions start from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from harebell.spark.runtime import warming
from harebell.spark.runtime.java import find_java
from harebell.spark.runtime.spark_home_cache import find_cache
from harebell.spark.runtime.warming import warm
from tests.patience import eventually

pytestmark = pytest.mark.timeout(1_200)


def test_a_session_maps_the_archive_that_was_made(spark: SparkSession) -> None:
    # The fixture made it, before it started the session.
    archive, made = warm()
    assert not made
    assert archive == find_cache(find_java()).archive
    machine = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    assert str(archive) in Path(f"/proc/{machine.getPid()}/maps").read_text()


def test_workers_import_the_installed_pyspark(spark: SparkSession) -> None:
    def where(batches: object) -> object:
        import pyarrow
        import pyspark

        for _ in batches:  # type: ignore[attr-defined]
            yield pyarrow.RecordBatch.from_pydict({"file": [pyspark.__file__]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(where, "file string").collect()
    assert "pyspark.zip" not in row["file"]


@pytest.mark.parametrize("ending", ["exit 1", "sleep 600"], ids=["it fails", "it takes too long"])
def test_nothing_of_a_training_run_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    started = tmp_path / "started"
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {started}\necho no Java\n{ending}\n")
    python.chmod(0o755)
    monkeypatch.setattr(warming.sys, "executable", str(python))

    class Begun(subprocess.Popen[str]):
        """A process whose time begins when it has started the other one."""

        def wait(self, timeout: float | None = None) -> int:
            assert eventually(lambda: started.exists() and started.read_text().endswith("\n"))
            return super().wait(timeout)

    monkeypatch.setattr(warming.subprocess, "Popen", Begun)
    if ending == "exit 1":
        assert warming._run_training(tmp_path / "draft") == (1, "no Java\n")
    else:
        monkeypatch.setattr(warming, "SPARK_WARM_SECONDS", 0.5)
        with pytest.raises(subprocess.TimeoutExpired):
            warming._run_training(tmp_path / "draft")
    left = int(started.read_text())
    assert eventually(lambda: not alive(left))


def alive(process: int) -> bool:
    """Whether a process runs; one that nobody has asked for its exit code does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
