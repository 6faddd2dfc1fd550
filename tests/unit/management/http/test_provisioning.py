"""What the HTTP API declares comes back as it went in, with RabbitMQ's statuses."""

from __future__ import annotations

from typing import Any

import pika
import pika.exceptions
import pytest

from tests.patience import eventually
from tests.unit.management.http.asking import Api, segment

HOSTILE = (
    *("/", "%", "%2F", "..", ".", "a/b", "a b+c", "?x=1#y", "~", "quo\"te'"),
    *("nul\0nul", "tab\tand\x1b", "\u202eabc", "é" * 127 + "x", "😀" * 63),
)


def statuses(api: Api, method: str, path: str, *bodies: Any) -> list[int]:
    return [api.ask(method, path, body).status for body in bodies]


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


def test_a_queue_is_made_once_and_another_one_of_its_name_is_refused(api: Api) -> None:
    path = "/api/queues/%2F/q1"
    assert statuses(api, "PUT", path, {"durable": True}, {"durable": True}) == [201, 204]
    answer = api.ask("PUT", path, {})
    assert answer.status == 400
    assert answer.json == {
        "error": "bad_request",
        "reason": "inequivalent arg 'durable' for queue 'q1' in vhost '/': "
        "received 'false' but current is 'true'",
    }
    assert statuses(api, "DELETE", path, None, None) == [204, 404]
    assert api.ask("PUT", "/api/queues/nowhere/q1", {}).status == 404


def test_a_queue_is_deleted_only_if_its_conditions_hold(api: Api) -> None:
    api.done("PUT", "/api/queues/%2F/full", {})
    message = {"routing_key": "full", "payload": "x", "payload_encoding": "string"}
    api.done("POST", "/api/exchanges/%2F/amq.default/publish", {**message, "properties": {}})
    assert api.ask("DELETE", "/api/queues/%2F/full?if-empty=true").status == 400
    api.done("DELETE", "/api/queues/%2F/full/contents")
    assert api.ask("DELETE", "/api/queues/%2F/full?if-empty=true&if-unused=true").status == 204


def test_an_exchange_is_made_once_and_keeps_its_type(api: Api) -> None:
    path = "/api/exchanges/%2F/x1"
    assert statuses(api, "PUT", path, {"type": "topic"}, {"type": "topic"}) == [201, 204]
    answer = api.ask("PUT", path, {"type": "fanout"})
    assert answer.json["reason"] == (
        "inequivalent arg 'type' for exchange 'x1' in vhost '/': "
        "received 'fanout' but current is 'topic'"
    )
    assert api.ask("PUT", "/api/exchanges/%2F/x2", {"type": "zz"}).status == 400
    assert statuses(api, "DELETE", path, None, None) == [204, 404]


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({}, "~"),
        ({"routing_key": "a.b"}, "a.b"),
        ({"routing_key": "a/b c"}, "a%2Fb+c"),
        ({"routing_key": "k", "arguments": {"x": 1}}, None),
    ],
)
def test_a_binding_is_found_by_the_location_of_its_answer(
    api: Api, body: dict[str, Any], key: str | None
) -> None:
    api.done("PUT", "/api/queues/%2F/bound", {})
    between = "/api/bindings/%2F/e/amq.topic/q/bound"
    answer = api.done("POST", between, body)
    assert answer.status == 201
    destination, props = answer.headers["location"].split("/")
    assert destination == "bound"
    row = api.get(f"{between}/{props}")
    assert row["routing_key"] == body.get("routing_key", "")
    assert row["arguments"] == body.get("arguments", {})
    assert key in (None, row["properties_key"])
    assert row in api.get(between)
    assert row in api.get("/api/bindings/%2F/")
    assert row in api.get("/api/queues/%2F/bound/bindings")
    assert row in api.get("/api/exchanges/%2F/amq.topic/bindings/source")
    assert api.ask("DELETE", f"{between}/{props}").status == 204
    assert api.ask("DELETE", f"{between}/{props}").status == 404


