"""What a broker cannot store is refused at every door, so that no queue takes what will be gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harebell.client.blocking import connect
from tests.ports import free_port
from tests.running import RunningBroker
from tests.unit.management.http.asking import Api


def nested(levels: int) -> Any:
    """Tables in tables."""
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


UNSTORABLE: dict[str, Any] = {
    "a key of 256 bytes": {"k" * 256: 1},
    "an integer of 2^63": {"a": 2**63},
    "an integer of 2^64": {"a": 2**64},
    "a negative integer": {"a": -(2**63) - 1},
    "an integer in an array": {"a": [1, {"b": 2**63}]},
    "40 levels": nested(40),
    "more than a frame": {f"key-{number}": "v" * 200 for number in range(700)},
}
DOORS = {
    "queue": ("PUT", "/api/queues/%2F/q-bad", {}),
    "transient queue": ("PUT", "/api/queues/%2F/q-bad", {"durable": False}),
    "exchange": ("PUT", "/api/exchanges/%2F/x-bad", {"type": "fanout"}),
    "binding": ("POST", "/api/bindings/%2F/e/amq.topic/q/q-good", {"routing_key": "bad"}),
    "super stream": ("PUT", "/api/stream/super-streams/%2F/s-bad", {"partitions": 2}),
}


def everything(api: Api) -> Any:
    """What is declared, as lists and definitions show it."""
    definitions = api.get("/api/definitions")
    return (
        sorted(row["name"] for row in api.get("/api/queues")),
        sorted(row["name"] for row in api.get("/api/exchanges")),
        sorted((row["source"], row["routing_key"]) for row in api.get("/api/bindings")),
        {section: definitions[section] for section in ("queues", "exchanges", "bindings")},
    )


@pytest.mark.parametrize("arguments", UNSTORABLE.values(), ids=UNSTORABLE)
def test_an_import_that_cannot_be_stored_is_refused_and_confirmed_messages_survive_a_restart(
    tmp_path: Path, arguments: Any
) -> None:
    data, management = tmp_path / "data", free_port()
    flags = ("--data-dir", str(data), "--management-port", str(management))
    api = Api(management)
    with RunningBroker(*flags) as broker:
        api.done("PUT", "/api/queues/%2F/q-good", {"durable": True})
        before = everything(api)
        for door, (method, path, body) in DOORS.items():
            answer = api.ask(method, path, {**body, "arguments": arguments})
            assert answer.status == 400, (door, answer)
            assert answer.json["reason"], door
            assert everything(api) == before, door
        entry = {"vhost": "/", "name": "q-bad", "arguments": arguments}
        answer = api.ask("POST", "/api/definitions", {"queues": [entry]})
        assert answer.status == 400, answer
        assert everything(api) == before
        with connect(broker.url) as connection:
            channel = connection.channel()
            for number in range(20):
                body = b"%d" % number
                channel.publish(body, routing_key="q-good", delivery_mode=2)
        assert broker.stop() == 0
    with RunningBroker(*flags) as broker:
        assert everything(api) == before
        assert api.get("/api/queues/%2F/q-good")["messages"] == 20
        assert "Traceback" not in broker.log
