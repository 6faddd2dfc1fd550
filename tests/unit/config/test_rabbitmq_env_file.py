"""rabbitmq-env.conf has assignments, which the environment takes precedence over."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.config import ConfigError, read_configuration
from harebell.config.rabbitmq_env_file import read_env_file

EXAMPLE = """\
# RabbitMQ's own example has comments
NODENAME=rabbit@orders
 export RABBITMQ_NODE_PORT="5673"   # with the prefix
BASE='/tmp'
LOG_BASE="${BASE}"/rabbit
DEFAULT_USER=ann\\ b
DEFAULT_PASS='p$1 #2'
if [ -f /etc/x ]; then . /etc/x; fi
NODE_IP_ADDRESS=$(hostname -i)
"""


def test_assignments_are_read_as_a_shell_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "rabbitmq-env.conf"
    path.write_text(EXAMPLE)
    found = read_env_file(path, {})
    assert found.values == {
        "RABBITMQ_NODENAME": "rabbit@orders",
        "RABBITMQ_NODE_PORT": "5673",
        "RABBITMQ_BASE": "/tmp",
        "RABBITMQ_LOG_BASE": "/tmp/rabbit",
        "RABBITMQ_DEFAULT_USER": "ann b",
        "RABBITMQ_DEFAULT_PASS": "p$1 #2",
    }
    assert found.warnings == [
        f"{path}, line 8 is not read: write it as NAME=value",
        f"{path}, line 9 is not read: write it as NAME=value",
    ]


def test_it_is_read_beside_the_files_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "rabbitmq.conf").write_text("heartbeat = 10\nlisteners.tcp.default = 5671\n")
    (tmp_path / "rabbitmq-env.conf").write_text("NODENAME=a@b\nNODE_PORT=5673\n")
    found = read_configuration({}, {}, tmp_path)
    config = found.config
    assert (config.node_name, config.port, config.heartbeat) == ("a@b", 5673, 10)
    assert found.places["port"].shown == f"{tmp_path / 'rabbitmq-env.conf'}, line 2: NODE_PORT"
    found = read_configuration({}, {"RABBITMQ_NODE_PORT": "5674"}, tmp_path)
    assert (found.config.port, found.config.node_name) == (5674, "a@b")
    assert found.places["port"].shown == "RABBITMQ_NODE_PORT"


def test_a_variable_names_it_and_it_names_the_other_files(tmp_path: Path) -> None:
    (tmp_path / "my.conf").write_text("heartbeat = 12\ncluster_name = $(RABBITMQ_NODENAME)\n")
    file = tmp_path / "env"
    file.write_text(f"CONFIG_FILE={tmp_path}/my\nNODENAME=x@y\nNODE_PORT=no\n")
    environ = {"RABBITMQ_CONF_ENV_FILE": str(file)}
    with pytest.raises(ConfigError, match=f"{file}, line 3: NODE_PORT must be a whole number"):
        read_configuration({}, environ)
    environ["RABBITMQ_NODE_PORT"] = "1"
    config = read_configuration({}, environ).config
    assert (config.heartbeat, config.cluster_name) == (12, "x@y")


def test_a_file_that_is_named_and_missing_is_an_error(tmp_path: Path) -> None:
    environ = {"RABBITMQ_CONF_ENV_FILE": str(tmp_path / "missing")}
    with pytest.raises(ConfigError, match="missing: No such file"):
        read_configuration({}, environ)