def test_exchanges_are_bound_to_exchanges_and_missing_ends_are_named(api: Api) -> None:
    api.done("POST", "/api/bindings/%2F/e/amq.topic/e/amq.fanout", {"routing_key": "k"})
    (row,) = api.get("/api/exchanges/%2F/amq.fanout/bindings/destination")
    assert (row["source"], row["destination_type"]) == ("amq.topic", "exchange")
    answer = api.ask("POST", "/api/bindings/%2F/e/amq.topic/q/nope", {})
    assert (answer.status, answer.json) == (
        404,
        {
            "error": "not_found",
            "reason": "no queue 'nope' in vhost '/'",
        },
    )
    assert api.ask("POST", "/api/bindings/%2F/e/amq.topic/z/nope", {}).status == 404
    api.done("PUT", "/api/queues/%2F/own", {})
    (own,) = api.get("/api/bindings/%2F/e/amq.default/q/own")
    assert own["properties_key"] == "own"
    assert api.ask("DELETE", "/api/bindings/%2F/e/amq.default/q/own/own").status == 401


def test_users_come_back_with_tags_hash_and_limits(api: Api) -> None:
    path = "/api/users/ann"
    body = {"password": "p", "tags": "management,policymaker"}
    assert statuses(api, "PUT", path, body, body) == [201, 204]
    found = api.get(path)
    assert found["tags"] == ["management", "policymaker"]
    hashed = {**found, "tags": ["monitoring"]}
    del hashed["name"]
    api.done("PUT", "/api/users/copy", hashed)
    assert api.get("/api/whoami", user="copy:p") == {"name": "copy", "tags": ["monitoring"]}
    assert api.ask("PUT", "/api/users/copy", {"password": "p"}).status == 400
    assert api.ask("PUT", "/api/users/copy", {"tags": "", "password_hash": "!"}).status == 400
    assert "copy" in names(api.get("/api/users/without-permissions"))
    assert api.ask("POST", "/api/users/bulk-delete", {"users": ["copy", "nobody"]}).status == 404
    assert api.ask("GET", "/api/users/copy").status == 200
    assert api.ask("POST", "/api/users/bulk-delete", {"users": ["copy", "ann"]}).status == 204
    assert api.ask("GET", "/api/users/copy").status == 404


def test_permissions_come_back(api: Api) -> None:
    api.done("PUT", "/api/users/perm", {"password": "p", "tags": ""})
    body = {"configure": "^c", "write": "^w", "read": "^r"}
    path = "/api/permissions/%2F/perm"
    assert statuses(api, "PUT", path, body, body) == [201, 204]
    assert api.get(path) == {"user": "perm", "vhost": "/", **body}
    assert api.get("/api/users/perm/permissions") == [api.get(path)]
    assert api.get(path) in api.get("/api/vhosts/%2F/permissions")
    assert api.get(path) in api.get("/api/permissions/")
    assert api.ask("PUT", path, body | {"configure": "*("}).status == 400
    assert api.ask("PUT", path, {"configure": "x"}).status == 400
    topic = {"exchange": "amq.topic", "write": "a", "read": "b"}
    path = "/api/topic-permissions/%2F/perm"
    assert statuses(api, "PUT", path, topic, topic) == [201, 204]
    assert api.get(path) == [{"user": "perm", "vhost": "/", **topic}]
    assert api.get(f"{path}/amq.topic") == {"user": "perm", "vhost": "/", **topic}
    assert api.get("/api/users/perm/topic-permissions") == api.get(path)
    assert statuses(api, "DELETE", path, None, None) == [204, 404]
    assert statuses(api, "DELETE", "/api/permissions/%2F/perm", None, None) == [204, 404]


def test_vhosts_come_back_and_can_be_protected(api: Api) -> None:
    path = "/api/vhosts/v1"
    body = {"description": "d", "tags": "a,b", "default_queue_type": "quorum"}
    assert statuses(api, "PUT", path, body, {}) == [201, 204]
    (row,) = [row for row in api.get("/api/vhosts") if row["name"] == "v1"]
    assert (row["description"], row["tags"]) == ("d", ["a", "b"])
    assert row["default_queue_type"] == "quorum"
    api.done("POST", f"{path}/deletion/protection")
    assert api.ask("DELETE", path).status == 400
    api.done("DELETE", f"{path}/deletion/protection")
    assert statuses(api, "DELETE", path, None, None) == [204, 404]


