"""`harebell health`: the stages of a probe, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.cli.verbs.health import STAGES
from tests.cli.conftest import Harebell, run_harebell
from tests.patience import eventually
from tests.running import RunningBroker, running_broker


def test_a_running_broker_passes_every_stage(harebell: Harebell) -> None:
    result = harebell("health")
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode() == f"healthy: {', '.join(STAGES)}\n"


def test_a_stage_ends_the_check(harebell: Harebell) -> None:
    result = harebell("health", "--stage", "running", "--json")
    assert json.loads(result.stdout) == {"status": "ok", "passed": ["ping", "running"]}


def test_no_broker_fails_the_first_stage(tmp_path: Path) -> None:
    result = run_harebell("health", env={"HAREBELL_DATA_DIR": str(tmp_path)})
    assert result.returncode == 1
    assert result.stderr.startswith(b"unhealthy: ping: no broker runs on the data directory")
    found = json.loads(
        run_harebell("health", "--json", env={"HAREBELL_DATA_DIR": str(tmp_path)}).stdout
    )
    assert (found["status"], found["failed"], found["passed"]) == ("failed", "ping", [])


@pytest.fixture(scope="module")
def full() -> Iterator[RunningBroker]:
    """A broker that wants more free disk than there is."""
    with running_broker("--disk-free-limit", "100TiB", "--health-interval", "500") as started:
        yield started


def test_an_alarm_fails_readiness_and_not_liveness(full: RunningBroker) -> None:
    env = {"HAREBELL_DATA_DIR": str(full.data_dir)}
    ready = run_harebell("health", env=env)
    assert ready.returncode == 1
    assert ready.stderr.startswith(b"unhealthy: alarms: publishers are blocked")
    assert b"disk" in ready.stderr
    assert run_harebell("health", "--stage", "ping", env=env).returncode == 0


def test_why_says_what_needs_somebody_and_does_not_change_the_exit_code(
    full: RunningBroker,
) -> None:
    env = {"HAREBELL_DATA_DIR": str(full.data_dir)}
    words = ("health", "--stage", "ping", "--why")
    assert eventually(lambda: b"1 thing needs you" in run_harebell(*words, env=env).stdout)
    result = run_harebell(*words, env=env)
    assert result.returncode == 0
    lines = result.stdout.decode().splitlines()
    assert lines[:2] == ["healthy: ping", "1 thing needs you:"]
    assert lines[3].startswith("blocked-publishers: disk, since ")
    assert "  disk is short, so publishers are blocked" in lines[4]
    assert lines[-1] == "  $ harebell queues list vhost name messages message_bytes"
    found = json.loads(run_harebell(*words, "--json", env=env).stdout)["findings"]
    assert [(each["rule"], each["name"]) for each in found] == [("blocked-publishers", "disk")]


def test_a_new_broker_is_healthy(harebell: Harebell) -> None:
    result = harebell("health", "--why")
    assert result.stdout.decode().splitlines()[-1] == "Healthy"
