"""Who did what: each administrative act leaves a line, whatever door it came through."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harebell.admin.catalog import commands, find
from harebell.admin.limits import AUDIT_USER_LINES
from harebell.client import blocking
from harebell.client.errors import AMQPError
from harebell.management.http.rights import ALLOWED
from harebell.management.http.routes import routes_of
from tests.ports import free_port
from tests.running import RunningBroker, asked, running_broker
from tests.unit.management.http.asking import Api, running_api

SECRET = "kestrel-at-dawn"


ROUTES = [
    each
    for each in routes_of(commands())
    if each.command.acts and each.method != "GET" and each.command.noun.name not in ("app",)
]
"""Every route of an act."""


class Site(NamedTuple):
    """A broker, and its API."""

    broker: RunningBroker
    api: Api


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A broker that the tests of this file share."""
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        yield Site(broker, Api(port))


def last(api: Api, **query: str) -> dict[str, Any]:
    """The last line of the trail."""
    asked_for = "&".join(f"{name}={value}" for name, value in query.items())
    rows: list[dict[str, Any]] = api.get(f"/api/audit?{asked_for}")
    return rows[-1]


def test_a_command_over_http_has_its_user_address_object_and_both_states(site: Site) -> None:
    api = site.api
    operator = api.user("operator", "administrator", vhost="/")
    api.done("PUT", "/api/queues/%2F/orders", {"durable": True}, user=operator)
    line = last(api, object="orders")
    assert (line["user"], line["peer"], line["door"]) == ("operator", "127.0.0.1", "http")
    assert (line["act"], line["vhost"], line["object"]) == ("queues.declare", "/", "orders")
    assert (line["result"], line["before"]) == ("done", None)
    assert line["after"]["durable"] is True
    definition = {"pattern": "^o", "apply-to": "queues", "definition": {"max-length": 7}}
    api.done("PUT", "/api/policies/%2F/short", definition)
    definition["definition"] = {"max-length": 9}
    api.done("PUT", "/api/policies/%2F/short", definition)
    line = last(api, act="policies")
    assert line["before"]["definition"] == {"max-length": 7}
    assert line["after"]["definition"] == {"max-length": 9}
    api.done("DELETE", "/api/queues/%2F/orders")
    line = last(api, object="orders")
    assert (line["act"], line["after"]) == ("queues.delete", None)
    assert line["before"]["type"] == "classic"


def test_a_command_of_the_control_socket_has_the_process_that_sent_it(site: Site) -> None:
    assert asked(site.broker, "vhosts", "add", "night", "--description", "dark").returncode == 0
    line = last(site.api, object="night")
    assert (line["user"], line["door"], line["act"]) == ("rmq-cli", "control", "vhosts.add")
    assert line["peer"].startswith("uid ")
    assert line["after"]["description"] == "dark"


def test_a_refused_act_has_its_reason_and_no_state(site: Site) -> None:
    api = site.api
    clerk = api.user("clerk", "management", vhost="/", pattern="^mine")
    api.done("PUT", "/api/queues/%2F/theirs", {})
    assert api.ask("DELETE", "/api/queues/%2F/theirs", user=clerk).status == 401
    line = last(api, user="clerk")
    assert (line["act"], line["object"], line["result"]) == ("queues.delete", "theirs", "refused")
    assert "refused for user 'clerk'" in line["reason"]
    assert (line["before"], line["after"]) == (None, None)
    # A tag is missing, which is known before the body is read.
    assert api.ask("DELETE", "/api/users/guest", user=clerk).status == 401
    line = last(api, user="clerk")
    assert (line["act"], line["object"], line["result"]) == ("users.delete", "guest", "refused")
    assert line["reason"] == "Not administrator user"
    assert api.ask("DELETE", "/api/queues/night/x", user=clerk).status == 401
    assert last(api, user="clerk")["reason"] == "User not authorised to access virtual host"


