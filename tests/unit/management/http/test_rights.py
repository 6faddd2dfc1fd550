"""Who may do what over HTTP: every route with every tag, vhosts, and AMQP permissions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

import pika
import pika.exceptions
import pytest

from harebell.admin.catalog import commands
from harebell.management.http.routes import Route, routes_of
from tests.patience import eventually
from tests.unit.management.http.asking import Api, running_api, segment

TAGS = ("", "impersonator", "management", "policymaker", "monitoring", "administrator")
MAY = {
    "": {"management", "policymaker", "monitoring", "administrator"},
    "management": {"management", "policymaker", "monitoring", "administrator"},
    "policymaker": {"policymaker", "administrator"},
    "monitoring": {"monitoring", "administrator"},
    "administrator": {"administrator"},
}
"""RabbitMQ's tags of users by the least tag that a route needs."""
ROUTES = routes_of(commands())


class World(NamedTuple):
    """A broker with a user for each tag."""

    api: Api
    users: dict[str, str]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with running_api() as api:
        users = {tag: api.user(tag or "nothing", *[tag] * bool(tag), vhost="/") for tag in TAGS}
        yield World(api, users)


def path_of(route: Route) -> str:
    """The path of a route, in the vhost "/" and with names that are not there."""
    return re.sub(r"{\w+}", "nope", route.path.replace("{vhost}", "%2F"))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_a_route_is_open_to_the_tags_that_it_is_for_and_to_no_other(
    world: World, route: Route
) -> None:
    for tag, user in world.users.items():
        body = None if route.method in ("GET", "DELETE") else {}
        answer = world.api.ask(route.method, path_of(route), body, user=user)
        assert answer.status != 500, answer
        if tag in MAY[route.command.tag]:
            refused = answer.status == 401 and answer.json["reason"].startswith("Not ")
            assert not refused, (tag, answer)
        else:
            assert answer.status == 401, (tag, answer)
            assert answer.json["error"] == "not_authorised"


def test_every_route_is_there_once() -> None:
    shapes = [(route.method, re.sub(r"{\w+}", "{}", route.path)) for route in ROUTES]
    assert sorted(shapes) == sorted(set(shapes))


def test_a_user_sees_only_vhosts_with_permissions_unless_a_tag_shows_all(world: World) -> None:
    api = world.api
    api.done("PUT", "/api/vhosts/other", {})
    api.done("PUT", "/api/queues/other/hidden", {})
    for tag in ("management", "policymaker"):
        user = world.users[tag]
        assert [row["name"] for row in api.get("/api/vhosts", user=user)] == ["/"]
        assert all(row["vhost"] == "/" for row in api.get("/api/queues", user=user))
        paths = ["queues/other", "queues?vhost=other", "vhosts/other"]
        if tag == "policymaker":
            paths.append("parameters?vhost=other")
        for path in paths:
            answer = api.ask("GET", f"/api/{path}", user=user)
            assert answer.status == 401
            assert answer.json["reason"] == "User not authorised to access virtual host"
        # A name that is not there does not bring up those that the user may not see.
        for path in ("queues/nope", "vhosts/nope"):
            answer = api.ask("GET", f"/api/{path}", user=user)
            assert answer.status in (401, 404)
            assert "other" not in answer.json["reason"]
    for tag in ("monitoring", "administrator"):
        user = world.users[tag]
        assert [row["name"] for row in api.get("/api/queues/other", user=user)] == ["hidden"]
        assert api.ask("PUT", "/api/queues/other/new", {}, user=user).status == 401


def test_a_search_shows_what_its_user_sees_elsewhere_and_nothing_else(world: World) -> None:
    api = world.api
    api.done("PUT", "/api/vhosts/other", {})
    api.done("PUT", "/api/queues/other/hidden", {})
    api.done("PUT", "/api/queues/%2F/hidden.not", {})
    for tag in ("management", "policymaker", "monitoring", "administrator"):
        user = world.users[tag]
        rows = api.get("/api/search?text=hidden", user=user)
        queues = {(row["vhost"], row["name"]) for row in rows if row["kind"] == "queue"}
        seen = {(row["vhost"], row["name"]) for row in api.get("/api/queues", user=user)}
        assert queues == {each for each in seen if "hidden" in each[1]}
        found = api.get("/api/search?text=", user=user)
        assert any(row["kind"] == "user" for row in found) == (tag == "administrator")


