"""`harebell pipeline` as far as it needs no Spark; tests/spark has the rest."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harebell.pipeline.registry import PipelineEntry, PipelineState
from harebell.pipeline.run.locking import CheckpointLock
from tests.cli.conftest import Result, error_of, run_harebell

FINE = "source:\n  queue: ${QUEUE:-orders}\nsinks: [{parquet: lake}]\n"


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    return tmp_path / "registry"


def pipeline(registry: Path, *arguments: str) -> Result:
    return run_harebell("pipeline", *arguments, env={"HAREBELL_PIPELINES": str(registry)})


def written(directory: Path, text: str, name: str = "p.yaml") -> str:
    (directory / name).write_text(text)
    return str(directory / name)


def test_a_right_file_is_fine(tmp_path: Path, registry: Path) -> None:
    file = written(tmp_path, FINE)
    done = pipeline(registry, "check", file)
    assert done.returncode == 0
    assert done.stdout.decode() == f"{file}: pipeline p is fine\n"


def test_faults_of_every_file_are_reported_and_the_exit_code_is_2(
    tmp_path: Path, registry: Path
) -> None:
    first = written(tmp_path, "source: {quue: x}\nsinks: [{parqet: x}]\n", "first.yaml")
    second = written(tmp_path, "source:\n  queue: ${NONE}\n", "second.yaml")
    done = pipeline(registry, "check", first, second)
    assert done.returncode == 2
    said = done.stderr.decode()
    assert f"{first}:1: unknown option 'quue': did you mean queue?" in said
    assert f"{first}:2: this sink has no kind: did you mean parquet?" in said
    assert f"{second}:2: the variable NONE is not set" in said
    assert "Traceback" not in said


def test_a_file_that_is_not_there_fails(tmp_path: Path, registry: Path) -> None:
    done = pipeline(registry, "check", str(tmp_path / "none.yaml"))
    assert (done.returncode, error_of(done)) == (
        1,
        f"{tmp_path / 'none.yaml'}: No such file or directory",
    )


def test_a_pipeline_is_explained_with_its_variables(tmp_path: Path, registry: Path) -> None:
    done = pipeline(registry, "explain", written(tmp_path, FINE), "--set", "QUEUE=jobs")
    assert done.returncode == 0
    assert "  reads queue jobs as source: bodies as they are, in value\n" in done.stdout.decode()
    wrong = pipeline(registry, "explain", written(tmp_path, FINE), "--set", "QUEUE")
    assert (wrong.returncode, error_of(wrong)) == (2, "--set wants NAME=VALUE, not 'QUEUE'")


def test_a_wrong_file_is_told_before_spark_is_started(tmp_path: Path, registry: Path) -> None:
    done = pipeline(registry, "run", written(tmp_path, "source: {queue: a}\n"))
    assert done.returncode == 2
    assert error_of(done).endswith(
        "p.yaml:1: a pipeline needs sinks: a list with at least one of them"
    )


def test_two_pipelines_of_one_name_are_not_run_together(tmp_path: Path, registry: Path) -> None:
    file = written(tmp_path, FINE)
    done = pipeline(registry, "run", file, file)
    assert (done.returncode, error_of(done)) == (2, "two of these pipelines are named p")


def test_a_second_driver_on_one_checkpoint_is_refused_before_spark_is_started(
    tmp_path: Path, registry: Path
) -> None:
    file = written(tmp_path, FINE + "checkpoint: kept\n")
    with CheckpointLock(tmp_path / "kept", "other"):
        done = pipeline(registry, "run", file)
    assert (done.returncode, error_of(done)) == (
        1,
        f"the checkpoint {tmp_path / 'kept'} is in use by pipeline other, process {os.getpid()}: "
        "stop that one, or give this pipeline a checkpoint of its own",
    )
    with PipelineEntry(registry, "p"):
        done = pipeline(registry, "run", file)
    assert error_of(done).startswith("a pipeline named p runs already: stop it with")


def test_pipelines_are_listed_with_their_states(registry: Path) -> None:
    assert pipeline(registry, "list").stdout.decode().split() == [
        *("name", "state", "batch", "rows", "behind")
    ]
    with PipelineEntry(registry, "orders") as entry:
        entry.write(
            PipelineState("orders", "", os.getpid(), "running", batch=2, rows=7, lag={"source": 3})
        )
        lines = pipeline(registry, "list").stdout.decode().splitlines()
        assert lines[1].split() == ["orders", "running", "2", "7", "3"]
    (lost,) = json.loads(pipeline(registry, "list", "--json").stdout)
    assert (lost["name"], lost["state"]) == ("orders", "lost")


def test_the_status_of_one_is_all_that_is_known_and_its_exit_code_whether_it_failed(
    registry: Path,
) -> None:
    with PipelineEntry(registry, "orders") as entry:
        entry.write(PipelineState("orders", "/p.yaml", 1, "failed", rows=7, error="no queue"))
    done = pipeline(registry, "status", "orders")
    assert done.returncode == 1
    assert {"name: orders", "state: failed", "rows: 7", "error: no queue"} <= set(
        done.stdout.decode().splitlines()
    )
    assert error_of(done) == "pipeline orders has failed"
    none = pipeline(registry, "status", "ordres")
    assert (none.returncode, error_of(none)) == (
        1,
        "no pipeline named 'ordres' has run here; there are orders",
    )


def test_only_what_runs_can_be_stopped(registry: Path) -> None:
    with PipelineEntry(registry, "orders") as entry:
        entry.write(PipelineState("orders", "", 1, "ended"))
    done = pipeline(registry, "stop", "orders")
    assert (done.returncode, error_of(done)) == (1, "pipeline orders does not run: ended")
