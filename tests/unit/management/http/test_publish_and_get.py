"""Over HTTP a publish is a publish and a get is a get: nothing is lost, and nothing passes by."""

from __future__ import annotations

import json
import socket
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from harebell.admin.limits import HTTP_GET_BYTES
from harebell.client import blocking
from harebell.wire.v09.fields import LongString, Timestamp
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import RunningBroker, asked, running_broker, set_watermark
from tests.unit.management.http.asking import Api, Response, segment

MS = 1_700_000_000_000
ODD = LongString(b"M\xfcn")
PUBLISH = "/api/exchanges/%2F/{}/publish"


class Both:
    """A broker, its API, and a channel to it.

    Args:
        broker: the broker.
        api: its HTTP API.
        channel: opened by guest.
    """

    def __init__(self, broker: RunningBroker, api: Api, channel: blocking.Channel) -> None:
        self.broker = broker
        self.api = api
        self.channel = channel

    def queue(self, name: str, **options: Any) -> str:
        """Declare a queue; its path."""
        self.channel.declare_queue(name, **{"durable": True, **options})
        return f"/api/queues/%2F/{segment(name)}"

    def get(self, name: str, ackmode: str, **more: Any) -> Response:
        return self.api.ask(
            "POST",
            f"/api/queues/%2F/{segment(name)}/get",
            {"count": 10, "ackmode": ackmode, "encoding": "auto", **more},
        )

    def publish(self, key: str, *, exchange: str = "amq.default", **given: Any) -> Response:
        user = given.pop("user", "guest:guest")
        body = {"payload": "p", "payload_encoding": "string", "properties": {}, **given}
        path = PUBLISH.format(segment(exchange))
        return self.api.ask("POST", path, {"routing_key": key, **body}, user=user)

    def counts(self, name: str) -> tuple[int, int]:
        """Messages ready and unacknowledged."""
        row = self.api.get(f"/api/queues/%2F/{segment(name)}")
        return row["messages_ready"], row["messages_unacknowledged"]


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    port = free_port()
    flags = ("--management-port", str(port), "--message-max-bytes", "2000")
    with running_broker(*flags) as broker, blocking.connect(broker.address()) as link:
        yield Both(broker, Api(port), link.channel())


ODD_MESSAGES: list[tuple[str, dict[str, Any], Any]] = [
    ("timestamp", {"timestamp": MS}, MS),
    ("correlation_id", {"correlation_id": "\udcff\udcfe"}, "base64://4="),
    ("t", {"headers": {"t": Timestamp(MS)}}, MS),
    ("s", {"headers": {"s": ODD}}, "base64:Tfxu"),
    ("x", {"headers": {"x": b"\xff"}}, "base64:/w=="),
    ("n", {"headers": {"n": float("nan")}}, "nan"),
]


@pytest.mark.parametrize(("name", "properties", "expected"), ODD_MESSAGES)
def test_a_message_with_any_value_is_shown_by_get_and_by_browse(
    both: Both, name: str, properties: dict[str, Any], expected: Any
) -> None:
    path = both.queue("odd")
    both.channel.publish(b"before", routing_key="odd")
    both.channel.publish(b"\xff", routing_key="odd", **properties)
    both.channel.publish(b"after", routing_key="odd")
    lines = both.api.ask("GET", f"{path}/browse").body.splitlines()
    browsed = [json.loads(line) for line in lines]
    got = both.get("odd", "ack_requeue_false")
    assert got.status == 200, got
    for rows in (browsed, got.json):
        assert [row["payload"] for row in rows] == ["before", "/w==", "after"]
        shown = rows[1]["properties"]
        assert shown.get(name, shown.get("headers", {}).get(name)) == expected
    assert both.counts("odd") == (0, 0)
    by_command = both.publish("odd").json
    assert by_command == {"routed": True}
    assert asked(both.broker, "queues", "browse", "odd").returncode == 0
    both.channel.purge_queue("odd")


def ask_and_leave(api: Api, path: str, body: dict[str, Any]) -> None:
    """Send a request, and close the connection when its answer has begun."""
    data = json.dumps(body).encode()
    login = b64encode(b"guest:guest").decode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Basic {login}\r\n"
        f"content-length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", api.port)) as link:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        link.settimeout(SECONDS)
        link.sendall(head.encode() + data)
        assert link.recv(1) == b"H"


