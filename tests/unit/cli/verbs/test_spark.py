"""`harebell spark`, run in this process: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harebell.cli.verbs.spark import spark


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)


def run(*words: str) -> Result:
    return CliRunner().invoke(spark, words)


def test_the_doctor_prints_a_line_for_everything() -> None:
    done = run("doctor")
    assert done.exit_code == 0, done.output
    names = [line.split()[1] for line in done.output.splitlines()]
    assert names == ["java", "pyspark", "pyarrow", "archive", "cache", "loopback", "memory"]


def test_the_doctor_answers_in_json_and_fails_for_what_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = run("doctor", "--json", "--master", "nonsense")
    assert done.exit_code == 1
    findings = {each["name"]: each for each in json.loads(done.output)["findings"]}
    assert findings["java"]["state"] == "bad"
    assert findings["master"]["text"].startswith("unknown master 'nonsense'")


def test_warming_without_java_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = run("warm")
    assert done.exit_code == 1
    assert "apt-get install openjdk-17-jre-headless" in done.output


def test_a_wrong_action_is_answered_with_the_nearest_one() -> None:
    done = run("docter")
    assert done.exit_code == 2
    assert "No action 'docter': did you mean doctor?" in done.output
