"""Definitions between a real RabbitMQ and Harebell, in both directions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from harebell.client.blocking import connect
from tests.cli.conftest import run_harebell
from tests.interop.rabbitmq import RabbitNode
from tests.patience import eventually
from tests.running import RunningBroker, running_broker


@pytest.fixture(scope="module")
def node() -> Iterator[RabbitNode]:
    started = RabbitNode()
    try:
        started.start()
        yield started
    finally:
        started.stop()


def done(broker: RunningBroker, *arguments: str) -> str:
    env = {"HAREBELL_DATA_DIR": str(broker.data_dir)}
    result = run_harebell(*arguments, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().strip()


def fill(node: RabbitNode) -> None:
    """Declare something of everything."""
    node.ctl("add_vhost", "v", "--description", "for reports", "--tags", "a,b")
    node.ctl("set_vhost_limits", "-p", "v", '{"max-queues": 50}')
    node.ctl("add_user", "ann", "secret")
    node.ctl("set_user_tags", "ann", "monitoring")
    node.ctl("set_user_limits", "ann", '{"max-connections": 7}')
    for vhost in ("/", "v"):
        node.ctl("set_permissions", "-p", vhost, "ann", ".*", ".*", ".*")
    node.ctl("set_topic_permissions", "-p", "v", "ann", "amq.topic", "^{username}", ".*")
    node.ctl("set_policy", "p", "^q", '{"max-length": 5}', "--apply-to", "queues")
    node.ctl("set_operator_policy", "o", "^q", '{"max-length": 3}', "--apply-to", "queues")
    node.ctl("set_global_parameter", "g", '{"a": 1}')
    connection = pika.BlockingConnection(pika.URLParameters(node.url))
    channel = connection.channel()
    channel.exchange_declare("x", "topic", durable=True, arguments={"alternate-exchange": "ae"})
    channel.exchange_declare("y", "headers", durable=True)
    # RabbitMQ writes no internal exchanges, and does write the bindings to them.
    channel.exchange_declare("hidden", "fanout", durable=True, internal=True)
    channel.exchange_bind("hidden", "x", "c")
    channel.exchange_bind("y", "x", "b.*")
    channel.queue_declare("q", durable=True, arguments={"x-max-priority": 5})
    channel.queue_declare("qq", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_declare("", durable=True)
    channel.queue_bind("q", "x", "a.#", {"k": 1})
    channel.queue_bind("qq", "y", "", {"x-match": "any", "kind": "invoice"})
    connection.close()


def exported(node: RabbitNode, path: Path) -> dict[str, Any]:
    node.ctl("export_definitions", str(path))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def things(document: dict[str, Any], section: str, *members: str) -> list[tuple[str, ...]]:
    """Some members of the entries of a section, in an order of their own."""
    return sorted(
        tuple(json.dumps(entry.get(member), sort_keys=True) for member in members)
        for entry in document[section]
    )


SAME = {
    "users": ("name", "password_hash", "hashing_algorithm", "tags", "limits"),
    "permissions": ("user", "vhost", "configure", "write", "read"),
    "topic_permissions": ("user", "vhost", "exchange", "write", "read"),
    "policies": ("name", "vhost", "pattern", "apply-to", "priority", "definition"),
    "queues": ("name", "vhost", "durable", "auto_delete", "arguments"),
    "exchanges": ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments"),
    "bindings": (
        *("source", "vhost", "destination", "destination_type", "routing_key"),
        "arguments",
    ),
}


def test_definitions_go_from_rabbitmq_to_harebell_and_back(
    node: RabbitNode, tmp_path: Path
) -> None:
    fill(node)
    path = tmp_path / "rabbit.json"
    theirs = exported(node, path)
    (dangling,) = [each for each in theirs["bindings"] if each["destination"] == "hidden"]
    theirs["bindings"].remove(dangling)
    with running_broker("--load-definitions", str(path)) as broker:
        said = "left out: bindings: source 'x' destination 'hidden' routing_key 'c'"
        assert eventually(lambda: said in broker.log), broker.log
        url = f"amqp://ann:secret@127.0.0.1:{broker.port}/%2f"
        with connect(url) as connection:
            channel = connection.channel()
            channel.publish(b"m", exchange="x", routing_key="a.b")
            assert channel.declare_queue("q", passive=True).message_count == 1
        ours_path = tmp_path / "ours.json"
        done(broker, "definitions", "export", str(ours_path))
        ours = json.loads(ours_path.read_text())
    for section, members in SAME.items():
        for entry in theirs[section]:
            entry.setdefault("internal", False)
            entry.setdefault("limits", {})
        assert things(ours, section, *members) == things(theirs, section, *members), section
    operators = [each for each in ours["parameters"] if each["component"] == "operator_policy"]
    assert [each["name"] for each in operators] == ["o"]
    assert [each["description"] for each in ours["vhosts"]][1] == "for reports"
    node.ctl("stop_app")
    node.ctl("reset")
    node.ctl("start_app")
    node.ctl("await_startup")
    node.ctl("import_definitions", str(ours_path))
    again = exported(node, tmp_path / "again.json")
    # RabbitMQ passes over queues whose names it made up.
    ours["queues"] = [each for each in ours["queues"] if not each["name"].startswith("amq.gen-")]
    for section, members in SAME.items():
        for entry in again[section]:
            entry.setdefault("internal", False)
            entry.setdefault("limits", {})
        assert things(again, section, *members) == things(ours, section, *members), section
    limits = [each for each in again["parameters"] if each["component"] == "vhost-limits"]
    assert [each["value"] for each in limits] == [{"max-queues": 50}]
    connection = pika.BlockingConnection(
        pika.URLParameters(node.url.replace("guest:guest", "ann:secret"))
    )
    connection.channel().queue_declare("q", passive=True)
    connection.close()