def test_permissions_of_amqp_hold_over_http(world: World) -> None:
    api = world.api
    user = api.user("limited", "management", vhost="/", pattern="^mine")
    api.done("PUT", "/api/queues/%2F/others", {})
    api.done("PUT", "/api/queues/%2F/mine", {}, user=user)
    got = {"ackmode": "ack_requeue_true"}
    message = {"routing_key": "k", "payload": "", "properties": {}}
    refused = (
        ("PUT", "/api/queues/%2F/new", {}),
        ("DELETE", "/api/queues/%2F/others", None),
        ("DELETE", "/api/queues/%2F/others/contents", None),
        ("POST", "/api/queues/%2F/others/get", got),
        ("PUT", "/api/exchanges/%2F/new", {"type": "direct"}),
        ("DELETE", "/api/exchanges/%2F/new", None),
        ("POST", "/api/exchanges/%2F/amq.topic/publish", message),
        ("POST", "/api/bindings/%2F/e/amq.topic/q/mine", {}),
    )
    for method, path, body in refused:
        answer = api.ask(method, path, body, user=user)
        assert answer.status == 401, (method, path, answer)
        assert "refused for user 'limited'" in answer.json["reason"]
    api.done("PUT", "/api/exchanges/%2F/mine", {"type": "direct"}, user=user)
    api.done("POST", "/api/bindings/%2F/e/mine/q/mine", {}, user=user)
    api.done("POST", "/api/exchanges/%2F/mine/publish", message, user=user)
    api.done("POST", "/api/queues/%2F/mine/get", got, user=user)
    spoofed = {**message, "properties": {"user_id": "guest"}}
    assert api.ask("POST", "/api/exchanges/%2F/mine/publish", spoofed, user=user).status == 400
    assert "others" in [row["name"] for row in api.get("/api/queues/%2F")]


def test_a_declaration_over_http_asks_for_what_one_over_amqp_asks_for(world: World) -> None:
    api = world.api
    api.done("PUT", "/api/exchanges/%2F/theirs", {"type": "topic"})
    owner = api.user("careful", "management", vhost="/", pattern="^mine")
    for key in ("x-dead-letter-exchange", "alternate-exchange"):
        kind = "queues" if key.startswith("x") else "exchanges"
        for name in ("theirs", "amq.fanout"):
            path = f"/api/{kind}/%2F/mine-{name}"
            answer = api.ask("PUT", path, {"arguments": {key: name}}, user=owner)
            assert answer.status == 401, answer
            assert answer.json["reason"] == (
                f"write access to exchange '{name}' in vhost '/' refused for user 'careful'"
            )
            assert api.ask("GET", path).status == 404
    path = "/api/stream/super-streams/%2F/mine-s"
    # The partitions of a super stream may be declared and bound by who may do so one by one.
    api.done("PUT", path, {"partitions": 2}, user=owner)


@contextmanager
def amqp(api: Api) -> Iterator[pika.BlockingConnection]:
    """A connection of guest, which may be closed by others meanwhile."""
    listeners = api.get("/api/overview")["listeners"]
    (port,) = [each["port"] for each in listeners if each["protocol"] == "amqp"]
    connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port))
    yield connection
    with suppress(pika.exceptions.AMQPError):
        connection.close()


def test_only_administrators_and_the_user_close_connections(world: World) -> None:
    api = world.api
    with amqp(api):
        # That of the test before may be there for a moment.
        assert eventually(lambda: len(api.get("/api/connections")) == 1)
        (row,) = api.get("/api/connections")
        name = row["name"]
        for path in (f"connections/{segment(name)}", "connections/username/guest"):
            for tag in ("management", "policymaker", "monitoring"):
                answer = api.ask("DELETE", f"/api/{path}", user=world.users[tag])
                assert answer.status in (401, 404), answer
                assert answer.status == 401 or tag != "monitoring"
            assert api.get("/api/connections")
        api.done("DELETE", f"/api/connections/{segment(name)}", user=world.users["administrator"])
        assert eventually(lambda: not api.get("/api/connections"))


EXCLUSIVE = {
    "browse": ("GET", "queues/%2F/alone/browse", None),
    "get": ("POST", "queues/%2F/alone/get", {"count": 1, "ackmode": "ack_requeue_true"}),
    "bind": ("POST", "bindings/%2F/e/amq.topic/q/alone", {"routing_key": "k"}),
    "unbind": ("DELETE", "bindings/%2F/e/amq.fanout/q/alone/alone", None),
    "purge": ("DELETE", "queues/%2F/alone/contents", None),
    "delete": ("DELETE", "queues/%2F/alone", None),
    "declare": ("PUT", "queues/%2F/alone", {}),
    "move": ("POST", "queues/%2F/alone/move", {"where": "", "to_queue": "alone"}),
    "copy": ("POST", "queues/%2F/alone/copy", {"where": "", "to_queue": "alone"}),
    "remove": ("POST", "queues/%2F/alone/remove", {"where": ""}),
    "retry": ("POST", "queues/%2F/alone/retry", {"where": ""}),
    "discard": ("POST", "queues/%2F/alone/discard", {"where": "", "hold": "alone"}),
    "dead letters": ("GET", "dead-letters/%2F?queue=alone", None),
}


def test_exclusive_queues_of_connections_are_refused_to_everybody_else(world: World) -> None:
    api = world.api
    with amqp(api) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("alone", exclusive=True)
        channel.queue_bind("alone", "amq.fanout")
        channel.basic_publish("", "alone", b"kept")
        for act, (method, path, body) in EXCLUSIVE.items():
            answer = api.ask(method, f"/api/{path}", body)
            assert answer.status == 400, (act, answer)
            assert "exclusive access to locked queue 'alone'" in answer.json["reason"], act
        bindings = api.get("/api/queues/%2F/alone/bindings")
        assert sorted(row["source"] for row in bindings) == ["", "amq.fanout"]
        assert channel.basic_get("alone", auto_ack=True)[2] == b"kept"
