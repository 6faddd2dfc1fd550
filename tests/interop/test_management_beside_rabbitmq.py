"""The same work on Harebell and on a running RabbitMQ: their answers over HTTP, member by member.

Every member that RabbitMQ sends has to be there with a value of its type, and what is counted has
to be the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from tests.interop.rabbitmq import RabbitNode
from tests.patience import eventually
from tests.ports import free_port
from tests.running import running_broker
from tests.unit.management.http.asking import Api, segment

COUNTS = (
    *("publish", "confirm", "return_unroutable", "drop_unroutable"),
    *("deliver", "deliver_no_ack", "get", "get_no_ack", "get_empty", "redeliver", "ack"),
    "deliver_get",
)
ERLANG = {
    "backing_queue_status",
    "garbage_collection",
    "socket_opts",
    "client_properties",
    "cluster_state",
    "applications",
    "listeners",
    "contexts",
}
"""Members whose inside depends on the broker's own make."""
LEFT_OUT = {
    # The definitions of a vhost are imported into any other.
    ("/api/definitions/%2F", ".policies[].vhost: missing"),
    ("/api/definitions/%2F", ".parameters[].vhost: missing"),
}
"""Members that Harebell leaves out, by path."""
MAY_BE_NULL = {
    *("idle_since", "policy", "operator_policy", "head_message_timestamp", "user_provided_name"),
    *("recoverable_slaves", "exclusive_consumer_tag", "single_active_consumer_tag"),
    *("peer_cert_issuer", "peer_cert_subject", "peer_cert_validity"),
    *("ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"),
}


class Site:
    """A broker, its HTTP API, and an open connection with the work done on it.

    Args:
        name: of the broker.
        port: for AMQP.
        api: its HTTP API.
    """

    def __init__(self, name: str, port: int, api: Api) -> None:
        self.name = name
        self.api = api
        # Without heartbeats, which nobody sends while the answers are compared.
        parameters = pika.ConnectionParameters("127.0.0.1", port, heartbeat=0)
        self.connection = pika.BlockingConnection(parameters)
        self.channels = [self.connection.channel() for _ in range(3)]
        self._work()
        assert eventually(self._is_counted), f"{name} has not counted the work in time"

    def _work(self) -> None:
        publisher, getter, consumer = self.channels
        publisher.queue_declare("q1", arguments={"x-max-length": 1000})
        publisher.basic_publish("", "none", b"dropped")
        publisher.confirm_delivery()
        for _ in range(6):
            publisher.basic_publish("", "q1", b"body", mandatory=True)
        with pytest.raises(pika.exceptions.UnroutableError):
            publisher.basic_publish("", "none", b"returned", mandatory=True)
        method, _, _ = getter.basic_get("q1")
        getter.basic_ack(method.delivery_tag)
        getter.basic_get("q1", auto_ack=True)
        method, _, _ = getter.basic_get("q1")
        getter.basic_nack(method.delivery_tag, requeue=True)
        getter.basic_get("q1", auto_ack=True)
        publisher.queue_declare("empty")
        getter.basic_get("empty")
        seen: list[int] = []

        def take(channel: Any, method: Any, *_: Any) -> None:
            seen.append(method.delivery_tag)
            if len(seen) == 2:
                channel.basic_ack(method.delivery_tag, multiple=True)

        for path, body in (
            ("policies/%2F/limited", {"pattern": "^q", "definition": {"max-length": 1000}}),
            (
                "operator-policies/%2F/bounded",
                {"pattern": "^q", "definition": {"message-ttl": 10**7}, "apply-to": "queues"},
            ),
            ("global-parameters/g", {"name": "g", "value": {"a": 1}}),
            ("vhost-limits/%2F/max-queues", {"value": 1000}),
            ("user-limits/guest/max-channels", {"value": 1000}),
            ("users/nobody", {"password": "x", "tags": ""}),
            (
                "topic-permissions/%2F/guest",
                {"exchange": "amq.topic", "write": ".*", "read": ".*"},
            ),
        ):
            kind = {"content-type": "application/json"}
            put = self.api.ask("PUT", f"/api/{path}", body, headers=kind)
            assert put.status in (201, 204), (path, put)
        publisher.queue_bind("q1", "amq.topic", "k", arguments={"x": 1})
        consumer.basic_qos(prefetch_count=10)
        consumer.basic_consume("q1", take, consumer_tag="c")
        assert eventually(lambda: self.connection.process_data_events(0) or len(seen) == 3)

    def _is_counted(self) -> bool:
        self.connection.process_data_events(0)
        stats = self.api.get("/api/overview").get("message_stats", {})
        return bool(stats.get("publish") == 8 and stats.get("ack") == 3)

    def get(self, path: str) -> Any:
        """An answer; CONNECTION and NODE in the path stand for the names of these."""
        connection = segment(self.api.get("/api/channels")[0]["connection_details"]["name"])
        node = segment(self.api.get("/api/overview")["node"])
        return self.api.get(path.replace("CONNECTION", connection).replace("NODE", node))


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[Site]:
    port = free_port()
    settings = [f"management.tcp.port = {port}", "management.tcp.ip = 127.0.0.1"]
    node = RabbitNode(settings=settings, plugins=["rabbitmq_management"])
    try:
        node.start()
        yield Site("RabbitMQ", node.port, Api(port))
    finally:
        node.stop()


