"""The harness of fairness: it plays its loads, and its judgment fails where a bar is missed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.bench.runs import ran


def fairness(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran("bench.fairness", *arguments)


def test_small_loads_are_played_beside_the_pair(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    chosen = ("--brokers", "harebell", "--loads", "idle,fanout,claims", "--rate", "200")
    bars = ("--p99", "60000", "--worst", "60000", "--check")
    done = fairness(*chosen, *bars, "--seconds", "1", "--scale", "0.01", "--json", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_bytes())
    assert found["missed"] == []
    assert [each["load"] for each in found["rows"]] == ["idle", "fanout", "claims"]
    for each in found["rows"]:
        assert each["messages"] == 200
        assert 0 < each["p50_ms"] <= each["p99_ms"] <= each["worst_ms"]
        assert each["turn_ms"] > 0
        assert each.get("lost", 0) == 0
    assert [each.get("asked", 0) > 0 for each in found["rows"]] == [False, True, True]


def test_a_run_that_misses_a_bar_says_so_and_ends_with_code_1() -> None:
    chosen = ("--brokers", "harebell", "--loads", "idle", "--rate", "100")
    done = fairness(*chosen, "--seconds", "0.5", "--p99", "0.000001", "--check")
    assert done.returncode == 1
    assert "missed: idle: p99 is" in done.stdout
    assert "!" in done.stdout


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    done = fairness("--loads", "fanuot")
    assert done.returncode == 2
    assert "there is no load 'fanuot': did you mean 'fanout'?" in " ".join(done.stderr.split())
