"""pika watches a broker: events, the firehose, the log; and exchanges that remember."""

from __future__ import annotations

import subprocess
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.clients.pikas import PATIENCE_SECONDS, connected, take
from tests.patience import SECONDS
from tests.running import RunningBroker, command, environment, running_broker

pytestmark = pytest.mark.interop


def _harebell(broker: RunningBroker, *arguments: str) -> None:
    """Run a verb on a running broker."""
    subprocess.run(
        [command(), *arguments, "--data-dir", str(broker.data_dir)],
        timeout=SECONDS,
        check=True,
        env=environment(),
        capture_output=True,
    )


def _watching(channel: BlockingChannel, exchange: str, key: str = "#") -> str:
    queue: str = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, exchange, key)
    return queue


def _told(channel: BlockingChannel, queue: str, count: int) -> list[tuple[Any, ...]]:
    """The next deliveries of a queue, whose consumer goes afterwards."""
    found = take(channel, queue, count, auto_ack=True)
    channel.cancel()
    return found


def _keys(deliveries: list[tuple[Any, ...]]) -> list[str]:
    return [method.routing_key for method, _, _ in deliveries]


def test_acts_of_clients_and_administrators_are_published_as_events() -> None:
    with running_broker() as broker, connected(broker) as connection:
        channel = connection.channel()
        users = _watching(channel, "amq.rabbitmq.event", "user.#")
        queues = _watching(channel, "amq.rabbitmq.event", "queue.*")
        with connected(broker) as other:
            other.channel().queue_declare("orders", durable=True)
        ((_, login, body),) = _told(channel, users, 1)
        assert body == b""
        assert login.headers["name"] == "guest"
        assert login.headers["peer_host"] == "127.0.0.1"
        assert login.headers["ssl"] is False
        ((_, created, _),) = _told(channel, queues, 1)
        assert created.headers["name"] == "orders"
        assert created.headers["durable"] is True
        told = _watching(channel, "amq.rabbitmq.event", "permission.*")
        _harebell(broker, "permissions", "set", "guest", ".*", ".*", ".*")
        ((method, properties, _),) = _told(channel, told, 1)
        assert method.routing_key == "permission.created"
        assert properties.headers["user_who_performed_action"] == "rmq-cli"


def test_limits_and_topic_permissions_that_are_set_and_cleared_are_told() -> None:
    with running_broker() as broker, connected(broker) as connection:
        channel = connection.channel()
        told = _watching(channel, "amq.rabbitmq.event", "vhost.limits.*")
        channel.queue_bind(told, "amq.rabbitmq.event", "user.limits.*")
        topics = _watching(channel, "amq.rabbitmq.event", "topic.permission.*")
        _harebell(broker, "limits", "set", "--vhost", "/", "--max-queues", "9")
        _harebell(broker, "limits", "clear", "--vhost", "/")
        _harebell(broker, "limits", "set", "--user", "guest", "--max-channels", "7")
        _harebell(broker, "limits", "clear", "--user", "guest")
        _harebell(broker, "topic-permissions", "set", "guest", "amq.topic", "a", "b")
        _harebell(broker, "topic-permissions", "clear", "guest")
        deliveries = _told(channel, told, 4)
        assert _keys(deliveries) == [
            "vhost.limits.set",
            "vhost.limits.cleared",
            "user.limits.set",
            "user.limits.cleared",
        ]
        about = [properties.headers for _, properties, _ in deliveries]
        assert (about[0]["vhost"], about[0]["max-queues"]) == ("/", 9)
        assert (about[2]["username"], about[2]["max-channels"]) == ("guest", 7)
        assert {headers["name"] for headers in about} == {"limits"}
        assert _keys(_told(channel, topics, 2)) == [
            "topic.permission.created",
            "topic.permission.deleted",
        ]


