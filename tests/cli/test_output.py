"""Output that cannot be written, and a reader that goes away: one sentence or none."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.running import RunningBroker, command, environment

_PATIENCE_SECONDS = 180.0


def fill(broker: RunningBroker, *words: str, unbuffered: bool = False) -> tuple[int, str]:
    """Run a command with a full disk as its output; return its code and its errors."""
    variables = {"HAREBELL_DATA_DIR": str(broker.data_dir)}
    if unbuffered:
        variables["PYTHONUNBUFFERED"] = "1"
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [command(), *words],
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(variables),
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    return ran.returncode, ran.stderr.decode()


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        "queues list",
        "vhosts list --json",
        "--help",
        "status",
        "config show",
        "--version",
        "top --once",
    ],
)
def test_output_that_cannot_be_written_is_one_sentence(
    broker: RunningBroker, words: str, unbuffered: bool
) -> None:
    code, errors = fill(broker, *words.split(), unbuffered=unbuffered)
    assert (code, errors) == (1, "Error: cannot write the output: No space left on device\n")


def test_a_reader_that_goes_away_is_no_error(broker: RunningBroker) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [command(), "queues", "list"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=environment({"HAREBELL_DATA_DIR": str(broker.data_dir)}),
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (1, b"")
