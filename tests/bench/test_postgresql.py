"""The benchmark of the storage in PostgreSQL runs, and its figures are sane."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _run(*arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench.postgresql", "--seconds=0.3", *arguments],
        cwd=ROOT,
        env={**os.environ, "PATH": path} if path else None,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


def _figures(file: Path, *arguments: str) -> dict[str, float]:
    done = _run(f"--json={file}", *arguments)
    assert done.returncode == 0, done.stderr
    figures: dict[str, float] = json.loads(file.read_bytes())
    return figures


@pytest.mark.timeout(900)
def test_a_broker_is_compared_with_copy_and_psql(tmp_path: Path) -> None:
    found = _figures(tmp_path / "figures", "--parts", "server", "alone")
    for name in ("copy_c128w", "copy_commits_c128w", "alone_c128w", "alone_c1kw"):
        assert found[name] > 0
    for name in ("", "_meter", "_psql", "_psql_paced", "_libpq_paced"):
        assert 0 < found[f"alone{name}_p50_ms"] <= found[f"alone{name}_p99_ms"]
    for name in ("broker", "postgresql", "clients"):
        assert found[f"alone_c1kw_{name}_us"] > 0
    assert found["alone_p50_of_psql_paced"] > 0
    # A wrong unit is found, and not a machine that does something else meanwhile.
    assert 0 < found["alone_c128w_of_copy"] < 50


@pytest.mark.timeout(600)
def test_without_rabbitmq_there_are_no_figures_of_a_quorum_queue(tmp_path: Path) -> None:
    # RabbitMQ needs the port mapper of Erlang, which is not in this path.
    (tmp_path / "setpriv").symlink_to(shutil.which("setpriv") or "/usr/bin/setpriv")
    done = _run("--parts", "quorum", path=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "RabbitMQ is not installed: no figures of a quorum queue\n"


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_short_run_of_everything_writes_every_figure(tmp_path: Path) -> None:
    found = _figures(tmp_path / "figures", "--through=5000")
    for name in ("directory", "alone", "standby", "quorum"):
        assert found[f"{name}_c128w"] > 0
        assert found[f"{name}_c1kw"] > 0
        assert 0 < found[f"{name}_p50_ms"] <= found[f"{name}_p99_ms"]
    assert found["fail_over_s"] > 0
    assert found["through_messages"] >= 5_000
    # Autovacuum has nothing to do there.
    assert found["dead_rows"] == found["autovacuums"] == 0
