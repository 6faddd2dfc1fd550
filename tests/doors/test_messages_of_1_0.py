"""A message of AMQP 1.0 at every door: HTTP, Arrow, a job, the files and a restart."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harebell.client.blocking import connect
from harebell.client.bulk import schema_of
from harebell.wire.arrow.encode import END_OF_STREAM
from harebell.wire.v1.sections import value_section
from tests.cli.conftest import run_harebell
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import RunningBroker, running_broker
from tests.unit.management.http.asking import Api

VALUE = value_section("text")
BODIES = [b"body", VALUE]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("doors") / "data"


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def broker(data: Path, port: int) -> Iterator[RunningBroker]:
    """A broker with a message of octets and one with a value in its queue `q`."""
    with running_broker("--data-dir", str(data), "--management-port", str(port)) as started:
        with connect(started.address(), version="1-0") as connection:
            channel = connection.channel()
            for name in ("q", "moved"):
                channel.declare_queue(name, durable=True)
            about = {"delivery_mode": 2, "message_id": "m", "headers": {"a": 1, "x-b": "c"}}
            channel.publish(b"body", routing_key="q", **about)
            channel.publish(VALUE, routing_key="q", type="amqp-1.0", **about)
        yield started


def payload(row: dict[str, Any]) -> bytes:
    """The body in a row of an answer."""
    text: bytes = row["payload"].encode()
    return b64decode(text) if row["payload_encoding"] == "base64" else text


def check(properties: dict[str, Any], kind: str | None) -> None:
    """What basic says of each message."""
    assert (properties["message_id"], properties.get("type")) == ("m", kind)
    assert properties["delivery_mode"] == 2


def test_http_shows_it_as_basic_has_it(broker: RunningBroker, port: int) -> None:
    api = Api(port)
    asked = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}
    rows = api.ask("POST", "/api/queues/%2F/q/get", asked).json
    assert [payload(row) for row in rows] == BODIES
    assert [row["properties"]["headers"] for row in rows] == [{"a": 1, "x-b": "c"}] * 2
    for row, kind in zip(rows, (None, "amqp-1.0"), strict=True):
        check(row["properties"], kind)
    browsed = api.ask("GET", "/api/queues/%2F/q/browse").body.splitlines()
    assert [payload(json.loads(line)) for line in browsed] == BODIES


def test_arrow_has_it_as_basic_has_it(broker: RunningBroker) -> None:
    columns = ["value", "properties", "headers_json"]
    with connect(broker.address()) as connection:
        channel = connection.channel()
        span = channel.span("q")
        batches = list(channel.arrow_batches("q", span.first, span.end, columns=columns))
    stream = schema_of(columns) + b"".join(batch.data for batch in batches) + END_OF_STREAM
    rows = pa.ipc.open_stream(io.BytesIO(stream)).read_all().to_pylist()
    assert [row["value"] for row in rows] == BODIES
    for row, kind in zip(rows, (None, "amqp-1.0"), strict=True):
        check(row["properties"], kind)
        assert json.loads(row["headers_json"]) == {"a": 1, "x-b": "c"}


def test_moved_stopped_dumped_and_delivered_again(
    broker: RunningBroker, port: int, data: Path
) -> None:
    api = Api(port)
    api.ask("POST", "/api/queues/%2F/q/move", {"where": "", "to_queue": "moved"})

    def messages() -> int:
        return int(api.ask("GET", "/api/queues/%2F/moved").json.get("messages", 0))

    assert eventually(lambda: messages() == 2)
    assert broker.stop() == 0
    assert run_harebell("store", "check", str(data)).returncode == 0
    dumped = run_harebell("store", "dump", str(data), "--queue", "moved").stdout.splitlines()
    first, second = (json.loads(line) for line in dumped)
    assert first["body"] == "body"
    assert b64decode(second["body_base64"]) == VALUE
    assert second["properties"]["type"] == "amqp-1.0"
    with running_broker("--data-dir", str(data)) as again:
        for version in ("1-0", "0-9-1"):
            with connect(again.address(), version=version) as connection:
                taken = connection.channel().consume("moved", timeout=SECONDS)
                assert [next(taken).body for _ in BODIES] == BODIES
