"""The distributions as users get them: wheels, installed into a new environment, and their scripts.

The wheel of Harebell is the one without compiled parts, which is made in seconds. Packages that
Harebell depends on are those of the Python that runs the tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ports import free_port
from tools.sources import copy_sources

ROOT = Path(__file__).parents[2]
COMPAT = ROOT / "packaging" / "rabbitmq-compat"
_PIP_SECONDS = 300
_START_SECONDS = 60.0
_SCRIPTS = (
    *("harebell", "rabbitmqctl", "rabbitmq-diagnostics", "rabbitmq-plugins", "rabbitmq-queues"),
    *("rabbitmq-streams", "rabbitmq-upgrade", "rabbitmqadmin", "rabbitmq-server"),
)


def _pip(*words: str) -> None:
    environment = {**os.environ, "HAREBELL_IMPL": "python", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_PIP_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the scripts of a new environment with both wheels."""
    directory = tmp_path_factory.mktemp("distribution")
    wheels, environment = directory / "wheels", directory / "environment"
    compat = directory / "compat"
    ignored = shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    shutil.copytree(COMPAT, compat, ignore=ignored)
    harebell = directory / "harebell"
    copy_sources(harebell)
    for source in (harebell, compat):
        build = ("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels))
        _pip(*build, str(source))
    venv.create(environment)
    python = environment / "bin" / "python"
    made = sorted(str(path) for path in wheels.glob("*.whl"))
    _pip("--python", str(python), "install", "--no-deps", *made)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return environment / "bin"


@pytest.fixture(scope="module")
def served(scripts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The variables for the scripts, while `rabbitmq-server` of the environment runs."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HAREBELL_", "PYTHON", "RABBITMQ_"))
    }
    variables = {
        **kept,
        "HAREBELL_DATA_DIR": str(tmp_path_factory.mktemp("data") / "data"),
        "HAREBELL_PORT": "0",
        "HAREBELL_MANAGEMENT_PORT": str(free_port()),
        "HAREBELL_METRICS_PORT": "0",
    }
    output = tmp_path_factory.mktemp("output") / "log"
    with output.open("wb") as log:
        process = subprocess.Popen(
            [str(scripts / "rabbitmq-server")], env=variables, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + _START_SECONDS
        while "Server startup complete" not in output.read_text():
            assert process.poll() is None, output.read_text()
            assert time.monotonic() < until, output.read_text()
            time.sleep(0.05)
        yield variables
    finally:
        process.terminate()
        process.wait(_START_SECONDS)


def _printed(scripts: Path, variables: dict[str, str], tool: str, *words: str) -> str:
    done = subprocess.run(
        [str(scripts / tool), *words],
        env=variables,
        capture_output=True,
        text=True,
        timeout=_START_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_script_is_installed_and_runs_from_the_environment(scripts: Path) -> None:
    assert {path.name for path in scripts.iterdir()} >= set(_SCRIPTS)
    for tool in _SCRIPTS:
        first = (scripts / tool).read_text().splitlines()[0]
        assert first == f"#!{scripts / 'python'}", tool


def test_the_scripts_administrate_the_broker_that_rabbitmq_server_runs(
    scripts: Path, served: dict[str, str]
) -> None:
    port = served["HAREBELL_MANAGEMENT_PORT"]
    admin = ("rabbitmqadmin", "--port", port)
    assert "queue declared" in _printed(
        scripts, served, *admin, "declare", "queue", "name=jobs", "durable=true"
    )
    assert "jobs" in _printed(scripts, served, *admin, "list", "queues")
    assert "Status of node" in _printed(scripts, served, "rabbitmqctl", "status")
    listed = _printed(scripts, served, "rabbitmqctl", "list_queues", "--formatter", "json")
    assert json.loads(listed) == [{"name": "jobs", "messages": 0}]
    assert "Ping succeeded" in _printed(scripts, served, "rabbitmq-diagnostics", "-q", "ping")
    assert "[E*] rabbitmq_management" in _printed(scripts, served, "rabbitmq-plugins", "list")
    assert "does not apply" in _printed(
        scripts, served, "rabbitmq-queues", "check_if_node_is_quorum_critical"
    )
    assert "3." in _printed(scripts, served, "rabbitmq-upgrade", "version")
    assert "implementation" in _printed(scripts, served, "harebell", "status")