def test_parameters_and_operator_policies_are_told_with_their_values() -> None:
    with running_broker() as broker, connected(broker) as connection:
        channel = connection.channel()
        told = _watching(channel, "amq.rabbitmq.event", "parameter.*")
        policies = _watching(channel, "amq.rabbitmq.event", "#.policy.*")
        channel.queue_bind(policies, "amq.rabbitmq.event", "policy.*")
        _harebell(broker, "limits", "set", "--vhost", "/", "--max-queues", "9")
        _harebell(broker, "parameters", "set", "tool", "s", '{"a": 1}')
        _harebell(broker, "parameters", "clear", "tool", "s")
        _harebell(broker, "global-parameters", "set", "g", "[2]")
        _harebell(broker, "global-parameters", "clear", "g")
        _harebell(broker, "operator-policies", "set", "p", "^q", '{"max-length": 3}')
        _harebell(broker, "operator-policies", "clear", "p")
        deliveries = _told(channel, told, 7)
        about = [properties.headers for _, properties, _ in deliveries]
        assert [
            (key.rpartition(".")[2], headers["component"], headers["name"], headers.get("vhost"))
            for key, headers in zip(_keys(deliveries), about, strict=True)
        ] == [
            ("set", "vhost-limits", "limits", "/"),
            ("set", "tool", "s", "/"),
            ("cleared", "tool", "s", "/"),
            ("set", "global", "g", None),
            ("cleared", "global", "g", None),
            ("set", "operator_policy", "p", "/"),
            ("cleared", "operator_policy", "p", "/"),
        ]
        assert [about[at]["value"] for at in (0, 1, 3)] == [{"max-queues": 9}, {"a": 1}, [2]]
        assert about[5]["value"]["definition"] == {"max-length": 3}
        assert _keys(_told(channel, policies, 2)) == ["policy.set", "operator.policy.cleared"]


def test_permissions_that_end_with_their_vhost_are_told() -> None:
    with running_broker() as broker, connected(broker) as connection:
        channel = connection.channel()
        _harebell(broker, "vhosts", "add", "v")
        _harebell(broker, "permissions", "set", "guest", "a", "b", "c", "--vhost", "v")
        where = ("guest", "amq.topic", "a", "b", "--vhost", "v")
        _harebell(broker, "topic-permissions", "set", *where)
        told = _watching(channel, "amq.rabbitmq.event", "#.deleted")
        _harebell(broker, "vhosts", "delete", "v")
        deliveries = _told(channel, told, 3)
        assert _keys(deliveries) == [
            "permission.deleted",
            "topic.permission.deleted",
            "vhost.deleted",
        ]
        assert [headers.headers["user"] for _, headers, _ in deliveries[:2]] == ["guest"] * 2


def test_the_firehose_is_on_until_it_is_turned_off_over_a_restart() -> None:
    with running_broker() as broker:
        _harebell(broker, "trace", "on")
        broker.stop()
        flags = ("--data-dir", str(broker.data_dir))
        with running_broker(*flags) as again, connected(again) as connection:
            channel = connection.channel()
            watched = _watching(channel, "amq.rabbitmq.trace")
            channel.queue_declare("q")
            channel.basic_publish("", "q", b"body", pika.BasicProperties(message_id="m"))
            assert channel.basic_get("q", auto_ack=True)[2] == b"body"
            published, delivered = _told(channel, watched, 2)
            assert _keys([published, delivered]) == ["publish.", "deliver.q"]
            assert published[1].headers["properties"] == {"message_id": "m"}
            assert published[1].headers["routed_queues"] == ["q"]
            assert delivered[2] == b"body"
            _harebell(again, "trace", "off")
            channel.basic_publish("", "q", b"unseen")
            assert channel.queue_declare(watched, passive=True).method.message_count == 0


def test_the_log_is_published_where_that_is_asked_for() -> None:
    with running_broker("--log-exchange", "true") as broker, connected(broker) as connection:
        channel = connection.channel()
        errors = _watching(channel, "amq.rabbitmq.log", "error")
        credentials = pika.PlainCredentials("guest", "wrong")
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            pika.BlockingConnection(
                pika.ConnectionParameters("127.0.0.1", broker.port, credentials=credentials)
            )
        coming = channel.consume(errors, inactivity_timeout=PATIENCE_SECONDS)
        for method, properties, body in coming:
            assert method is not None, "no error came"
            assert properties.content_type == "text/plain"
            assert properties.headers["node"].startswith("harebell@")
            if b"PLAIN login refused: user 'guest'" in body:
                break


def test_the_product_that_clients_are_told_can_be_set() -> None:
    env = {"HAREBELL_COMPAT_PRODUCT": "Other", "HAREBELL_COMPAT_VERSION": "4.1.2"}
    with running_broker(env=env) as broker, connected(broker) as connection:
        about = connection._impl.server_properties
        assert (about["product"], about["version"]) == ("Other", "4.1.2")
        assert about["capabilities"]["direct_reply_to"] is True