def test_messages_of_which_the_client_cannot_get_the_answer_come_back() -> None:
    port = free_port()
    with (
        running_broker("--management-port", str(port)) as broker,
        blocking.connect(broker.address()) as link,
    ):
        both = Both(broker, Api(port), link.channel())
        path = both.queue("large")
        # More than the buffers of sockets take: the end of the answer is never written.
        both.channel.publish_many([b"\xff" * 1_000_000] * 20, routing_key="large")
        before = both.api.get("/api/overview")["message_stats"].get("get", 0)
        body = {"count": 20, "ackmode": "ack_requeue_false", "encoding": "auto"}
        ask_and_leave(both.api, f"{path}/get", body)
        assert eventually(
            lambda: both.api.get("/api/overview")["message_stats"].get("get", 0) == before + 20
        )
        assert eventually(lambda: both.counts("large") == (20, 0))


def test_large_messages_on_disk_are_read_and_answered_whole() -> None:
    port = free_port()
    bodies = [b"\xff\x00\x01" * 2_000_000, "\u20ac\n".encode() * 1_500_000, b"small"]
    with (
        running_broker("--management-port", str(port)) as broker,
        blocking.connect(broker.address()) as link,
    ):
        both = Both(broker, Api(port), link.channel())
        both.queue("on disk")
        both.channel.publish_many(bodies, routing_key="on disk")
        answer = both.get("on disk", "ack_requeue_false")
        counts = both.counts("on disk")
    assert [row["payload_encoding"] for row in answer.json] == ["base64", "string", "string"]
    assert b64decode(answer.json[0]["payload"]) == bodies[0]
    assert [row["payload"].encode() for row in answer.json[1:]] == bodies[1:]
    assert counts == (0, 0)


def test_one_answer_has_few_messages_with_many_headers_and_the_next_one_has_more(
    both: Both,
) -> None:
    both.queue("headers")
    count = 2 * HTTP_GET_BYTES // (16 * 80_000)
    headers = {f"{number:x}": True for number in range(10_000)}
    for number in range(count):
        both.channel.publish(b"%d" % number, routing_key="headers", headers=headers)
    seen: list[int] = []
    while both.counts("headers")[0]:
        rows = both.get("headers", "ack_requeue_false", count=count).json
        assert 0 < len(rows) < count
        assert all(row["properties"]["headers"] == headers for row in rows)
        seen += [int(row["payload"]) for row in rows]
    assert seen == list(range(count))


@pytest.mark.parametrize(
    ("ackmode", "left", "redelivered"),
    [
        ("ack_requeue_false", 0, False),
        ("reject_requeue_false", 0, False),
        ("ack_requeue_true", 2, True),
        ("reject_requeue_true", 2, True),
    ],
)
def test_a_get_is_done_when_its_answer_is_there(
    both: Both, ackmode: str, left: int, redelivered: bool
) -> None:
    both.queue("done")
    both.channel.publish_many([b"1", b"2"], routing_key="done")
    for _ in range(5 if left else 1):
        assert [row["payload"] for row in both.get("done", ackmode).json] == ["1", "2"]
        assert both.counts("done") == (left, 0)
    assert [row["redelivered"] for row in both.get("done", "ack_requeue_false").json] == (
        [redelivered] * left
    )


def test_a_get_over_http_is_counted_as_one_over_amqp_is(both: Both) -> None:
    path = both.queue("counted")
    both.channel.publish(b"1", routing_key="counted")
    both.get("counted", "ack_requeue_false")

    def counts() -> list[int]:
        stats = both.api.get(path).get("message_stats", {})
        return [stats.get(name, 0) for name in ("get", "get_empty", "ack")]

    # A sample may have been taken between the get and the acknowledgement that follows its answer.
    assert eventually(lambda: counts() == [1, 1, 1]), counts()


def test_an_exclusive_queue_of_a_connection_is_refused_to_get_over_http(both: Both) -> None:
    both.queue("own", durable=False, exclusive=True)
    both.channel.publish(b"1", routing_key="own")
    answer = both.get("own", "ack_requeue_false")
    assert answer.status == 400
    assert "exclusive" in answer.json["reason"]
    assert both.channel.get("own") is not None
    both.channel.delete_queue("own")


def test_an_expiration_over_http_is_checked_and_takes_effect(both: Both) -> None:
    both.queue("brief")
    for bad in ("abc", "-1", "1.5", ""):
        answer = both.publish("brief", properties={"expiration": bad})
        assert answer.status == 400, bad
        assert answer.json["reason"].startswith(f"invalid expiration '{bad}': "), answer
    assert both.publish("brief", properties={"expiration": "1"}).json == {"routed": True}
    assert eventually(lambda: both.counts("brief") == (0, 0))


def test_a_full_queue_that_rejects_is_no_route_for_a_publish_over_http(both: Both) -> None:
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    both.queue("full", arguments=arguments)
    assert both.publish("full").json == {"routed": True}
    assert both.publish("full").json == {"routed": False}
    assert both.counts("full") == (1, 0)
    assert both.publish("nowhere").json == {"routed": False}


