"""The benchmark of the storage in PostgreSQL runs, and its figures are sane."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _figures(file: Path, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.postgresql", "--seconds=0.3", f"--json={file}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures: dict[str, float] = json.loads(file.read_bytes())
    return figures


@pytest.mark.timeout(300)
def test_a_broker_is_compared_with_copy_and_psql(tmp_path: Path) -> None:
    found = _figures(tmp_path / "figures", "--parts", "server", "alone")
    for name in ("copy_c128w", "copy_commits_c128w", "psql_p50_ms", "alone_c128w", "alone_c1kw"):
        assert found[name] > 0
    assert 0 < found["alone_p50_ms"] <= found["alone_p99_ms"]
    assert 0 < found["alone_c128w_of_copy"] < 2


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_short_run_of_everything_writes_every_figure(tmp_path: Path) -> None:
    found = _figures(tmp_path / "figures", "--through=5000")
    for name in ("directory", "alone", "standby"):
        assert found[f"{name}_c128w"] > 0
        assert found[f"{name}_c1kw"] > 0
        assert 0 < found[f"{name}_p50_ms"] <= found[f"{name}_p99_ms"]
    assert found["fail_over_s"] > 0
    assert found["through_messages"] >= 5_000
    # Autovacuum has nothing to do there.
    assert found["dead_rows"] == found["autovacuums"] == 0