def test_the_connections_of_a_user_are_listed_and_closed(api: Api) -> None:
    path = "/api/connections/username"
    assert eventually(lambda: api.get(f"{path}/guest") == [])
    assert api.ask("GET", f"{path}/nobody").status == 404
    listeners = api.get("/api/overview")["listeners"]
    (port,) = [each["port"] for each in listeners if each["protocol"] == "amqp"]
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    (row,) = api.get(f"{path}/guest")
    assert row["user"] == "guest"
    api.done("DELETE", f"{path}/guest", headers={"x-reason": "maintenance"})
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="maintenance"):
        connection.process_data_events(60)
    assert eventually(lambda: api.get(f"{path}/guest") == [])


def test_limits_come_back(api: Api) -> None:
    api.done("PUT", "/api/vhost-limits/%2F/max-queues", {"value": 1000})
    assert api.get("/api/vhost-limits") == [{"vhost": "/", "value": {"max-queues": 1000}}]
    assert api.get("/api/vhost-limits/%2F") == api.get("/api/vhost-limits")
    assert api.ask("PUT", "/api/vhost-limits/%2F/max-zzz", {"value": 1}).status == 400
    assert api.ask("PUT", "/api/vhost-limits/%2F/max-queues", {"value": "x"}).status == 400
    api.done("DELETE", "/api/vhost-limits/%2F/max-queues")
    assert api.get("/api/vhost-limits") == []
    api.done("PUT", "/api/user-limits/guest/max-channels", {"value": 100})
    assert api.get("/api/user-limits/guest") == [{"user": "guest", "value": {"max-channels": 100}}]
    api.done("DELETE", "/api/user-limits/guest/max-channels")
    assert api.get("/api/user-limits") == []


def test_a_policymaker_changes_no_limits_of_a_vhost_as_parameters(api: Api) -> None:
    login = api.user("tuner", "policymaker", vhost="/", pattern=".*")
    path = "/api/parameters/vhost-limits/%2F/limits"
    api.done("PUT", "/api/vhost-limits/%2F/max-queues", {"value": 1000})
    for method, fields in (("PUT", {"value": {"max-queues": 100_000}}), ("DELETE", None)):
        answer = api.ask(method, path, fields, user=login)
        assert answer.status == 401
        assert "an administrator may change them" in answer.json["reason"]
    assert api.get("/api/vhost-limits") == [{"vhost": "/", "value": {"max-queues": 1000}}]
    api.done("PUT", path, {"value": {"max-queues": 2000}})
    api.done("DELETE", path)
    assert api.get("/api/vhost-limits") == []
    assert api.ask("PUT", "/api/parameters/mine/%2F/n", {"value": 1}, user=login).status == 201
    api.done("DELETE", "/api/parameters/mine/%2F/n")


def test_every_list_of_parameters_needs_the_tag_that_one_parameter_needs(api: Api) -> None:
    login = api.user("reader", "management", vhost="/", pattern=".*")
    path = "/api/parameters/tool/%2F/p"
    api.done("PUT", path, {"value": "for policymakers"})
    for of in ("", "/tool", "/tool/%2F", "/tool/%2F/p"):
        assert api.ask("GET", f"/api/parameters{of}", user=login).status == 401
    api.done("DELETE", path)


@pytest.mark.parametrize("kind", ["policies", "operator-policies"])
def test_policies_come_back(api: Api, kind: str) -> None:
    path = f"/api/{kind}/%2F/p"
    body = {"pattern": "^x", "definition": {"max-length": 1}, "priority": 2, "apply-to": "queues"}
    assert statuses(api, "PUT", path, body, body) == [201, 204]
    assert api.get(path) == {"name": "p", "vhost": "/", **body}
    assert api.get(f"/api/{kind}/%2F") == api.get(f"/api/{kind}") == [api.get(path)]
    assert api.ask("PUT", path, {"pattern": "*(", "definition": {"max-length": 1}}).status == 400
    assert api.ask("PUT", path, {"definition": {"max-length": 1}}).status == 400
    assert statuses(api, "DELETE", path, None, None) == [204, 404]


