"""The container: its files are valid, and its entrypoint starts a broker that replaces RabbitMQ.

The entrypoint runs as an ordinary process here, with RabbitMQ's commands on PATH.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import compose_spec
import pika
import pytest

from tests.patience import SECONDS
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
CONTAINER = ROOT / "packaging" / "container"
ENTRYPOINT = CONTAINER / "entrypoint.sh"
_SECONDS = 60.0


@dataclass
class Started:
    """A broker that the entrypoint started, and the variables that its container would have."""

    variables: dict[str, str]
    log: Path

    def printed(self, *words: str) -> str:
        done = subprocess.run(
            [str(ENTRYPOINT), *words],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with RabbitMQ's commands and harebell."""
    directory = tmp_path_factory.mktemp("commands")
    subprocess.run(
        [sys.executable, "-m", "harebell", "compat", "install-shims", str(directory)],
        timeout=SECONDS,
        env=_clean(),
        check=True,
        capture_output=True,
    )
    return directory


def _clean() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HAREBELL_", "RABBITMQ_", "PYTHON"))
    }
    return {**kept, "PYTHONPATH": str(ROOT / "packaging" / "rabbitmq-compat" / "src")}


def _variables(commands: Path, directory: Path) -> dict[str, str]:
    path = f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **_clean(),
        "PATH": path,
        "HAREBELL_CONFIG": str(directory / "etc"),
        "HAREBELL_DATA_DIR": str(directory / "data"),
        "HAREBELL_MANAGEMENT_PORT": str(free_port()),
        "HAREBELL_METRICS_PORT": "0",
        "RABBITMQ_NODE_PORT": str(free_port()),
    }


@pytest.fixture(scope="module")
def started(commands: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    directory = tmp_path_factory.mktemp("container")
    (directory / "etc" / "conf.d").mkdir(parents=True)
    (directory / "etc" / "rabbitmq.conf").write_text("heartbeat = 25\n")
    (directory / "etc" / "conf.d" / "20-limits.conf").write_text("channel_max = 77\n")
    (directory / "etc" / "enabled_plugins").write_text("[rabbitmq_management].\n")
    variables = {
        **_variables(commands, directory),
        "RABBITMQ_DEFAULT_USER": "guest",
        "RABBITMQ_DEFAULT_PASS": "from the environment",
        "RABBITMQ_DEFAULT_VHOST": "tests",
    }
    log = directory / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(ENTRYPOINT), "rabbitmq-server"], env=variables, stdout=output, stderr=output
        )
    try:
        until = time.monotonic() + _SECONDS
        while "Server startup complete" not in log.read_text():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield Started(variables, log)
    finally:
        process.terminate()
        assert process.wait(_SECONDS) == 0


def test_the_user_and_vhost_of_the_environment_can_be_used(started: Started) -> None:
    parameters = pika.ConnectionParameters(
        "127.0.0.1",
        int(started.variables["RABBITMQ_NODE_PORT"]),
        "tests",
        pika.PlainCredentials("guest", "from the environment"),
    )
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.queue_declare("jobs", durable=True)
        channel.basic_publish("", "jobs", b"one")
        assert channel.basic_get("jobs", auto_ack=True)[2] == b"one"
        assert connection._impl.params.channel_max == 77


def test_a_container_listens_on_all_addresses_and_reads_the_files(started: Started) -> None:
    for name in ("RABBITMQ_NODE_PORT", "HAREBELL_MANAGEMENT_PORT"):
        assert f"0.0.0.0:{started.variables[name]}" in started.log.read_text()
    environment = started.printed("rabbitmqctl", "environment")
    assert re.search(r"heartbeat\W+25\b", environment), environment
    assert '"loopback_users":[]' in environment, environment
    listed = started.printed("rabbitmq-diagnostics", "-q", "listeners")
    assert started.variables["RABBITMQ_NODE_PORT"] in listed


def test_commands_of_rabbitmq_and_the_health_check_work(started: Started) -> None:
    assert "guest" in started.printed("rabbitmqctl", "list_users")
    assert "Ping succeeded" in started.printed("rabbitmq-diagnostics", "-q", "ping")
    assert "rabbitmq_management" in started.printed("rabbitmq-plugins", "list")
    login = ("-u", "guest", "-p", "from the environment")
    port = started.variables["HAREBELL_MANAGEMENT_PORT"]
    assert "tests" in started.printed("rabbitmqadmin", "--port", port, *login, "list", "vhosts")
    healthcheck = ("harebell", "health", "--stage", "running")
    started.printed(*healthcheck)
    quoted = ", ".join(f'"{word}"' for word in healthcheck)
    assert f"CMD [{quoted}]" in (CONTAINER / "Containerfile").read_text()


def test_a_volume_that_cannot_be_written_stops_the_start_with_a_sentence(
    commands: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    variables = _variables(commands, tmp_path)
    variables["HAREBELL_DATA_DIR"] = str(tmp_path / "file" / "data")
    done = subprocess.run(
        [str(ENTRYPOINT), "rabbitmq-server"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot write to the data directory" in done.stderr
    assert "give the volume to that user" in done.stderr


def test_hadolint_has_nothing_to_say_about_the_containerfile() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run(
        [str(hadolint), "--no-color", str(CONTAINER / "Containerfile")],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_compose_file_is_valid_and_publishes_what_the_image_exposes() -> None:
    composed = compose_spec.PyCompose.from_yaml((CONTAINER / "compose.yaml").read_text())
    composed.validate()
    assert composed.service_names() == ["broker"]
    exposed = next(
        line.split()[1:]
        for line in (CONTAINER / "Containerfile").read_text().splitlines()
        if line.startswith("EXPOSE")
    )
    assert exposed == ["5671", "5672", "15671", "15672", "15692"]


def test_files_that_the_containerfile_copies_are_not_ignored() -> None:
    copied = [
        line.split()[1:-1]
        for line in (CONTAINER / "Containerfile").read_text().splitlines()
        if line.startswith("COPY") and "--from" not in line
    ]
    sources = [word for words in copied for word in words if not word.startswith("--")]
    kept = (CONTAINER / "Containerfile.dockerignore").read_text().splitlines()
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source.split('/')[0]}" in kept, source
