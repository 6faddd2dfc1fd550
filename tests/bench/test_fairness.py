"""The harness of fairness: it plays its loads, and its judgment fails where a bar is missed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from bench.fairness import Bars, Row, missed
from bench.pair import judged
from tests.bench.runs import ran


def fairness(*arguments: str) -> subprocess.CompletedProcess[str]:
    return ran("bench.fairness", *arguments)


def row(**figures: float) -> Row:
    usual = {"p50_ms": 1.0, "p99_ms": 2.0, "worst_ms": 3.0, "messages": 10}
    return Row(load="fanout", broker="harebell", **{**usual, **figures})  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ({"p99_ms": 20.1}, "fanout: p99 is 20.1 ms, over 20 ms"),
        ({"worst_ms": 100.1}, "fanout: the worst is 100.1 ms, over 100 ms"),
        ({"lost": 3}, "fanout: 3 of 10 messages did not arrive"),
    ],
)
def test_every_bar_is_judged(figures: dict[str, float], words: str) -> None:
    assert missed([row(**figures)], Bars()) == [words]
    other = row(**figures)
    other.broker = "rabbitmq"
    assert missed([other], Bars()) == []


def test_a_message_that_never_came_counts_as_long_as_it_was_waited_for() -> None:
    found = judged([1_000_000] * 95, 100, 60.0)
    assert (found.lost, found.p50_ms, found.p99_ms, found.worst_ms) == (5, 1.0, 60_000, 60_000)


def test_a_wrong_name_gets_the_nearest_right_one() -> None:
    done = fairness("--loads", "fanuot")
    assert done.returncode == 2
    assert "there is no load 'fanuot': did you mean 'fanout'?" in " ".join(done.stderr.split())