def test_a_publish_over_http_that_one_of_its_queues_refuses_is_not_routed(both: Both) -> None:
    both.queue("narrow", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    both.queue("wide")
    properties = {"headers": {"CC": ["wide"]}}
    assert both.publish("narrow", properties=properties).json == {"routed": True}
    assert both.publish("narrow", properties=properties).json == {"routed": False}
    assert both.counts("narrow") == (1, 0)
    assert both.counts("wide") == (2, 0)


def test_further_keys_of_a_publish_over_http_are_used(both: Both) -> None:
    for name in ("first", "cc", "bcc"):
        both.queue(name)
    headers = {"CC": ["cc"], "BCC": ["bcc"]}
    assert both.publish("first", properties={"headers": headers}).json == {"routed": True}
    for name in ("first", "cc", "bcc"):
        delivery = both.channel.get(name, no_ack=True)
        assert delivery is not None
        assert delivery.headers == {"CC": ["cc"]}
    answer = both.publish("first", properties={"headers": {"CC": 5}})
    assert answer.status == 400
    assert "unacceptable_type_in_header" in answer.json["reason"]


def test_a_publish_over_http_has_the_limits_of_amqp(both: Both) -> None:
    both.queue("limited")
    large = both.publish("limited", payload="x" * 2001)
    assert large.status == 400
    assert "message size 2001 is larger than configured max size 2000" in large.json["reason"]
    key = both.publish("k" * 256)
    assert (key.status, "at most 255" in key.json["reason"]) == (400, True)
    for properties in (
        {"headers": {"n" * 256: 1}},
        {"headers": {"x": 2**64}},
        {"headers": dict.fromkeys(map(str, range(50_000)), 1)},
        {"app_id": "a" * 256},
        {"timestamp": -1},
        {"timestamp": 2**64},
        {"priority": 256},
        {"reply_to": "amq.rabbitmq.reply-to"},
    ):
        answer = both.publish("limited", properties=properties)
        assert answer.status == 400, answer
        assert answer.json["reason"]
    assert both.publish("limited", properties={"timestamp": MS}).json == {"routed": True}
    (row,) = both.get("limited", "ack_requeue_false").json
    assert row["properties"]["timestamp"] == MS


def test_a_publish_over_http_asks_for_the_topic(both: Both) -> None:
    login = both.api.user("topical", "management", vhost="/")
    body = {"exchange": "amq.topic", "write": "^mine", "read": ".*"}
    both.api.done("PUT", "/api/topic-permissions/%2F/topical", body)
    both.queue("topics")
    both.channel.bind_queue("topics", "amq.topic", "#")
    assert both.publish("mine.1", exchange="amq.topic", user=login).json == {"routed": True}
    for given in (
        {"key": "other.1"},
        {"key": "mine.1", "properties": {"headers": {"CC": ["other.1"]}}},
    ):
        answer = both.publish(exchange="amq.topic", user=login, **given)
        assert answer.status == 401
        assert "write access to topic 'other.1'" in answer.json["reason"]
    assert both.counts("topics") == (1, 0)


def test_the_user_id_of_a_publish_over_http_is_ones_own_but_for_impersonators(both: Both) -> None:
    both.queue("named")
    plain = both.api.user("plain", "management", vhost="/")
    actor = both.api.user("actor", "management", "impersonator", vhost="/")
    refused = both.publish("named", properties={"user_id": "guest"}, user=plain)
    assert refused.status == 400
    assert refused.json["reason"] == (
        "user_id property set to 'guest' but authenticated user was 'plain'"
    )
    for user, name in ((plain, "plain"), (actor, "guest")):
        answer = both.publish("named", properties={"user_id": name}, user=user)
        assert answer.json == {"routed": True}


def test_a_publish_over_http_is_put_off_while_publishers_are_blocked(both: Both) -> None:
    both.queue("waiting")
    set_watermark(both.broker, 0)
    assert eventually(lambda: both.publish("waiting").status == 503)
    answer = both.publish("waiting")
    assert "the broker is low on memory; try again later" in answer.json["reason"]
    assert answer.headers["retry-after"]
    set_watermark(both.broker, 0.9)
    assert eventually(lambda: both.publish("waiting").status == 200)


def test_a_publish_over_http_is_traced_and_counted(both: Both) -> None:
    both.queue("traced")
    both.queue("traces")
    both.api.done("PUT", "/api/vhosts/%2F", {"tracing": True})
    both.channel.bind_queue("traces", "amq.rabbitmq.trace", "#")
    assert both.publish("traced").json == {"routed": True}
    assert len(both.get("traced", "ack_requeue_false").json) == 1
    both.api.done("PUT", "/api/vhosts/%2F", {"tracing": False})
    found = [row["routing_key"] for row in both.get("traces", "ack_requeue_false").json]
    assert found == ["publish.", "deliver.traced"]