@pytest.fixture(scope="module")
def harebell() -> Iterator[Site]:
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        yield Site("Harebell", broker.port, Api(port))


def differences(theirs: Any, mine: Any, place: str = "") -> list[str]:
    """What is missing or of another type in our answer, as paths."""
    last = place.rpartition(".")[2]
    if last in ERLANG:
        return []
    if isinstance(theirs, dict):
        if not isinstance(mine, dict):
            return [f"{place}: {mine!r} instead of an object"]
        found = [f"{place}.{name}: missing" for name in theirs if name not in mine]
        for name in theirs.keys() & mine.keys():
            found += differences(theirs[name], mine[name], f"{place}.{name}")
        return found
    if isinstance(theirs, list) and theirs and isinstance(theirs[0], dict):
        if not isinstance(mine, list):
            return [f"{place}: {mine!r} instead of a list"]
        if not mine:
            return [f"{place}: empty"]
        # The order of a list is not the same everywhere.
        first = next((each for each in mine if each.get("name") == theirs[0].get("name")), mine[0])
        return differences(theirs[0], first, f"{place}[]")
    if theirs is None or (mine is None and last in MAY_BE_NULL):
        return []
    numbers = (int, float)
    same = isinstance(mine, type(theirs)) or (
        isinstance(theirs, numbers) and isinstance(mine, numbers)
    )
    # RabbitMQ writes an empty table as an empty list in places.
    return [] if same or theirs == [] else [f"{place}: {mine!r} instead of {theirs!r}"]


def _counts(stats: dict[str, Any]) -> dict[str, int]:
    return {name: stats.get(name, 0) for name in COUNTS}


@pytest.mark.parametrize(
    "path",
    ["/api/overview", "/api/queues/%2F/q1", "/api/queues/%2F/empty"]
    + [f"/api/channels/CONNECTION%20%28{number}%29" for number in (1, 2, 3)],
)
def test_the_same_is_counted_as_on_rabbitmq(rabbitmq: Site, harebell: Site, path: str) -> None:
    # Before any aliveness test: RabbitMQ counts its message, some seconds later.
    mine = _counts(harebell.get(path)["message_stats"])
    # Each of RabbitMQ's processes tells what it has counted every five seconds.
    theirs = {}

    def is_told() -> bool:
        theirs.update(_counts(rabbitmq.get(path).get("message_stats", {})))
        return theirs == mine

    assert eventually(is_told), (theirs, mine)


