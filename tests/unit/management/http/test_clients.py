"""Tools made for RabbitMQ's HTTP API work unchanged: libraries, and the requests of others."""

from __future__ import annotations

import os

import amqpstorm.management
import pyrabbit2.api
import pytest

from tests.unit.management.http.asking import Api

NODE = f"harebell@{os.uname().nodename.partition('.')[0]}"


def test_amqpstorm_manages_a_broker(api: Api) -> None:
    client = amqpstorm.management.ManagementApi(f"http://127.0.0.1:{api.port}", "guest", "guest")
    assert client.whoami()["name"] == "guest"
    assert client.aliveness_test("/") == {"status": "ok"}
    assert client.overview()["node"] == NODE
    assert [node["name"] for node in client.nodes()] == [NODE]
    assert client.top() == [{"node": NODE, "row_count": 0, "processes": []}]
    client.virtual_host.create("storm")
    client.user.create("storm", "p", tags="monitoring")
    client.user.set_permission("storm", "storm")
    assert client.user.get_permission("storm", "storm")["configure"] == ".*"
    client.queue.declare("q", virtual_host="storm", durable=True)
    client.exchange.declare("x", exchange_type="topic", virtual_host="storm", durable=True)
    client.queue.bind(queue="q", exchange="x", routing_key="a.#", virtual_host="storm")
    assert client.basic.publish("hello", "a.b", "x", "storm", properties={"headers": {"n": 1}}) == {
        "routed": True
    }
    (message,) = client.basic.get("q", "storm", requeue=False, to_dict=False, count=1)
    assert message.body == "hello"
    assert message.properties["headers"] == {"n": 1}
    assert [queue["name"] for queue in client.queue.list("storm")] == ["q"]
    assert "a.#" in [row["routing_key"] for row in client.queue.bindings("q", "storm")]
    client.queue.purge("q", "storm")
    client.queue.unbind(
        queue="q", exchange="x", routing_key="a.#", virtual_host="storm", properties_key="a.%23"
    )
    client.exchange.delete("x", "storm")
    client.queue.delete("q", "storm")
    with pytest.raises(amqpstorm.management.ApiError):
        client.queue.get("q", "storm")
    client.user.delete("storm")
    client.virtual_host.delete("storm")
    assert client.healthchecks.get() == {"status": "ok"}


def test_pyrabbit2_manages_a_broker(api: Api) -> None:
    client = pyrabbit2.api.Client(f"127.0.0.1:{api.port}", "guest", "guest")
    assert client.is_alive()
    assert client.get_whoami()["name"] == "guest"
    assert client.get_all_vhosts()
    client.create_vhost("rabbit")
    client.create_user("rabbit", "p", tags="management")
    client.set_vhost_permissions("rabbit", "rabbit", ".*", ".*", ".*")
    client.create_queue("rabbit", "q", durable=True, arguments={"x-max-length": 10})
    client.create_exchange("rabbit", "x", "direct")
    client.create_binding("rabbit", "x", "q", "k")
    assert client.publish("rabbit", "x", "k", "hello")
    (message,) = client.get_messages("rabbit", "q", count=1, requeue=True)
    assert message["payload"] == "hello"
    assert client.get_queue("rabbit", "q")["arguments"] == {"x-max-length": 10}
    assert client.get_queue_depth("rabbit", "q") == 1
    assert len(client.get_queue_bindings("rabbit", "q")) == 2
    client.purge_queue("rabbit", "q")
    client.delete_binding("rabbit", "x", "q", "k")
    client.delete_exchange("rabbit", "x")
    client.delete_queue("rabbit", "q")
    client.delete_user("rabbit")
    client.delete_vhost("rabbit")
    with pytest.raises(pyrabbit2.http.HTTPError):
        client.get_queue("rabbit", "q")


def test_the_requests_of_keda_get_a_page_whatever_pagination_says(api: Api) -> None:
    for name in ("orders", "orders-2", "other"):
        api.done("PUT", f"/api/queues/%2F/{name}", {})
    page = api.get(
        "/api/queues/%2F?page=1&use_regex=true&pagination=false&name=%5Eorders&page_size=1"
    )
    assert page["page_count"] == 2
    assert [row["name"] for row in page["items"]] == ["orders"]
    assert {"messages", "messages_ready", "messages_unacknowledged"} <= set(page["items"][0])
    queue = api.get("/api/queues/%2F/orders")
    assert (queue["name"], queue["messages"]) == ("orders", 0)


def test_the_requests_of_rabbitmqadmin_are_answered(api: Api) -> None:
    assert api.get("/api/overview?columns=node,cluster_name")["node"] == NODE
    for noun in (
        *("connections", "channels", "consumers", "exchanges", "queues", "bindings", "users"),
        *("vhosts", "permissions", "nodes", "parameters", "policies", "operator-policies"),
        "vhost-limits",
    ):
        assert isinstance(api.get(f"/api/{noun}?columns=name"), list), noun
    body = {"vhost": "/", "name": "adm", "auto_delete": False, "durable": True, "arguments": {}}
    assert api.ask("PUT", "/api/queues/%2F/adm", body).status == 201
    binding = {"routing_key": "k", "source": "amq.topic", "vhost": "/", "arguments": {}}
    answer = api.ask("POST", "/api/bindings/%2F/e/amq.topic/q/adm", binding)
    assert (answer.status, answer.headers["location"]) == (201, "adm/k")
    message = {
        "vhost": "/",
        "name": "amq.topic",
        "properties": {},
        "routing_key": "k",
        "payload": "hi",
        "payload_encoding": "string",
    }
    assert api.done("POST", "/api/exchanges/%2F/amq.topic/publish", message).json["routed"]
    got = {"count": "1", "ackmode": "ack_requeue_false", "encoding": "auto"}
    (row,) = api.done("POST", "/api/queues/%2F/adm/get", got).json
    assert row["payload"] == "hi"
    wrong = api.ask("PUT", "/api/queues/%2F/adm", {**body, "durable": False})
    assert (wrong.status, "inequivalent arg" in wrong.json["reason"]) == (400, True)
    assert "adm" in [queue["name"] for queue in api.get("/api/definitions")["queues"]]


def test_the_requests_of_terraform_read_back_what_they_wrote(api: Api) -> None:
    arguments = {"x-max-length": 5, "x-queue-type": "classic", "x-single-active-consumer": True}
    body = {"durable": True, "auto_delete": False, "arguments": arguments}
    api.done("PUT", "/api/queues/%2F/tf", body)
    found = api.get("/api/queues/%2F/tf")
    assert {key: found[key] for key in body} == body
    binding = {"routing_key": "a/b", "arguments": {"n": 1}}
    answer = api.done("POST", "/api/bindings/%2F/e/amq.direct/q/tf", binding)
    parts = answer.headers["location"].split("/")
    assert len(parts) == 2
    assert parts[0] == "tf"
    (read,) = [row for row in api.get("/api/bindings/%2F/") if row["source"] == "amq.direct"]
    assert {key: read[key] for key in binding} == binding
    api.done("DELETE", f"/api/bindings/%2F/e/amq.direct/q/tf/{parts[1]}")
    assert api.ask("DELETE", "/api/queues/%2F/tf?if-unused=true&if-empty=false").status == 204
