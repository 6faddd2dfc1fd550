"""`harebell completion`: a real bash completes verbs, flags and the names in a running broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Harebell, run, run_harebell
from tests.running import RunningBroker, command, environment

_SECONDS = 60.0


def completed(broker: RunningBroker, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    script = (
        'eval "$(harebell completion bash)"\n'
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))\n'
        "_harebell_completion harebell\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    env = {
        "HAREBELL_DATA_DIR": str(broker.data_dir),
        "PATH": f"{Path(command()).parent}:/usr/bin:/bin",
    }
    done = subprocess.run(
        ["bash", "-c", script, "bash", "harebell", *words],
        capture_output=True,
        text=True,
        env=environment(env),
        timeout=_SECONDS,
        check=True,
    )
    return [line for line in done.stdout.split("\n") if line]


def test_verbs_actions_and_flags_are_completed(broker: RunningBroker) -> None:
    assert completed(broker, "heal") == ["health"]
    assert completed(broker, "queues", "pur") == ["purge"]
    assert completed(broker, "queues", "purge", "--vh") == ["--vhost"]


def test_names_come_from_the_running_broker(broker: RunningBroker, harebell: Harebell) -> None:
    for name in ("complete-one", "complete-two"):
        harebell("queues", "declare", name)
    assert completed(broker, "queues", "purge", "complete-") == ["complete-one", "complete-two"]
    assert completed(broker, "dead-letters", "retry", "complete-t") == ["complete-two"]
    assert completed(broker, "permissions", "set", "gue") == ["guest"]
    assert completed(broker, "queues", "list", "--vhost", "") == ["/"]


def test_names_are_those_of_the_vhost_that_is_chosen(own: RunningBroker) -> None:
    for words in (("vhosts", "add", "v"), ("queues", "declare", "one-in-v", "--vhost", "v")):
        assert run(own, *words).returncode == 0
    assert run(own, "queues", "declare", "one-here").returncode == 0
    assert completed(own, "queues", "purge", "one") == ["one-here"]
    assert completed(own, "queues", "purge", "--vhost", "v", "one") == ["one-in-v"]
    assert completed(own, "queues", "purge", "--vhost", "none", "one") == []


def test_without_a_broker_nothing_is_offered_and_nothing_fails(
    broker: RunningBroker, tmp_path: Path
) -> None:
    found = completed(broker, "queues", "purge", "--data-dir", str(tmp_path), "complete-")
    assert found == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    result = run_harebell("completion", shell)
    assert result.returncode == 0
    assert f"_HAREBELL_COMPLETE={shell}_complete".encode() in result.stdout