def test_no_password_or_hash_is_in_the_trail(site: Site) -> None:
    api, broker = site.api, site.broker
    api.done("PUT", "/api/users/keeper", {"password": SECRET, "tags": "management"})
    api.done("PUT", "/api/users/keeper", {"password": SECRET + "2", "tags": "monitoring"})
    line = last(api, object="keeper")
    assert line["arguments"]["password"] == "(secret)"
    assert line["before"]["tags"] == ["management"]
    assert line["after"]["has_new_password"] is True
    assert asked(broker, "users", "password", "keeper", SECRET + "3").returncode == 0
    address = f"amqp://u:{SECRET}@far"
    api.done(
        "PUT",
        "/api/global-parameters/link",
        {"value": {"uri": address, "uris": [address], "inner": {"auth_token": SECRET}}},
    )
    value = last(api, object="link")["after"]["value"]
    assert value == {
        "uri": "amqp://u:(secret)@far",
        "uris": ["amqp://u:(secret)@far"],
        "inner": {"auth_token": "(secret)"},
    }
    definitions = api.get("/api/definitions")
    api.done("POST", "/api/definitions", definitions)
    assert last(api, act="definitions.import")["arguments"]["definitions"]["vhosts"] >= 1
    hashes = [each["password_hash"] for each in definitions["users"]]
    text = trail_of(broker)
    assert SECRET not in text
    assert not [each for each in hashes if each in text]


def trail_of(broker: RunningBroker) -> str:
    """Every file of the trail."""
    paths = sorted((Path(broker.data_dir) / "audit").iterdir())
    return "".join(path.read_text() for path in paths)


@pytest.mark.parametrize("version", ["0-9-1", "0-9", "0-8", "0-10t", "0-10", "1.0"])
def test_what_amqp_changes_has_a_line_once(site: Site, version: str) -> None:
    api, name = site.api, f"queue-of-{version}-only"
    with blocking.connect(site.broker.address(), version=version) as connection:
        channel = connection.channel()
        for _ in range(2):
            channel.declare_queue(name, durable=True)
        lines = api.get(f"/api/audit?object={name}")
        assert [line["act"] for line in lines] == ["queues.declare"]
        (line,) = lines
        assert (line["user"], line["door"]) == ("guest", f"amqp {version}")
        assert line["peer"].startswith("127.0.0.1:")
        assert (line["before"], line["after"]["durable"]) == (None, True)
        channel.delete_queue(name)
    line = last(api, object=name)
    assert (line["act"], line["before"]["type"], line["after"]) == (
        *("queues.delete", "classic"),
        None,
    )