def test_parameters_come_back(api: Api) -> None:
    path, body = "/api/parameters/tool/%2F/p", {"value": {"a": [1, None, "x"]}}
    assert statuses(api, "PUT", path, body, body) == [201, 204]
    row = {"component": "tool", "name": "p", "vhost": "/", **body}
    assert api.get(path) == row
    assert api.get("/api/parameters/tool/%2F") == api.get("/api/parameters/tool") == [row]
    assert statuses(api, "DELETE", path, None, None) == [204, 404]
    path = "/api/global-parameters/g"
    assert statuses(api, "PUT", path, body, body) == [201, 204]
    assert api.get(path) == {"name": "g", **body}
    assert statuses(api, "DELETE", path, None, None) == [204, 404]
    api.done("PUT", "/api/cluster-name/", {"name": "north"})
    assert api.get("/api/cluster-name/") == {"name": "north"}


def test_definitions_of_one_broker_can_be_imported_again(api: Api) -> None:
    api.done("PUT", "/api/queues/%2F/defined", {"durable": True, "arguments": {"x-max-length": 5}})
    before = api.get("/api/definitions")
    api.done("DELETE", "/api/queues/%2F/defined")
    assert api.ask("POST", "/api/definitions", before).status == 204
    after = api.get("/api/definitions")
    assert after["queues"] == before["queues"]
    assert api.ask("POST", "/api/definitions", b"zz").status == 400
    assert api.ask("POST", "/api/definitions", {"queues": [{"durable": True}]}).status == 400
    assert "users" not in api.get("/api/definitions/%2F")


def test_published_messages_can_be_got_in_every_mode(api: Api) -> None:
    api.done("PUT", "/api/queues/%2F/got", {})
    publish = "/api/exchanges/%2F/amq.default/publish"
    properties = {"headers": {"a": 1}, "priority": 3, "timestamp": 12, "content_type": "t/x"}
    message = {"routing_key": "got", "properties": properties}
    for payload, encoding in (("x\0é", "string"), ("/w==", "base64")):
        body = {**message, "payload": payload, "payload_encoding": encoding}
        assert api.done("POST", publish, body).json == {"routed": True}
    nowhere = {**message, "routing_key": "nope", "payload": "", "payload_encoding": "string"}
    assert api.done("POST", publish, nowhere).json == {"routed": False}
    get = "/api/queues/%2F/got/get"
    kept = api.done(
        "POST", get, {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}
    ).json
    assert [(row["payload"], row["payload_encoding"]) for row in kept] == [
        ("x\0é", "string"),
        ("/w==", "base64"),
    ]
    assert kept[0]["properties"] == properties
    assert (kept[0]["exchange"], kept[0]["routing_key"]) == ("", "got")
    assert [row["message_count"] for row in kept] == [1, 0]
    old = api.done("POST", get, {"count": 1, "requeue": True, "encoding": "base64", "truncate": 1})
    assert old.json[0]["payload"] == "eA=="
    assert old.json[0]["payload_bytes"] == 4
    assert old.json[0]["redelivered"] is True
    gone = {"count": -1, "ackmode": "reject_requeue_false", "encoding": "auto"}
    assert len(api.done("POST", get, gone).json) == 2
    assert api.done("POST", get, gone).json == []
    for wrong in ({"ackmode": "zzz"}, {"encoding": "hex"}, {"truncate": -1}, {"count": "x"}):
        assert api.ask("POST", get, {**gone, **wrong}).status == 400, wrong
    assert api.ask("POST", "/api/queues/%2F/nope/get", gone).status == 404


