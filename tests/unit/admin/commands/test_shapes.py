"""Answers have every member that RabbitMQ 3.10.8 sends, with a value of its type.

The shapes beside this file are those of a running RabbitMQ; a name stands for the type of a value.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import publish

SHAPES: dict[str, Any] = json.loads(
    Path(__file__).with_name("rabbitmq_shapes.json").read_text(encoding="utf-8")
)
_TYPES = {"int": (int, float), "float": (int, float), "str": (str,), "bool": (bool,)}
_MAY_BE_NULL = {
    "idle_since",
    "ssl_cipher",
    "ssl_hash",
    "ssl_key_exchange",
    "ssl_protocol",
    "peer_cert_issuer",
    "peer_cert_subject",
    "peer_cert_validity",
}
"""What RabbitMQ leaves out or sends as a text where there is nothing to say."""
_OWN = {"avg_ack_egress_rate", "avg_ack_ingress_rate", "avg_egress_rate", "avg_ingress_rate"} | {
    *("delta", "next_deliver_seq_id", "next_seq_id", "q1", "q2", "q3", "q4", "target_ram_count")
}
"""Members of `backing_queue_status` about the inside of RabbitMQ's queues."""
_GIVEN = {"client_properties"}
"""What the client of the test has chosen."""


def differences(shape: Any, answer: Any, place: str = "") -> list[str]:
    """What an answer lacks, or has with another type, as paths."""
    if isinstance(shape, dict):
        if not isinstance(answer, dict):
            return [f"{place}: no object"]
        return [
            found
            for name, inner in shape.items()
            if name not in _OWN | _GIVEN
            for found in (
                differences(inner, answer[name], f"{place}.{name}")
                if name in answer
                else [f"{place}.{name}: missing"]
            )
        ]
    if isinstance(shape, list):
        if not isinstance(answer, list):
            return [f"{place}: no list"]
        return [
            found
            # RabbitMQ's pair `linger` has two types, and a shape only that of the first.
            for each in (
                answer[: len(answer) if isinstance(shape[0], dict) else 1] if shape else []
            )
            for found in differences(shape[0], each, f"{place}[]")
        ]
    if shape == "NoneType" or (answer is None and place.rsplit(".")[-1] in _MAY_BE_NULL):
        return []
    return [] if isinstance(answer, _TYPES[shape]) else [f"{place}: {answer!r} is no {shape}"]


@pytest.fixture(scope="module")
def site() -> Site:
    """A broker with a queue, a consumer, and traffic of every kind."""
    site = Site()
    peer = site.world.peer()
    peer.ask(m.ConfirmSelect())
    peer.ask(m.QueueDeclare("q1", arguments={"x-max-length": 10}))
    peer.ask(m.BasicConsume(queue="q1", consumer_tag="c"))
    site.look()
    peer.give(publish(b"1", key="q1") + publish(b"2", key="none"))
    peer.send(m.BasicAck(1))
    site.look()
    return site


NODE = "harebell@localhost"
ASKED: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/overview", "overview.show", {}),
    ("/api/nodes", "nodes.list", {}),
    ("/api/nodes/rabbit@localhost", "nodes.show", {"name": NODE}),
    ("/api/nodes/rabbit@localhost/memory", "nodes.memory", {"name": NODE}),
    ("/api/queues", "queues.list", {}),
    ("/api/queues/%2F/q1", "queues.show", {"vhost": "/", "name": "q1"}),
    (
        "/api/queues?disable_stats=true&enable_queue_totals=true",
        "queues.list",
        {"disable_stats": True, "enable_queue_totals": True},
    ),
    ("/api/exchanges", "exchanges.list", {}),
    ("/api/exchanges/%2F/amq.topic", "exchanges.show", {"vhost": "/", "name": "amq.topic"}),
    ("/api/connections", "connections.list", {}),
    ("/api/connections/:connection", "connections.show", {"name": "CONNECTION"}),
    ("/api/channels", "channels.list", {}),
    ("/api/channels/:connection%20%281%29", "channels.show", {"name": "CONNECTION (1)"}),
    ("/api/consumers", "consumers.list", {}),
    ("/api/vhosts", "vhosts.list", {}),
]


@pytest.mark.parametrize(("route", "command", "fields"), ASKED, ids=[each[0] for each in ASKED])
def test_an_answer_has_what_rabbitmq_sends(
    site: Site, route: str, command: str, fields: dict[str, Any]
) -> None:
    (connection,) = site.world.registry.connections
    name = connection.peer.connection_name
    given = {
        key: value.replace("CONNECTION", name) if isinstance(value, str) else value
        for key, value in fields.items()
    }
    answer = site.run(command, **given)
    assert answer
    assert differences(SHAPES[route], answer) == []
    json.dumps(answer)


def test_every_shape_is_compared() -> None:
    assert {route for route, _, _ in ASKED} == set(SHAPES)


def test_the_comparison_finds_what_is_missing_or_wrong() -> None:
    shape = {"a": "int", "b": [{"c": "str"}], "d": {"e": "bool"}}
    good = {"a": 1, "b": [{"c": "x"}], "d": {"e": True}, "more": 1}
    assert differences(shape, good) == []
    bad = {"a": "1", "b": [{}], "d": []}
    assert differences(shape, bad) == [
        ".a: '1' is no int",
        ".b[].c: missing",
        ".d: no object",
    ]
