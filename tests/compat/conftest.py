"""RabbitMQ's tools as an operator runs them, from a directory of shims, against a real broker."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.patience import SECONDS
from tests.running import RunningBroker, command, environment, running_broker

SOURCE = Path(__file__).parents[2] / "packaging" / "rabbitmq-compat" / "src"

Result = subprocess.CompletedProcess[str]
Tool = Callable[..., Result]


def with_package() -> dict[str, str]:
    """An environment in which the package of the tools is importable."""
    return environment({"PYTHONPATH": str(SOURCE)})


@pytest.fixture(scope="session")
def shims(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the tools, written by `harebell compat install-shims`."""
    directory = tmp_path_factory.mktemp("shims")
    subprocess.run(
        [command(), "compat", "install-shims", str(directory)],
        env=with_package(),
        timeout=SECONDS,
        check=True,
    )
    return directory


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """A broker for the tests of a file."""
    with running_broker() as started:
        yield started


@pytest.fixture
def tool(shims: Path, broker: RunningBroker) -> Tool:
    """Runs a tool against the broker."""

    def run(*words: str, stdin: str = "", **variables: str) -> Result:
        env = {**with_package(), "HAREBELL_DATA_DIR": str(broker.data_dir), **variables}
        env = {name: value for name, value in env.items() if value}
        return subprocess.run(
            [os.fspath(shims / words[0]), *words[1:]],
            input=stdin,
            capture_output=True,
            text=True,
            env=env,
            timeout=SECONDS,
            check=False,
        )

    return run


@pytest.fixture
def done(tool: Tool) -> Callable[..., str]:
    """Runs a tool that has to succeed; returns what it prints."""

    def run(*words: str, stdin: str = "", **variables: str) -> str:
        result = tool(*words, stdin=stdin, **variables)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return run
