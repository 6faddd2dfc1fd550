"""Testcontainers' RabbitMQ module with the entrypoint of the image in RabbitMQ's place.

The library is the real one; the engine that it talks to runs the entrypoint as a process, because
there is no container runtime here (`container_engine.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pika
import pytest

from tests.packaging.container_engine import Engine, engine_at
from tests.patience import SECONDS
from tests.ports import free_port

ROOT = Path(__file__).parents[2]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    commands = tmp_path / "commands"
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("HAREBELL_", "RABBITMQ_", "PYTHON"))
    }
    clean["PYTHONPATH"] = str(ROOT / "packaging" / "rabbitmq-compat" / "src")
    shims = [sys.executable, "-m", "harebell", "compat", "install-shims", str(commands)]
    subprocess.run(shims, timeout=SECONDS, env=clean, check=True, capture_output=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "rabbitmq.conf").touch()
    variables = {
        **clean,
        "PATH": f"{commands}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HAREBELL_CONFIG": str(tmp_path / "etc"),
        "HAREBELL_DATA_DIR": str(tmp_path / "data"),
        "HAREBELL_MANAGEMENT_PORT": str(free_port()),
        "HAREBELL_METRICS_PORT": "0",
    }
    made = Engine(variables, tmp_path)
    with engine_at(made) as address:
        monkeypatch.setenv("DOCKER_HOST", address)
        monkeypatch.setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
        yield made


def test_its_rabbitmq_module_starts_the_broker_waits_for_it_and_uses_it(engine: Engine) -> None:
    from testcontainers.community.rabbitmq import RabbitMqContainer

    port = free_port()
    with RabbitMqContainer("harebell", port=port, vhost="orders") as broker:
        # The variables are those that the module sets, and nobody else.
        (container,) = engine.created.values()
        assert container.variables["RABBITMQ_DEFAULT_USER"] == "guest"
        with pika.BlockingConnection(broker.get_connection_params()) as connection:
            channel = connection.channel()
            channel.queue_declare("jobs")
            channel.basic_publish("", "jobs", b"one")
            assert channel.basic_get("jobs", auto_ack=True)[2] == b"one"
        listed = broker.exec(["rabbitmqctl", "list_queues", "-p", "orders", "--quiet"])
        assert listed.exit_code == 0, listed.output
        assert b"jobs" in listed.output
    assert container.process is not None
    assert container.process.returncode == 0


def test_the_line_that_the_modules_of_other_languages_wait_for_ends_their_wait(
    engine: Engine,
) -> None:
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import LogMessageWaitStrategy

    # Java, Node.js, Go and .NET wait for this line of RabbitMQ's log.
    line = LogMessageWaitStrategy(".*Server startup complete.*").with_startup_timeout(60)
    port = free_port()
    broker = DockerContainer("harebell").with_exposed_ports(port).waiting_for(line)
    with broker.with_env("RABBITMQ_NODE_PORT", str(port)):
        parameters = pika.ConnectionParameters("127.0.0.1", port)
        with pika.BlockingConnection(parameters) as connection:
            assert connection.is_open
    assert len(engine.created) == 1
