"""Messages that wait until a time are listed, released and cancelled one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from harebell.admin.catalog import find
from harebell.client import blocking
from harebell.client.blocking import Channel
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker, asked, running_broker
from tests.unit.management.http.asking import Api

HOUR_MS = 3_600_000
RETRIES = {"x-retry-delays": [HOUR_MS]}


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[RunningBroker, Api]]:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        yield broker, Api(port)


@pytest.fixture
def channel(served: tuple[RunningBroker, Api]) -> Iterator[Channel]:
    with blocking.connect(served[0].address() + "/%2F") as link:
        yield link.channel()


def lines(api: Api, path: str, **options: Any) -> list[dict[str, Any]]:
    answer = api.ask("GET", path, **options)
    assert answer.status == 200, answer
    return [json.loads(line) for line in answer.body.splitlines()]


def _columns(name: str) -> set[str]:
    command = find(name)
    assert command is not None
    return set(command.columns)


def delaying(channel: Channel, name: str, kind: str = "topic") -> str:
    """Declare an exchange that delays, and a queue of that name behind it; the path of its list."""
    arguments = {"x-delayed-type": kind}
    channel.declare_exchange(name, "x-delayed-message", durable=True, arguments=arguments)
    channel.declare_queue(name, durable=True)
    channel.bind_queue(name, name, "#")
    return f"/api/exchanges/%2F/{name}/delayed"


def delayed(channel: Channel, name: str, hours: dict[bytes, int]) -> None:
    for body, hour in hours.items():
        headers = {"x-delay": hour * HOUR_MS, "n": 1}
        channel.publish(
            body, exchange=name, routing_key=f"k.{body.decode()}", headers=headers, delivery_mode=2
        )


def test_delayed_messages_are_listed_by_their_time_and_released_and_cancelled(
    served: tuple[RunningBroker, Api], channel: Channel
) -> None:
    _, api = served
    path = delaying(channel, "later")
    delayed(channel, "later", {b"c": 3, b"a": 1, b"d": 4, b"b": 2})
    rows = lines(api, f"{path}?exact=true")
    assert [row["payload"] for row in rows] == ["a", "b", "c", "d"]
    assert [row["payload"] for row in lines(api, f"{path}?limit=2")] == ["a", "b"]
    first = rows[0]
    assert first.keys() - {"header_types", "kept_headers"} == _columns("exchanges.delayed")
    due = datetime.fromisoformat(first["due"]) - datetime.now(UTC)
    assert 3_000 < due.total_seconds() <= 3_600
    assert (first["exchange"], first["routing_key"]) == ("later", "k.a")
    assert first["header_types"]["x-delay"] == "signedint"

    at = {row["payload"]: row["offset"] for row in rows}
    api.done("POST", f"{path}/{at['c']}/release")
    assert eventually(lambda: api.get("/api/queues/%2F/later")["messages"] == 1)
    (routed,) = lines(api, "/api/queues/%2F/later/browse")
    assert routed["payload"] == "c"
    api.done("DELETE", f"{path}/{at['a']}")
    assert [row["payload"] for row in lines(api, path)] == ["b", "d"]
    for gone in (at["a"], at["c"], 4_711, -1):
        for method, end in (("POST", "/release"), ("DELETE", "")):
            answer = api.ask(method, f"{path}/{gone}{end}")
            assert answer.status == 404
            assert "it may have left meanwhile" in answer.json["reason"]
    assert api.get("/api/exchanges/%2F/later")["messages_delayed"] == 2


def test_what_was_released_or_cancelled_is_not_there_after_a_restart(tmp_path: Any) -> None:
    port = free_port()
    flags = ("--management-port", str(port), "--data-dir", str(tmp_path))
    with running_broker(*flags) as broker:
        api = Api(port)
        with blocking.connect(broker.address() + "/%2F") as link:
            path = delaying(link.channel(), "later")
            delayed(link.channel(), "later", {b"a": 1, b"b": 2, b"c": 3})
            at = {row["payload"]: row["offset"] for row in lines(api, path)}
            api.done("POST", f"{path}/{at['a']}/release")
            api.done("DELETE", f"{path}/{at['b']}")
            assert eventually(lambda: api.get("/api/queues/%2F/later")["messages"] == 1)
    with running_broker(*flags):
        (left,) = lines(api, path)
        assert (left["payload"], left["offset"]) == ("c", at["c"])
        assert [row["payload"] for row in lines(api, "/api/queues/%2F/later/browse")] == ["a"]
        api.done("POST", f"{path}/{at['c']}/release")
        assert eventually(lambda: api.get("/api/queues/%2F/later")["messages"] == 2)


def test_a_released_message_that_its_queue_refuses_stays(
    served: tuple[RunningBroker, Api], channel: Channel
) -> None:
    _, api = served
    path = delaying(channel, "refused")
    channel.declare_queue("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    channel.bind_queue("full", "refused", "#")
    delayed(channel, "refused", {b"a": 1})
    (row,) = lines(api, path)
    api.done("POST", f"{path}/{row['offset']}/release")
    assert [each["offset"] for each in lines(api, path)] == [row["offset"]]
    channel.delete_queue("full")
    assert eventually(lambda: lines(api, path) == [])


@pytest.mark.parametrize(
    "arguments",
    [{}, {"x-queue-type": "quorum"}, {"x-max-priority": 3}, {"x-group-key": "tenant"}],
    ids=["classic", "quorum", "priority", "keyed"],
)
def test_messages_that_wait_for_a_retry_are_listed_and_released_and_cancelled(
    served: tuple[RunningBroker, Api], channel: Channel, arguments: dict[str, Any]
) -> None:
    _, api = served
    name = f"retried.{'.'.join(arguments)}"
    path = f"/api/queues/%2F/{name}/waiting"
    channel.declare_queue(name, durable=True, arguments={**RETRIES, **arguments})
    assert lines(api, path) == []
    for body in (b"a", b"b", b"c"):
        channel.publish(
            body, routing_key=name, priority=2, headers={"tenant": body.decode()}, delivery_mode=2
        )
    for _ in range(3):
        got = channel.get(name)
        assert got is not None
        got.reject(requeue=False)
    assert eventually(lambda: len(lines(api, path)) == 3)
    rows = lines(api, path)
    assert rows[0].keys() == _columns("queues.waiting")
    assert {row["delivery_count"] for row in rows} == {1}
    at = {row["payload"]: row["offset"] for row in rows}
    api.done("POST", f"{path}/{at['b']}/release")
    again = channel.get(name)
    assert again is not None
    assert (again.body, again.redelivered) == (b"b", True)
    again.ack()
    api.done("DELETE", f"{path}/{at['a']}")
    assert [row["payload"] for row in lines(api, path)] == ["c"]
    for gone in (at["a"], at["b"]):
        assert api.ask("POST", f"{path}/{gone}/release").status == 404
        assert api.ask("DELETE", f"{path}/{gone}").status == 404
    # A message of the same key is not held back by the one that is gone.
    channel.publish(b"d", routing_key=name, priority=2, headers={"tenant": "a"}, delivery_mode=2)
    last = channel.get(name)
    assert last is not None
    assert last.body == b"d"
    last.ack()
    assert eventually(lambda: api.get(f"/api/queues/%2F/{name}")["messages"] == 1)


@pytest.mark.parametrize("version", ["0-9-1", "0-10", "1-0"])
@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}], ids=["classic", "priority"])
def test_who_has_a_message_is_said(
    served: tuple[RunningBroker, Api], arguments: dict[str, Any], version: str
) -> None:
    broker, api = served
    name = f"held.{version}.{len(arguments)}"
    path = f"/api/queues/%2F/{name}"
    with blocking.connect(broker.address() + "/%2F") as link:
        channel = link.channel()
        channel.declare_queue(name, durable=True, arguments={**RETRIES, **arguments})
        for number in range(6):
            channel.publish(b"%d" % number, routing_key=name, priority=number % 2 and 2)
        rows = lines(api, f"{path}/browse")
        at = [row["offset"] for row in rows]
        rejected = channel.get(name)
        assert rejected is not None
        rejected.reject(requeue=False)
        claimed = channel.lease_open(name, "billing", timeout=600).epoch
        channel.lease_claim(name, "billing", claimed, 1)
        with blocking.connect(broker.address() + "/%2F", version=version) as other:
            consumer = other.channel().consume(name, tag="worker", prefetch=3)
            assert next(iter(consumer)) is not None
            assert eventually(lambda: api.get(path)["messages_unacknowledged"] == 3)
            said = [api.get(f"{path}/messages/{offset}") for offset in at]
            (worker,) = api.get(path)["consumer_details"]
    states = ["waiting", "leased", "delivered", "delivered", "delivered", "ready"]
    assert [each["state"] for each in said] == states
    assert said[0]["due"] > rows[0]["timestamp"]
    assert said[1]["group"] == "billing"
    assert {each["consumer_tag"] for each in said[2:5]} == {worker["consumer_tag"]}
    assert said[2]["channel_details"] == worker["channel_details"]
    for gone in (4_711, -1, 2**63 - 1, 2**63, 10**30):
        assert api.ask("GET", f"{path}/messages/{gone}").status == 404


def test_a_get_of_another_user_is_told_without_the_channel(
    served: tuple[RunningBroker, Api], channel: Channel
) -> None:
    _, api = served
    channel.declare_queue("got", durable=True)
    channel.publish(b"a", routing_key="got")
    assert channel.get("got") is not None
    path = "/api/queues/%2F/got/messages/0"
    reader = api.user("reader", "management", vhost="/")
    other = {"vhost": "/", "queue": "got", "offset": 0, "state": "delivered", "consumer_tag": ""}
    assert api.ask("GET", path, user=reader).json == other
    assert api.get(path)["channel_details"]["user"] == "guest"


def test_only_those_who_may_see_and_change_the_exchange_do(
    served: tuple[RunningBroker, Api], channel: Channel
) -> None:
    _, api = served
    path = delaying(channel, "guarded")
    delayed(channel, "guarded", {b"a": 1, b"b": 2})
    login = api.user("part", "management", vhost="/", pattern="^$")
    permissions = {"configure": "^$", "write": "^$", "read": "^guarded"}
    one = f"{path}/4711"

    def allowed(**more: str) -> list[int]:
        api.done("PUT", "/api/permissions/%2F/part", permissions | more)
        return [
            api.ask("GET", path, user=login).status,
            api.ask("POST", f"{one}/release", user=login).status,
            api.ask("DELETE", one, user=login).status,
        ]

    assert allowed() == [200, 401, 401]
    assert allowed(write="^guarded") == [200, 404, 401]
    assert allowed(configure="^guarded", read="^$") == [401, 401, 404]
    api.done("PUT", "/api/permissions/%2F/part", permissions)
    topics = {"exchange": "guarded", "write": ".*", "read": "^k[.]b$"}
    api.done("PUT", "/api/topic-permissions/%2F/part", topics)
    assert [row["payload"] for row in lines(api, path, user=login)] == ["b"]
    # Who may not publish with the routing key of a message does not have it routed.
    api.done("PUT", "/api/permissions/%2F/part", permissions | {"write": "^guarded"})
    api.done("PUT", "/api/topic-permissions/%2F/part", topics | {"write": "^k[.]b$"})
    at = {row["payload"]: row["offset"] for row in lines(api, path)}
    refused = api.ask("POST", f"{path}/{at['a']}/release", user=login)
    assert refused.status == 401
    assert "topic 'k.a'" in refused.json["reason"]
    assert api.ask("POST", f"{path}/{at['b']}/release", user=login).status < 300
    assert [row["payload"] for row in lines(api, path)] == ["a"]
    api.done("PUT", "/api/permissions/%2F/part", permissions)
    waiting = "/api/queues/%2F/hidden/waiting"
    channel.declare_queue("hidden", durable=True, arguments=RETRIES)
    assert api.ask("GET", waiting, user=login).status == 401
    assert api.ask("GET", "/api/queues/%2F/hidden/messages/0", user=login).status == 401
    assert api.ask("POST", f"{waiting}/1/release", user=login).status == 401
    assert api.ask("DELETE", f"{waiting}/1", user=login).status == 401


def test_a_wrong_request_says_what_is_wrong(
    served: tuple[RunningBroker, Api], channel: Channel
) -> None:
    broker, api = served
    path = delaying(channel, "wrong")
    for query, told in (("limit=0", "from 1 to 1000"), ("truncate=-1", "truncated to 0 up to")):
        answer = api.ask("GET", f"{path}?{query}")
        assert answer.status == 400
        assert told in answer.json["reason"]
    answer = api.ask("GET", "/api/exchanges/%2F/amq.topic/delayed")
    assert answer.status == 400
    assert "delays nothing: its type is topic" in answer.json["reason"]
    assert api.ask("GET", "/api/exchanges/%2F/missing/delayed").status == 404
    channel.declare_queue("kept", durable=True, arguments={"x-queue-type": "stream"})
    assert lines(api, "/api/queues/%2F/kept/waiting") == []
    said = asked(broker, "exchanges", "cancel-delayed", "wrong", "7")
    assert said.returncode == 1
    assert "no message 7 waits in exchange 'wrong'" in said.stderr
    delayed(channel, "wrong", {b"a": 1})
    (row,) = lines(api, path)
    said = asked(broker, "exchanges", "release-delayed", "wrong", str(row["offset"]))
    assert said.stdout.strip() == (
        f"message {row['offset']} of exchange 'wrong' in vhost '/' is routed now"
    )
