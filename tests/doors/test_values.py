"""Whatever a client can send, every list, export, message and trace can show, on every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from harebell.admin.catalog import commands
from harebell.client import blocking
from harebell.management.http.routes import Route, routes_of
from harebell.wire.v09.fields import LongString, Timestamp
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, asked, running_broker
from tests.unit.management.http.asking import Api, segment

NAME = "odd"
OCTETS = b"M\xfcn"
KEY = OCTETS.decode(errors="surrogateescape")
ODD: dict[str, Any] = {
    "x-text": LongString(OCTETS),
    "x-octets": OCTETS,
    "x-late": Timestamp(2**64 - 1),
    "x-ms": Timestamp(1_700_000_000_000),
    "x-time": datetime(2013, 1, 1, tzinfo=UTC),
    "x-decimal": Decimal("12.50"),
    "x-nan": float("nan"),
    "x-infinite": float("-inf"),
    "x-large": -(2**63),
    "x-none": None,
    "x-list": [1, [LongString(OCTETS)], {KEY: None}],
    KEY: True,
    "x-marked": {"$timestamp": "no time"},
}
PLACES = {
    "vhost": "/",
    "user": "guest",
    "source": NAME,
    "destination": NAME,
    "kind": "q",
    "exchange": NAME,
    "queue": NAME,
    "host": "localhost",
}
"""The values of arguments in paths; others are odd, too."""
ROUTES = [route for route in routes_of(commands()) if route.method == "GET"]


class World:
    """A broker with odd values wherever clients can put them.

    Args:
        broker: the broker.
        api: its HTTP API.
        channel: of a client with odd properties.
    """

    def __init__(self, broker: RunningBroker, api: Api, channel: blocking.Channel) -> None:
        self.broker = broker
        self.api = api
        self.channel = channel

    def publish(self) -> None:
        """Publish a message with odd headers, key and properties."""
        self.channel.publish(
            OCTETS,
            exchange=NAME,
            routing_key=NAME,
            headers=ODD,
            timestamp=Timestamp(1_700_000_000_000),
            correlation_id=KEY,
        )


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    port = free_port()
    with (
        running_broker("--management-port", str(port)) as broker,
        blocking.connect(broker.address(), properties=dict(ODD)) as link,
    ):
        channel = link.channel()
        channel.declare_queue(NAME, durable=True, arguments=ODD)
        channel.declare_exchange(NAME, "headers", durable=True, arguments=ODD)
        channel.bind_queue(NAME, NAME, "k", arguments={**ODD, "x-match": "any-with-x"})
        channel.bind_queue(NAME, NAME, NAME)
        channel.declare_queue("taken")
        consumer = channel.consume("taken", arguments=ODD)
        yield World(broker, Api(port), channel)
        consumer.cancel()


def path_of(route: Route) -> str:
    return "/" + "/".join(
        segment(PLACES.get(each[1:-1], NAME)) if each.startswith("{") else each
        for each in route.segments
    )


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: " ".join(route.segments))
def test_a_get_shows_odd_values_or_says_what_is_missing(world: World, route: Route) -> None:
    answer = world.api.ask("GET", path_of(route))
    assert answer.status < 500 or "failed" in answer.json.get("status", ""), answer
    for line in answer.body.splitlines():
        json.loads(line)


def test_arguments_are_shown_in_full(world: World) -> None:
    expected = {
        "x-text": "base64:Tfxu",
        "x-octets": "base64:Tfxu",
        "x-late": 2**64 - 1,
        "x-ms": 1_700_000_000_000,
        "x-time": 1_356_998_400,
        "x-decimal": 12.5,
        "x-nan": "nan",
        "x-infinite": "-inf",
        "x-large": -(2**63),
        "x-none": None,
        "x-list": [1, ["base64:Tfxu"], {"base64:Tfxu": None}],
        "base64:Tfxu": True,
        "x-marked": {"$timestamp": "no time"},
    }
    assert world.api.get(f"/api/queues/%2F/{NAME}")["arguments"] == expected
    assert world.api.get(f"/api/exchanges/%2F/{NAME}")["arguments"] == expected
    bindings = world.api.get(f"/api/queues/%2F/{NAME}/bindings")
    assert {**expected, "x-match": "any-with-x"} in [each["arguments"] for each in bindings]
    (consumer,) = world.api.get("/api/consumers")
    assert consumer["arguments"] == expected
    shown = [each["client_properties"] for each in world.api.get("/api/connections")]
    assert any(expected.items() <= each.items() for each in shown)


def test_definitions_with_odd_values_come_back_as_they_were(world: World) -> None:
    exported = world.api.get("/api/definitions/%2F")
    queue = next(each for each in exported["queues"] if each["name"] == NAME)
    assert queue["arguments"]["x-text"] == {"$text": "Tfxu"}
    world.api.done("PUT", "/api/vhosts/copy")
    mine = {
        kind: [
            {**each, "vhost": "copy"}
            for each in exported[kind]
            if NAME in (each.get("name"), each.get("source"))
        ]
        for kind in ("queues", "exchanges", "bindings")
    }
    world.api.done("POST", "/api/definitions", mine)
    again = world.api.get("/api/definitions/copy")
    for kind, given in mine.items():
        assert [{**each, "vhost": "copy"} for each in again[kind]] == given
    with blocking.connect(world.broker.address() + "/copy") as link:
        link.channel().declare_queue(NAME, durable=True, arguments=ODD)


def test_messages_with_odd_values_are_got_browsed_and_traced(world: World) -> None:
    world.publish()
    for _ in range(2):
        path = f"/api/queues/%2F/{NAME}"
        lines = world.api.ask("GET", f"{path}/browse").body.splitlines()
        body = {"count": 9, "ackmode": "ack_requeue_true", "encoding": "auto"}
        got = world.api.ask("POST", f"{path}/get", body).json
        for (row,) in ([json.loads(line) for line in lines], got):
            assert row["properties"]["correlation_id"] == "base64:Tfxu"
            assert row["properties"]["headers"]["x-ms"] == 1_700_000_000_000
            assert row["properties"]["headers"]["base64:Tfxu"] is True
        # The next time each value is in the headers of a trace.
        world.api.done("PUT", "/api/vhosts/%2F", {"tracing": True})
    world.channel.declare_queue("traces")
    world.channel.bind_queue("traces", "amq.rabbitmq.trace", "#")
    world.publish()
    body = {"count": 9, "ackmode": "ack_requeue_true", "encoding": "auto"}
    answer = world.api.ask("POST", "/api/queues/%2F/traces/get", body)
    assert [row["routing_key"] for row in answer.json] == [f"publish.{NAME}"]
    world.api.done("PUT", "/api/vhosts/%2F", {"tracing": False})
    world.channel.purge_queue(NAME)


@pytest.mark.parametrize(
    "words",
    [
        ("queues", "list"),
        ("queues", "list", "--json"),
        ("exchanges", "list", "--json"),
        ("bindings", "list", "--json"),
        ("connections", "list", "--json"),
        ("consumers", "list", "--json"),
        ("definitions", "export", "-"),
        ("queues", "browse", NAME),
        ("queues", "browse", NAME, "--json"),
    ],
    ids=" ".join,
)
def test_the_command_line_shows_odd_values(world: World, words: tuple[str, ...]) -> None:
    world.publish()
    done = asked(world.broker, *words)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout.strip() not in ("", "[]")
    world.channel.purge_queue(NAME)


def test_a_client_gets_and_prints_odd_values(world: World) -> None:
    world.publish()
    done = asked_at(world.broker, "get", "-q", NAME, "-o", "json")
    assert done["properties"]["correlation_id"] == "base64:Tfxu"
    assert done["headers"]["x-nan"] == "nan"
    assert done["headers"]["base64:Tfxu"] is True
    assert eventually(lambda: world.api.get(f"/api/queues/%2F/{NAME}")["messages"] == 0)


def asked_at(broker: RunningBroker, *words: str) -> Any:
    """Run a command of a client; the JSON that it prints."""
    import subprocess

    from tests.running import command, environment

    done = subprocess.run(
        [command(), *words, "--url", broker.address()],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return json.loads(done.stdout)


def test_a_name_on_the_command_line_that_is_no_utf_8_is_refused_and_not_altered(
    world: World,
) -> None:
    done = asked(world.broker, "queues", "declare", KEY)
    assert (done.returncode, "is not UTF-8" in done.stderr) == (1, True), done
