"""Verbs of RabbitMQ's tools on a RabbitMQ and on Harebell: exit codes, columns, headers, formats.

Each step is run by RabbitMQ's own tool on a node of RabbitMQ 3.10.8, and by ours on Harebell. The
exit codes are equal for every step. Of the output, names of nodes, ports, paths, times and counts
of octets are left out; what is left is equal for the steps without a mark. `SHAPE` compares the
names of members and columns, `CODE` the exit code alone: there RabbitMQ prints what it has itself,
such as its version, or both print an error in their own words.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.compat.conftest import with_package
from tests.interop.rabbitmq import TOOL_SECONDS, RabbitNode
from tests.running import RunningBroker, running_broker

SAME, SHAPE, CODE = "same", "shape", "code"
_TOOLS = Path("/usr/lib/rabbitmq/bin")
_STEPS = """
same  rabbitmqctl add_vhost orders
same  rabbitmqctl add_user ann s3same-open
same  rabbitmqctl set_user_tags ann monitoring management
same  rabbitmqctl set_permissions -p orders ann ^a .* .*
same  rabbitmqctl set_topic_permissions -p orders ann amq.topic ^b ^c
same  rabbitmqctl list_users
same  rabbitmqctl list_users -q
same  rabbitmqctl list_users -s
same  rabbitmqctl list_users --formatter json
same  rabbitmqctl list_users --formatter csv
same  rabbitmqctl list_permissions -p orders --formatter csv
same  rabbitmqctl list_user_topic_permissions ann
same  rabbitmqctl authenticate_user ann s3same-open
same  rabbitmqctl set_policy -p orders short ^q '{"max-length":5}' --priority 3 --apply-to queues
same  rabbitmqctl list_policies -p orders --formatter json
same  rabbitmqctl set_operator_policy -p orders cap .* '{"max-length":9}'
same  rabbitmqctl clear_policy -p orders short
same  rabbitmqctl set_vhost_limits -p orders '{"max-queues":7}'
same  rabbitmqctl list_vhost_limits -p orders
same  rabbitmqctl set_user_limits ann '{"max-connections":4}'
same  rabbitmqctl list_user_limits --user ann
same  rabbitmqctl set_global_parameter colour '"blue"'
same  rabbitmqctl list_global_parameters name value --formatter csv
same  rabbitmqctl list_exchanges -p orders name type durable --formatter json
same  rabbitmqctl list_bindings -p orders
same  rabbitmqctl list_queues -p orders name durable messages --formatter csv
same  rabbitmqctl list_connections
same  rabbitmqctl list_unresponsive_queues
code  rabbitmqctl list_queues nosuch
code  rabbitmqctl add_user
code  rabbitmqctl delete_user nobody
same  rabbitmqctl set_log_level debug
same  rabbitmqctl set_log_level nosuch
same  rabbitmqctl set_vm_memory_high_watermark absolute 2GB
same  rabbitmqctl set_vm_memory_high_watermark 1.5
same  rabbitmqctl set_vm_memory_high_watermark x
same  rabbitmqctl set_disk_free_limit 10MB
same  rabbitmqctl set_disk_free_limit x
same  rabbitmqctl restart_vhost -p nosuch
same  rabbitmqctl await_startup
shape rabbitmqctl cluster_status --formatter json
code  rabbitmqctl status
same  rabbitmq-diagnostics check_running
same  rabbitmq-diagnostics is_running
same  rabbitmq-diagnostics check_alarms
same  rabbitmq-diagnostics alarms
same  rabbitmq-diagnostics check_virtual_hosts
same  rabbitmq-diagnostics check_port_listener x
code  rabbitmq-diagnostics check_protocol_listener amqp
same  rabbitmq-diagnostics check_certificate_expiration --within 1 --unit days
same  rabbitmq-diagnostics check_certificate_expiration --unit x
shape rabbitmq-diagnostics log_location --formatter json
same  rabbitmq-diagnostics log_tail_stream --duration 1
same  rabbitmq-diagnostics resolve_hostname localhost
same  rabbitmq-diagnostics resolve_hostname no.such.host.invalid
shape rabbitmq-diagnostics tls_versions --formatter json
same  rabbitmq-queues check_if_node_is_quorum_critical
same  rabbitmq-queues check_if_node_is_mirror_sync_critical --formatter json
same  rabbitmq-upgrade await_online_quorum_plus_one
same  rabbitmqctl reset
same  rabbitmqctl stop_app
same  rabbitmq-diagnostics check_running
same  rabbitmq-diagnostics is_running
same  rabbitmqctl list_queues
same  rabbitmqctl reset
same  rabbitmqctl start_app
same  rabbitmqctl list_users
same  rabbitmqctl list_vhosts
"""
"""What is compared, and what is run on both, in this order."""

Run = Callable[[list[str]], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def rabbit() -> Iterator[RabbitNode]:
    node = RabbitNode()
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture(scope="module")
def logging_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with a log file, as RabbitMQ has one."""
    directory = tmp_path_factory.mktemp("logs")
    with running_broker("--log-dir", str(directory), "--log-file", "harebell.log") as started:
        yield started