@pytest.mark.parametrize(
    "path",
    [
        "/api/overview",
        "/api/overview?msg_rates_age=60&msg_rates_incr=5&lengths_age=60&lengths_incr=5",
        "/api/nodes",
        "/api/nodes/NODE",
        "/api/nodes/NODE/memory",
        "/api/queues",
        "/api/queues/%2F/q1",
        "/api/queues/%2F/q1?msg_rates_age=60&msg_rates_incr=5&lengths_age=60&lengths_incr=5",
        "/api/queues?page=1&page_size=1",
        "/api/queues?disable_stats=true&enable_queue_totals=true",
        "/api/exchanges",
        "/api/exchanges/%2F/amq.topic",
        "/api/exchanges/%2F/amq.default",
        "/api/connections",
        "/api/connections/CONNECTION",
        "/api/connections/CONNECTION/channels",
        "/api/channels",
        "/api/channels/CONNECTION%20%281%29",
        "/api/consumers",
        "/api/vhosts",
        "/api/vhosts/%2F",
        "/api/vhosts/%2F/connections",
        "/api/vhosts/%2F/channels",
        "/api/vhosts/%2F/permissions",
        "/api/vhosts/%2F/topic-permissions",
        "/api/policies",
        "/api/policies/%2F/limited",
        "/api/operator-policies",
        "/api/operator-policies/%2F/bounded",
        "/api/global-parameters",
        "/api/global-parameters/g",
        "/api/vhost-limits",
        "/api/user-limits",
        "/api/users",
        "/api/users/guest",
        "/api/users/guest/permissions",
        "/api/users/guest/topic-permissions",
        "/api/users/without-permissions",
        "/api/permissions",
        "/api/permissions/%2F/guest",
        "/api/topic-permissions",
        "/api/bindings",
        "/api/bindings/%2F",
        "/api/bindings/%2F/e/amq.topic/q/q1",
        "/api/queues/%2F/q1/bindings",
        "/api/exchanges/%2F/amq.topic/bindings/source",
        "/api/exchanges/%2F/amq.topic/bindings/destination",
        "/api/feature-flags",
        "/api/definitions",
        "/api/definitions/%2F",
        "/api/whoami",
        "/api/cluster-name",
        "/api/auth/attempts/NODE",
        "/api/auth/attempts/NODE/source",
        "/api/queues?page=1&page_size=10&sort=messages&sort_reverse=true",
        "/api/queues?page=1&page_size=1&name=q&use_regex=true",
        "/api/queues?columns=name,messages,message_stats.publish",
        "/api/exchanges?page=1&page_size=2&sort=name",
        "/api/connections?page=1&page_size=2&sort=name",
        "/api/channels?page=1&page_size=2&sort=number",
        "/api/consumers/%2F",
        "/api/aliveness-test/%2F",
        "/api/healthchecks/node",
        "/api/health/checks/alarms",
        "/api/health/checks/local-alarms",
        "/api/health/checks/virtual-hosts",
        "/api/health/checks/certificate-expiration/1/months",
        "/api/health/checks/protocol-listener/amqp091",
        "/api/health/checks/node-is-mirror-sync-critical",
        "/api/health/checks/node-is-quorum-critical",
    ],
)
def test_an_answer_has_every_member_of_rabbitmq(rabbitmq: Site, harebell: Site, path: str) -> None:
    found = differences(rabbitmq.get(path), harebell.get(path))
    assert [each for each in found if (path, each) not in LEFT_OUT] == []


def test_totals_are_those_of_rabbitmq(rabbitmq: Site, harebell: Site) -> None:
    def difference() -> list[tuple[str, Any, Any]]:
        totals = [
            (member, theirs, harebell.get("/api/overview")[member])
            for member in ("queue_totals", "object_totals")
            for theirs in (rabbitmq.get("/api/overview")[member],)
        ]
        return [
            (f"{member}.{name}", theirs[name], mine[name])
            for member, theirs, mine in totals
            for name in theirs
            if not name.endswith("_details") and name != "exchanges" and theirs[name] != mine[name]
        ]

    assert eventually(lambda: not difference()), difference()


@pytest.mark.parametrize(
    "path",
    [
        "/api/health/checks/port-listener/1",
        "/api/health/checks/protocol-listener/mqtt",
        "/api/health/checks/certificate-expiration/1/fortnights",
        "/api/queues/%2F/none",
        "/api/exchanges/%2F/none",
        "/api/connections/none",
        "/api/channels/none",
    ],
)
def test_failures_have_the_status_and_the_members_of_rabbitmq(
    rabbitmq: Site, harebell: Site, path: str
) -> None:
    theirs, mine = rabbitmq.api.ask("GET", path), harebell.api.ask("GET", path)
    assert mine.status == theirs.status
    assert differences(theirs.json, mine.json) == []