@pytest.mark.parametrize("wrong", [{"payload_encoding": "hex"}, {"payload": "!!"}, {"payload": 1}])
def test_a_wrong_message_is_not_published(api: Api, wrong: dict[str, Any]) -> None:
    body = {"routing_key": "k", "payload": "", "payload_encoding": "base64", "properties": {}}
    answer = api.ask("POST", "/api/exchanges/%2F/amq.direct/publish", {**body, **wrong})
    assert answer.status == 400


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_hostile_names_come_back_as_they_went_in(api: Api, name: str) -> None:
    at = segment(name)
    made = f"/api/vhosts/{at}"
    if name != "/":
        api.done("PUT", made, {})
    try:
        api.done("PUT", f"/api/queues/{at}/{at}", {"arguments": {"x-max-length": 3}})
        api.done("PUT", f"/api/exchanges/{at}/{at}", {"type": "direct"})
        between = f"/api/bindings/{at}/e/{at}/q/{at}"
        answer = api.done("POST", between, {"routing_key": name, "arguments": {name: name}})
        props = answer.headers["location"].split("/")[1]
        row = api.get(f"{between}/{props}")
        assert (row["vhost"], row["source"], row["destination"]) == (name, name, name)
        assert (row["routing_key"], row["arguments"]) == (name, {name: name})
        queues = api.get(f"/api/queues/{at}")
        assert (name, name) in [(queue["vhost"], queue["name"]) for queue in queues]
        assert name in names(api.get(f"/api/exchanges/{at}"))
        message = {"routing_key": name, "payload": name, "properties": {"headers": {name: name}}}
        api.done("POST", f"/api/exchanges/{at}/amq.default/publish", message)
        mode = {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
        (got,) = api.done("POST", f"/api/queues/{at}/{at}/get", mode).json
        assert (got["payload"], got["properties"]) == (name, {"headers": {name: name}})
        api.done("DELETE", f"{between}/{props}")
        api.done("DELETE", f"/api/exchanges/{at}/{at}")
        api.done("DELETE", f"/api/queues/{at}/{at}")
    finally:
        if name != "/":
            api.done("DELETE", made)


@pytest.mark.parametrize("component", ["shovel", "federation-upstream", "federation-upstream-set"])
def test_a_request_without_effect_is_refused_and_says_what_has_one(
    api: Api, component: str
) -> None:
    path = f"/api/parameters/{component}/%2F/p"
    answer = api.ask("PUT", path, {"value": {"src-uri": "amqp://", "dest-uri": "amqp://"}})
    assert answer.status == 400
    assert "`harebell pipeline mirror QUEUE --to URL`" in answer.json["reason"]
    assert api.ask("GET", path).status == 404
    entry = {"component": component, "name": "p", "vhost": "/", "value": {}}
    answer = api.done("POST", "/api/definitions", {"parameters": [entry]})
    assert api.get(path)["value"] == {}
    api.done("DELETE", path)


def test_mirrors_are_refused_in_a_policy_and_kept_from_definitions(api: Api) -> None:
    path, definition = "/api/policies/%2F/mirrored", {"ha-mode": "all", "max-length": 5}
    answer = api.ask("PUT", path, {"pattern": "^q", "definition": definition})
    assert answer.status == 400
    assert answer.json["reason"].startswith("ha-mode: there are no mirrored queues")
    assert api.ask("GET", path).status == 404
    entry = {"vhost": "/", "name": "mirrored", "pattern": "^q", "definition": definition}
    api.done("POST", "/api/definitions", {"policies": [entry]})
    assert api.get(path)["definition"] == definition
    api.done("DELETE", path)


def test_a_target_may_be_a_whole_url(api: Api) -> None:
    for start in (f"http://127.0.0.1:{api.port}", "HTTP://any.name", "https://any.name:1"):
        assert api.get(f"{start}/api/vhosts?columns=name") == [{"name": "/"}]
        assert api.ask("GET", f"{start}/api/nothing").status == 404
        assert api.ask("GET", f"{start}/").status == api.ask("GET", "/").status


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("^re-[[:digit:]]+$", ["re-1"]),
        ("^re-[^[:digit:]]+$", ["re-a", "re-h"]),
        (r"^re-\h?\d$", ["re-1"]),
        ("^re-(?<letter>[ah])$", ["re-a", "re-h"]),
        ("^RE-[[:alpha:]]", ["re-a", "re-h"]),
    ],
)
def test_a_regular_expression_means_what_it_means_to_rabbitmq(
    api: Api, pattern: str, names: list[str]
) -> None:
    for name in ("re-1", "re-a", "re-h"):
        api.done("PUT", f"/api/queues/%2F/{name}", {})
    query = f"page=1&use_regex=true&name={segment(pattern)}"
    found = api.get(f"/api/queues?{query}")["items"]
    assert sorted(row["name"] for row in found) == names


@pytest.mark.parametrize(
    "pattern", ["(?=re)", "(?!re)", "(?<!r)e", r"\bre", "[[:nothing:]]", "[:digit:]", r"\K", "(?R)"]
)
def test_a_regular_expression_that_is_not_supported_is_refused(api: Api, pattern: str) -> None:
    answer = api.ask("GET", f"/api/queues?page=1&use_regex=true&name={segment(pattern)}")
    assert answer.status == 400
    assert "regular expression" in answer.json["reason"]