def _run(words: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    # Erlang would leave a dump in the directory of the tests when a tool fails.
    quiet = {**env, "ERL_CRASH_DUMP_SECONDS": "0"}
    return subprocess.run(
        words, capture_output=True, text=True, env=quiet, timeout=TOOL_SECONDS, check=False
    )


_VARYING = (
    (re.compile(r"/\S+/\S+\.log"), "FILE"),
    (re.compile(r"\b(hb\d+|harebell)@[\w.-]+"), "NODE"),
    (re.compile(r"(registered with epmd|answers on its control socket)"), "ANSWERS"),
    (re.compile(r"\x1b\[\d*m"), ""),
)


def _lines(text: str) -> list[str]:
    """The lines of an output without what differs from broker to broker."""
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    found = [line.rstrip() for line in text.strip().splitlines()]
    # Rows have no order in RabbitMQ.
    return sorted(_members(line) for line in found)


def _members(line: str) -> str:
    """A line; of JSON, the members in one order."""
    try:
        return json.dumps(json.loads(line.removeprefix(",")), sort_keys=True)
    except ValueError:
        return line


def _shape(text: str) -> object:
    return sorted(json.loads(text))


@pytest.mark.timeout(3_600)  # RabbitMQ's tools start an Erlang machine for each step
def test_verbs_have_the_exit_codes_and_the_output_of_rabbitmq(
    rabbit: RabbitNode, logging_broker: RunningBroker, shims: Path
) -> None:
    ours_env = {**with_package(), "HAREBELL_DATA_DIR": str(logging_broker.data_dir)}
    theirs_env = rabbit.tool_environment
    wrong = []
    with ThreadPoolExecutor(2) as both:
        for step in _STEPS.strip().splitlines():
            how, command_line = step.split(maxsplit=1)
            tool, *words = shlex.split(command_line)
            running = both.submit(_run, [str(_TOOLS / tool), *words], theirs_env)
            ours = _run([str(shims / tool), *words], ours_env)
            difference = _difference(how, running.result(), ours)
            if difference:
                wrong.append(f"{command_line}: {difference}")
    assert wrong == [], "\n".join(wrong)


def _difference(
    how: str,
    theirs: subprocess.CompletedProcess[str],
    ours: subprocess.CompletedProcess[str],
) -> str:
    if theirs.returncode != ours.returncode:
        return f"exit codes {theirs.returncode} and {ours.returncode}\n{theirs}\n{ours}"
    if how == SAME:
        for what in ("stdout", "stderr"):
            there, here = _lines(getattr(theirs, what)), _lines(getattr(ours, what))
            if there != here:
                return f"{what}\n  RabbitMQ {there}\n  Harebell {here}"
    if how == SHAPE and _shape(theirs.stdout) != _shape(ours.stdout):
        return f"members {_shape(theirs.stdout)} and {_shape(ours.stdout)}"
    return ""