def test_bindings_purges_and_refusals_of_amqp_have_lines_and_temporary_queues_have_none(
    site: Site,
) -> None:
    api = site.api
    api.user("app", "management", vhost="/", pattern="^app")
    url = site.broker.address().replace("guest:guest", "app:p").replace("//1", "//app:p@1")
    with blocking.connect(site.broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("app-tasks", durable=True)
        channel.bind_queue("app-tasks", "amq.direct", "key")
        line = last(api, object="app-tasks")
        assert (line["act"], line["object"]) == ("bindings.add", "amq.direct app-tasks")
        assert line["after"]["routing_key"] == "key"
        channel.publish(b"x", routing_key="app-tasks", mandatory=True)
        channel.purge_queue("app-tasks")
        line = last(api, object="app-tasks")
        assert (line["act"], line["before"]["messages"]) == ("queues.purge", 1)
        before = last(api)["number"]
        channel.declare_queue("app-temporary", exclusive=True)
        channel.declare_queue("app-shared", auto_delete=True)
    assert last(api)["number"] == before
    with pytest.raises(AMQPError), blocking.connect(url) as connection:
        connection.channel().declare_queue("theirs-too", durable=True)
    line = last(api, user="app")
    assert (line["act"], line["object"], line["result"]) == (
        *("queues.configure", "theirs-too"),
        "refused",
    )


ACTS: dict[str, Callable[[blocking.Channel], object]] = {
    "bindings.add amq.direct others": lambda it: it.bind_queue("others", "amq.direct", "key"),
    "bindings.delete amq.direct others": lambda it: it.unbind_queue("others", "amq.direct", "key"),
    "queues.purge others": lambda it: it.purge_queue("others"),
    "queues.configure others": lambda it: it.delete_queue("others"),
    "queues.declare app-new": lambda it: it.declare_queue(
        "app-new", durable=True, arguments={"x-dead-letter-exchange": "amq.direct"}
    ),
}
"""What a user may not do with the queue `others` and the exchange `amq.direct`."""


@pytest.mark.parametrize("version", ["0-8", "0-9", "0-9-1", "0-10t", "0-10", "1.0"])
@pytest.mark.parametrize("act", ACTS)
def test_what_amqp_may_not_bind_unbind_purge_or_delete_has_one_line(
    site: Site, act: str, version: str
) -> None:
    api = site.api
    api.user("app", "management", vhost="/", pattern="^app")
    # A client of 0-10 asks for the queue first, which any permission allows.
    rights = {"configure": "^app", "write": "^app|^others", "read": "^app"}
    api.done("PUT", "/api/permissions/%2F/app", rights)
    api.done("PUT", "/api/queues/%2F/others", {"durable": True})
    url = site.broker.address().replace("guest:guest", "app:p").replace("//1", "//app:p@1")
    before = last(api)["number"]
    with pytest.raises(AMQPError), blocking.connect(url, version=version) as connection:
        ACTS[act](connection.channel())
    (line,) = [each for each in api.get("/api/audit?user=app") if each["number"] > before]
    assert f"{line['act']} {line['object']}" == act
    assert (line["door"], line["result"]) == (f"amqp {version}", "refused")
    assert "refused for user 'app'" in line["reason"]
    assert (line["before"], line["after"]) == (None, None)


def test_a_client_that_is_refused_in_a_loop_does_not_fill_the_trail(site: Site) -> None:
    api = site.api
    api.user("loop", "management", vhost="/", pattern="^loop")
    api.done("PUT", "/api/queues/%2F/others", {"durable": True})
    url = site.broker.address().replace("guest:guest", "loop:p").replace("//1", "//loop:p@1")
    with blocking.connect(url) as connection:
        for _ in range(AUDIT_USER_LINES + 5):
            with pytest.raises(AMQPError):
                connection.channel().purge_queue("others")
    lines = api.get("/api/audit?user=loop&act=queues.purge&limit=1000")
    # They may be in two minutes, each of which has its lines.
    assert AUDIT_USER_LINES <= len(lines) <= AUDIT_USER_LINES + 5


def test_amqp_is_left_out_when_it_is_configured_so(site: Site) -> None:
    assert asked(site.broker, "config", "set", "audit_amqp", "false").returncode == 0
    line = last(site.api)
    assert (line["act"], line["object"]) == ("config.set", "audit_amqp")
    assert (line["before"], line["after"]) == ({"audit_amqp": True}, {"audit_amqp": False})
    with blocking.connect(site.broker.address()) as connection:
        connection.channel().declare_queue("unseen", durable=True)
    assert last(site.api)["number"] == line["number"]
    assert asked(site.broker, "config", "unset", "audit_amqp").returncode == 0


def test_acts_are_found_by_what_they_have_and_in_pages(site: Site) -> None:
    api = site.api
    for number in range(5):
        api.done("PUT", f"/api/vhosts/page-{number}", {"description": f"Room {number}"})
    lines = api.get("/api/audit?object=page-&limit=2")
    assert [line["object"] for line in lines] == ["page-3", "page-4"]
    older = api.get(f"/api/audit?object=page-&limit=2&before={lines[0]['number']}")
    assert [line["object"] for line in older] == ["page-1", "page-2"]
    assert [line["object"] for line in api.get("/api/audit?text=ROOM%203")] == ["page-3"]
    assert {line["act"] for line in api.get("/api/audit?act=vhosts")} >= {"vhosts.put"}
    assert api.get("/api/audit?act=vhost") == []
    assert api.get("/api/audit?since=2h&until=1h") == []
    assert api.get(f"/api/audit?since={lines[1]['time']}&object=page-4") == lines[1:]
    assert api.get("/api/audit?result=failed") == []
    for query, reason in (
        ("since=yesterday", "since is 'yesterday'"),
        ("limit=0", "the limit is 0"),
        ("limit=1001", "the limit is 1001"),
        ("result=maybe", "result is 'maybe'"),
    ):
        answer = api.ask("GET", f"/api/audit?{query}")
        assert (answer.status, reason in answer.json["reason"]) == (400, True), answer


def test_the_trail_is_for_administrators_alone(site: Site) -> None:
    for tag in ("management", "policymaker", "monitoring"):
        user = site.api.user(f"audit-{tag}", tag, vhost="/")
        assert site.api.ask("GET", "/api/audit", user=user).status == 401


def test_acts_are_events(site: Site) -> None:
    with blocking.connect(site.broker.address()) as connection:
        channel = connection.channel()
        channel.declare_queue("heard", durable=True)
        channel.bind_queue("heard", "amq.rabbitmq.event", "audit.#")
        site.api.done("PUT", "/api/vhosts/loud", {})
        clerk = site.api.user("shy", "management", vhost="/")
        site.api.ask("DELETE", "/api/vhosts/loud", user=clerk)
        keys, headers = [], []
        while (message := channel.get("heard")) is not None:
            keys.append(message.routing_key)
            headers.append(message.headers)
            message.ack()
    assert keys[0] == "audit.vhosts.put"
    assert keys[-1] == "audit.vhosts.delete"
    assert headers[-1]["result"] == "refused"
    assert headers[-1]["user"] == "shy"
    assert not {"before", "after", "arguments"}.intersection(headers[0])


def test_the_trail_survives_a_killed_broker(tmp_path: Path) -> None:
    port = free_port()
    flags = ("--management-port", str(port), "--data-dir", str(tmp_path))
    with running_broker(*flags) as broker:
        Api(port).done("PUT", "/api/vhosts/before", {})
        broker.kill()
    (path,) = (tmp_path / "audit").iterdir()
    with path.open("ab") as file:
        file.write(b'{"number":1,"torn')
    with running_broker(*flags):
        api = Api(port)
        api.done("PUT", "/api/vhosts/after", {})
        assert [line["object"] for line in api.get("/api/audit")] == ["before", "after"]


def test_the_command_line_lists_and_exports(site: Site) -> None:
    site.api.done("PUT", "/api/vhosts/shown", {})
    done = asked(site.broker, "audit", "list", "--object", "shown")
    assert "vhosts.put" in done.stdout.splitlines()[-1], done
    done = asked(site.broker, "audit", "list", "--object", "shown", "--json")
    assert [line["act"] for line in json.loads(done.stdout)] == ["vhosts.put"]


def test_every_route_that_changes_something_leaves_a_line_and_one_alone() -> None:
    """Generated: each route of an act, by a user without the rights and by an administrator."""
    with running_api() as api:
        clerk = api.user("clerk", "management")
        operator = api.user("operator", "administrator", vhost="/")
        for user in (clerk, operator):
            # The object is in no store, so that nothing ends that later routes need.
            for route in ROUTES:
                path = re.sub(r"{\w+}", "nope", route.path)
                before = last(api)["number"]
                body = None if route.method == "DELETE" else {}
                answer = api.ask(route.method, path, body, user=user)
                lines = api.get(f"/api/audit?before=0&limit=2&since={last(api)['time']}")
                new = [line for line in lines if line["number"] > before]
                if answer.status == 400 and not new:
                    continue  # arguments that cannot be read name no act
                (line,) = new
                assert line["act"] == route.command.name, (route.path, answer)
                assert line["user"] == user.partition(":")[0]
                assert line["door"] == "http"
                if answer.status >= 400:
                    assert (line["result"], line["before"], line["after"]) == (
                        *("refused", None),
                        None,
                    )
                    assert line["reason"]


def test_a_line_shows_its_readers_nothing_that_they_could_not_see_elsewhere() -> None:
    """Generated: whoever may read the trail may read every object that a line can have."""
    assert ALLOWED[find_tag("audit.list")] == {"administrator"}
    shows = [each.command.tag for each in routes_of(commands()) if each.method == "GET"]
    assert {tag for tag in shows if "administrator" not in ALLOWED[tag]} == set()


def find_tag(name: str) -> str:
    """The tag that a command needs."""
    command = find(name)
    assert command is not None
    return command.tag
