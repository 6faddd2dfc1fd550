"""Commands work at every owner of a cluster, wherever the vhost lives that they are about."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harebell.admin.catalog import find
from harebell.admin.context import Unavailable
from harebell.base.slices import Slices
from harebell.cluster.command_caller import CommandCaller
from harebell.cluster.command_wire import Actor, Request
from harebell.cluster.limits import CLUSTER_IDLE_LINKS
from harebell.cluster.link import LinkError, open_link, streams
from harebell.wire.v09 import methods as m
from tests.cluster.owners import SECRET, Owner, Owners, running_owners
from tests.patience import eventually
from tests.ports import free_port
from tests.unit.management.backends.web_service import WebService
from tests.unit.management.http.asking import Api
from tests.unit.management.http.test_publish_and_get import ask_and_leave
from tests.unit.server.listening import Talker

NEAR, FAR = "near", "far"
"""The vhosts of the tests: in store 1, and in store 2."""
ALL = {"configure": ".*", "write": ".*", "read": ".*"}


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owners]:
    with running_owners(tmp_path_factory.mktemp("owners")) as found:
        found.paper.vhosts.update({NEAR: 1, FAR: 2})
        for name in (NEAR, FAR):
            # The place is written down, and the vhost is not made yet.
            found.both[0].api.done("PUT", f"/api/vhosts/{name}", {})
        yield found


@pytest.fixture(params=[0, 1], ids=["at store 1", "at store 2"])
def owner(owners: Owners, request: pytest.FixtureRequest) -> Owner:
    """The owner that is asked."""
    found: Owner = owners.both[request.param]
    return found


@pytest.fixture
def api(owner: Owner) -> Api:
    return owner.api


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


def reason(answer: Any) -> str:
    found: str = answer.json["reason"]
    return found


# --- one vhost ------------------------------------------------------------------------------------


@pytest.mark.parametrize("vhost", [NEAR, FAR])
def test_everything_in_a_vhost_is_made_and_removed_at_either_owner(
    owners: Owners, api: Api, vhost: str
) -> None:
    api.done("PUT", f"/api/queues/{vhost}/q", {"durable": True})
    api.done("PUT", f"/api/exchanges/{vhost}/e", {"type": "topic"})
    api.done("POST", f"/api/bindings/{vhost}/e/e/q/q", {"routing_key": "k"})
    policy = {"pattern": "^q", "definition": {"max-length": 7}}
    api.done("PUT", f"/api/policies/{vhost}/short", policy)
    api.done("PUT", f"/api/parameters/tool/{vhost}/p", {"value": {"a": 1}})
    api.done("PUT", f"/api/vhost-limits/{vhost}/max-queues", {"value": 50})
    published = {"routing_key": "k", "payload": "text", "payload_encoding": "string"}
    sent = api.done("POST", f"/api/exchanges/{vhost}/e/publish", published | {"properties": {}})
    assert sent.json == {"routed": True}
    for each in owners.both:
        shown = each.api.get(f"/api/queues/{vhost}/q")
        assert (shown["policy"], shown["messages"]) == ("short", 1)
        bound = each.api.get(f"/api/exchanges/{vhost}/e/bindings/source")
        assert [row["routing_key"] for row in bound] == ["k"]
        assert {"vhost": vhost, "value": {"max-queues": 50}} in each.api.get("/api/vhost-limits")
        assert each.api.get(f"/api/parameters/tool/{vhost}/p")["value"] == {"a": 1}
    got = api.done(
        "POST", f"/api/queues/{vhost}/q/get", {"count": 1, "ackmode": "ack_requeue_false"}
    )
    assert got.json[0]["payload"] == "text"
    for path in (
        *(f"policies/{vhost}/short", f"parameters/tool/{vhost}/p"),
        *(f"vhost-limits/{vhost}/max-queues", f"exchanges/{vhost}/e", f"queues/{vhost}/q"),
    ):
        api.done("DELETE", f"/api/{path}")
    for each in owners.both:
        assert each.api.ask("GET", f"/api/queues/{vhost}/q").status == 404


def test_a_get_at_any_owner_settles_what_its_client_has_got(api: Api) -> None:
    for vhost in (NEAR, FAR):
        path = f"/api/queues/{vhost}/got"
        api.done("PUT", path, {"durable": True})
        payload = base64.b64encode(b"\xff" * 1_000_000).decode()
        sent = {"routing_key": "got", "payload": payload, "payload_encoding": "base64"}
        for _ in range(20):
            api.done("POST", f"/api/exchanges/{vhost}/amq.default/publish", sent)
        body = {"count": 20, "ackmode": "ack_requeue_false", "encoding": "base64"}
        ask_and_leave(api, f"{path}/get", body)
        assert eventually(lambda: api.get(path)["messages_ready"] == 20)  # noqa: B023
        for _ in range(3):
            again = api.done("POST", f"{path}/get", body | {"ackmode": "ack_requeue_true"})
            assert [row["redelivered"] for row in again.json] == [True] * 20
        api.done("POST", f"{path}/get", body)
        assert eventually(lambda: api.get(path)["messages"] == 0)  # noqa: B023
        api.done("DELETE", path)


def test_a_refusal_of_the_other_owner_has_its_status_and_its_sentence(api: Api) -> None:
    for vhost in (NEAR, FAR):
        missing = api.ask("GET", f"/api/queues/{vhost}/none")
        assert missing.status == 404
        assert "none" in reason(missing)
        wrong = api.ask("PUT", f"/api/queues/{vhost}/w", {"arguments": {"x-max-length": -1}})
        assert wrong.status == 400
        assert "x-max-length" in reason(wrong)
    assert api.ask("GET", "/api/queues/nowhere/q").status == 404


def test_a_new_vhost_gets_a_store_and_its_maker_may_open_it(owners: Owners, api: Api) -> None:
    before = set(owners.paper.vhosts)
    for name in ("v1", "v2"):
        api.done("PUT", f"/api/vhosts/{name}", {"description": "new"})
    placed = [owners.paper.vhosts[name] for name in ("v1", "v2")]
    assert set(placed) == {1, 2}, "one in each store"
    for each in owners.both:
        assert {"v1", "v2"} < set(names(each.api.get("/api/vhosts")))
        for name in ("v1", "v2"):
            assert each.api.get(f"/api/permissions/{name}/guest")["read"] == ".*"
            assert each.api.get(f"/api/vhosts/{name}")["description"] == "new"
    for name in ("v1", "v2"):
        api.done("DELETE", f"/api/vhosts/{name}")
    assert set(owners.paper.vhosts) == before
    for each in owners.both:
        assert not {"v1", "v2"} & set(names(each.api.get("/api/vhosts")))


def test_a_vhost_that_is_refused_gets_no_store(owners: Owners, api: Api) -> None:
    before = dict(owners.paper.vhosts)
    for name in ("x1", "x2"):
        refused = api.ask("PUT", f"/api/vhosts/{name}", {"durability": "perhaps"})
        assert refused.status == 400
        assert api.ask("PUT", "/api/vhosts/" + "y" * 300, {}).status == 400
    assert owners.paper.vhosts == before


def test_a_protected_vhost_stays_in_its_store(owners: Owners, api: Api) -> None:
    api.done("POST", f"/api/vhosts/{FAR}/deletion/protection")
    assert "protected" in reason(api.ask("DELETE", f"/api/vhosts/{FAR}"))
    assert owners.paper.vhosts[FAR] == 2
    api.done("DELETE", f"/api/vhosts/{FAR}/deletion/protection")


def test_a_vhost_that_its_store_has_lost_is_forgotten_when_it_is_deleted(
    owners: Owners, api: Api
) -> None:
    owners.paper.vhosts["lost"] = 2
    assert api.ask("DELETE", "/api/vhosts/lost").status == 404
    assert "lost" not in owners.paper.vhosts


# --- users ----------------------------------------------------------------------------------------


def test_a_user_may_log_in_everywhere_and_get_permissions_at_once(owners: Owners, api: Api) -> None:
    login = api.user("ann", "management", vhost=FAR)
    api.done("PUT", f"/api/permissions/{NEAR}/ann", ALL)
    for each in owners.both:
        assert each.api.get("/api/whoami", user=login)["name"] == "ann"
        held = each.api.get("/api/users/ann/permissions")
        assert [row["vhost"] for row in held] == [FAR, NEAR]
    api.done("PUT", "/api/user-limits/ann/max-connections", {"value": 3})
    for each in owners.both:
        assert each.api.get("/api/user-limits/ann") == [
            {"user": "ann", "value": {"max-connections": 3}}
        ]
        assert each.json("limits", "list", "--user", "ann")[0]["value"] == 3
        assert len(each.json("limits", "list")) == 1, "the limit of a user is listed once"
    api.done("DELETE", "/api/users/ann")
    for each in owners.both:
        assert each.api.ask("GET", "/api/whoami", user=login).status == 401
        rows = each.api.get("/api/permissions")
        assert not [row for row in rows if row["user"] == "ann"]


def test_users_without_permissions_have_none_in_any_store(owners: Owners, api: Api) -> None:
    api.user("in-near", vhost=NEAR)
    api.user("in-far", vhost=FAR)
    api.user("in-none")
    found = names(api.get("/api/users/without-permissions"))
    assert found == ["in-none"]
    api.done("POST", "/api/users/bulk-delete", {"users": ["in-near", "in-far", "in-none"]})


def test_global_parameters_are_changed_at_either_owner(owners: Owners, api: Api) -> None:
    api.done("PUT", "/api/global-parameters/color", {"value": "red"})
    api.done("PUT", "/api/cluster-name", {"name": "together"})
    for each in owners.both:
        assert each.api.get("/api/global-parameters/color")["value"] == "red"
        assert each.api.get("/api/cluster-name") == {"name": "together"}
        assert each.api.get("/api/overview")["cluster_name"] == "together"
    api.done("DELETE", "/api/global-parameters/color")
    for each in owners.both:
        assert each.api.ask("GET", "/api/global-parameters/color").status == 404


# --- rights ---------------------------------------------------------------------------------------


@pytest.fixture
def manager(owners: Owners) -> Iterator[str]:
    """A user with the tag management and permissions for queues `a-` in the far vhost."""
    api = owners.both[0].api
    yield api.user("manager", "management", vhost=FAR, pattern="^a-")
    api.done("DELETE", "/api/users/manager")


def test_a_user_sees_own_vhosts_alone_at_either_owner(
    owners: Owners, api: Api, manager: str
) -> None:
    for vhost in (NEAR, FAR):
        api.done("PUT", f"/api/queues/{vhost}/a-q", {})
    assert [row["vhost"] for row in api.get("/api/queues", user=manager)] == [FAR]
    assert names(api.get("/api/vhosts", user=manager)) == [FAR]
    assert api.get("/api/overview", user=manager)["object_totals"]["queues"] == 1
    assert api.ask("GET", f"/api/queues/{NEAR}/a-q", user=manager).status == 401
    assert api.ask("GET", f"/api/queues/{NEAR}", user=manager).status == 401
    assert api.ask("GET", f"/api/queues?vhost={NEAR}", user=manager).status == 401
    assert api.ask("DELETE", f"/api/queues/{NEAR}/a-q", user=manager).status == 401
    for vhost in (NEAR, FAR):
        api.done("DELETE", f"/api/queues/{vhost}/a-q")


def test_permissions_are_those_at_the_owner_of_the_vhost(
    owners: Owners, api: Api, manager: str
) -> None:
    assert api.ask("PUT", f"/api/queues/{FAR}/b", {}, user=manager).status == 401
    api.done("PUT", f"/api/queues/{FAR}/a-b", {}, user=manager)
    api.done("DELETE", f"/api/queues/{FAR}/a-b", user=manager)
    api.done("DELETE", f"/api/permissions/{FAR}/manager")
    assert api.ask("PUT", f"/api/queues/{FAR}/a-b", {}, user=manager).status == 401
    assert api.ask("GET", "/api/users", user=manager).status == 401
    new = {"password": "p", "tags": "administrator"}
    assert api.ask("PUT", "/api/users/mallory", new, user=manager).status == 401
    assert api.ask("PUT", "/api/vhosts/mallory", {}, user=manager).status == 401


def sent(owners: Owners, number: int, request: Request, secret: bytes = SECRET) -> Any:
    """The answer of an owner to a request at its cluster port."""

    async def ask() -> Any:
        transport = await open_link(owners.paper.addresses[number], secret, {"service": "command"})
        reader, writer = streams(transport)
        writer.write(msgspec.json.encode(request) + b"\n")
        line = await reader.readline()
        writer.close()
        return msgspec.json.decode(line)

    return owners.call(ask())


def test_a_peer_that_does_not_know_the_secret_runs_no_command(owners: Owners) -> None:
    request = Request("users.list", {}, 2, None, reads=True)
    with pytest.raises(LinkError, match="log says why"):
        sent(owners, 2, request, secret=b"a guess")
    assert sent(owners, 2, request)["ok"] is True


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("users.add", {"name": "mallory", "password": "p"}),
        ("permissions.set", {"user": "manager", "vhost": FAR, **ALL}),
        ("vhosts.delete", {"name": FAR}),
        ("queues.declare", {"vhost": FAR, "name": "b"}),
        ("queues.list", {"vhost": "other"}),
        ("transactions.list", {}),
        ("config.effective", {}),
        ("definitions.export", {}),
    ],
)
def test_the_owner_checks_the_rights_of_the_user_of_a_forwarded_command(
    owners: Owners, manager: str, command: str, fields: dict[str, Any]
) -> None:
    owners.paper.vhosts["other"] = 2
    owners.both[1].api.done("PUT", "/api/vhosts/other", {})
    # The tags in a request count for users of other backends alone.
    actor = Actor("manager", tags=("administrator",))
    answer = sent(owners, 2, Request(command, fields, 2, actor, reads=True))
    assert answer["ok"] is False
    assert answer["kind"] == "ACCESS_REFUSED"
    owners.both[1].api.done("DELETE", "/api/vhosts/other")


def test_an_unknown_user_and_a_wrong_store_are_refused(owners: Owners) -> None:
    request = Request("queues.list", {}, 2, Actor("nemo"), reads=True)
    assert "knows no user 'nemo'" in sent(owners, 2, request)["error"]
    other = Request("queues.list", {}, 1, None, reads=True)
    assert "store 1 has another owner" in sent(owners, 2, other)["error"]
    unknown = Request("queues.explode", {}, 2, None, reads=True)
    assert "does not know the command" in sent(owners, 2, unknown)["error"]


def test_a_caller_that_sends_nonsense_is_answered_or_left(owners: Owners) -> None:
    async def ask(line: bytes) -> bytes:
        transport = await open_link(owners.paper.addresses[2], SECRET, {"service": "command"})
        reader, writer = streams(transport)
        writer.write(line)
        answer = await reader.readline()
        writer.close()
        return answer

    assert b'"ok":false' in owners.call(ask(b"nonsense\n"))
    assert b'"ok":false' in owners.call(ask(b'{"ask": 3}\n'))


# --- lists ----------------------------------------------------------------------------------------


def test_pages_filters_sorting_and_columns_work_over_all_stores(owners: Owners, api: Api) -> None:
    made = [(vhost, f"l{number}") for vhost in (NEAR, FAR) for number in range(4)]
    for vhost, name in made:
        api.done("PUT", f"/api/queues/{vhost}/{name}", {})
    page = api.get("/api/queues?page=2&page_size=3&name=l&sort=name&columns=name,vhost")
    assert (page["total_count"], page["filtered_count"], page["page_count"]) == (8, 8, 3)
    assert names(page["items"]) == ["l1", "l2", "l2"]
    assert set(page["items"][0]) == {"name", "vhost"}
    rows = api.get("/api/queues?columns=vhost,name")
    assert [(row["vhost"], row["name"]) for row in rows] == sorted(made)
    for vhost, name in made:
        api.done("DELETE", f"/api/queues/{vhost}/{name}")


def test_the_overview_adds_what_the_stores_have(owners: Owners, api: Api) -> None:
    nobody_is_connected(api)
    before = api.get("/api/overview")
    talkers = [connected(each, vhost) for each, vhost in zip(owners.both, (NEAR, FAR), strict=True)]
    for talker in talkers:
        talker.open_channel()
        talker.send(m.QueueDeclare("o"), 1)
        assert isinstance(talker.next(), m.QueueDeclareOk)
        talker.send(m.ConfirmSelect(), 1)
        assert isinstance(talker.next(), m.ConfirmSelectOk)
        talker.send(m.BasicPublish(routing_key="o"), 1)
        talker.sock.sendall(b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0" + bytes(8) + b"\0\0\xce")
        assert isinstance(talker.next(), m.BasicAck)

    def grown(section: str, name: str) -> int:
        now: int = api.get("/api/overview")[section][name]
        return now - int(before[section][name])

    assert grown("object_totals", "queues") == 2
    assert grown("object_totals", "connections") == 2
    assert grown("object_totals", "channels") == 2
    assert grown("queue_totals", "messages") == 2
    assert grown("message_stats", "publish") == 2
    assert grown("churn_rates", "queue_declared") == 2
    details = api.get("/api/overview?msg_rates_age=60&msg_rates_incr=5")["message_stats"]
    assert details["publish_details"].keys() >= {"rate", "samples", "avg", "avg_rate"}
    assert api.get("/api/oldest-message")["queue"] == "o"
    for talker, vhost in zip(talkers, (NEAR, FAR), strict=True):
        talker.sock.close()
        api.done("DELETE", f"/api/queues/{vhost}/o")


def test_nodes_are_listed_once_and_shown_by_their_names(owners: Owners, api: Api) -> None:
    nodes = api.get("/api/nodes")
    assert len(names(nodes)) == len(set(names(nodes)))
    for name in names(nodes):
        assert api.get(f"/api/nodes/{name}")["name"] == name


def test_health_is_that_of_all_stores(api: Api) -> None:
    for check in ("alarms", "virtual-hosts", "local-alarms"):
        assert api.get(f"/api/health/checks/{check}")["status"] == "ok"
    for vhost in (NEAR, FAR):
        assert api.get(f"/api/aliveness-test/{vhost}") == {"status": "ok"}
        api.done("DELETE", f"/api/queues/{vhost}/aliveness-test")


def test_a_job_is_found_by_its_number_wherever_it_runs(owners: Owners, api: Api) -> None:
    numbers = []
    for vhost in (NEAR, FAR):
        api.done("PUT", f"/api/queues/{vhost}/j", {})
        api.done("PUT", f"/api/queues/{vhost}/k", {})
        body = {"where": "", "to_queue": "k"}
        numbers.append(api.done("POST", f"/api/queues/{vhost}/j/move", body).json["id"])
    assert len(set(numbers)) == 2
    for number, vhost in zip(numbers, (NEAR, FAR), strict=True):
        assert api.get(f"/api/jobs/{number}")["vhost"] == vhost
        assert eventually(lambda row=f"/api/jobs/{number}": api.get(row)["state"] == "done")
    assert api.ask("DELETE", f"/api/jobs/{numbers[1]}").status == 400, "it is done"
    assert {row["id"] for row in api.get("/api/jobs")} >= set(numbers)
    assert api.ask("GET", "/api/jobs/999999").status == 404
    for vhost in (NEAR, FAR):
        for name in ("j", "k"):
            api.done("DELETE", f"/api/queues/{vhost}/{name}")


def connected(owner: Owner, vhost: str) -> Talker:
    """An AMQP connection to the vhost of an owner."""
    port = owner.app.listeners[0].port
    talker = Talker(socket.create_connection(("127.0.0.1", port)))
    talker.sock.sendall(b"AMQP\x00\x00\x09\x01")
    assert isinstance(talker.next(), m.ConnectionStart)
    talker.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))
    assert isinstance(talker.next(), m.ConnectionTune)
    talker.send(m.ConnectionTuneOk(0, 0, 0))
    talker.send(m.ConnectionOpen(vhost))
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    return talker


def nobody_is_connected(api: Api) -> None:
    """Wait until the connections of tests before have ended at all owners."""
    assert eventually(lambda: api.get("/api/connections") == [])


def test_connections_of_all_owners_are_listed_and_closed(owners: Owners, api: Api) -> None:
    nobody_is_connected(api)
    talkers = [connected(each, vhost) for each, vhost in zip(owners.both, (NEAR, FAR), strict=True)]
    rows = api.get("/api/connections")
    assert [row["vhost"] for row in rows] == [NEAR, FAR], "the oldest first"
    assert len(api.get("/api/connections/username/guest")) == 2
    far = rows[1]["name"].replace(" ", "%20")
    assert api.get(f"/api/connections/{far}")["vhost"] == FAR
    assert api.get(f"/api/connections/{far}/channels") == []
    api.done("DELETE", f"/api/connections/{far}")
    close = talkers[1].next()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 320
    again = connected(owners.both[1], FAR)
    api.done("DELETE", "/api/connections/username/guest")
    for talker in (talkers[0], again):
        assert isinstance(talker.next(), m.ConnectionClose)
        talker.sock.close()
    talkers[1].sock.close()
    assert api.ask("GET", "/api/connections/none").status == 404


# --- streams of rows ------------------------------------------------------------------------------


def test_messages_of_the_other_store_are_browsed(owners: Owners, owner: Owner) -> None:
    body = {"routing_key": "b", "payload_encoding": "string", "properties": {}}
    for vhost in (NEAR, FAR):
        owner.api.done("PUT", f"/api/queues/{vhost}/b", {})
        for number in range(50):
            owner.api.done(
                "POST",
                f"/api/exchanges/{vhost}/amq.default/publish",
                body | {"payload": str(number)},
            )
        answer = owner.api.ask("GET", f"/api/queues/{vhost}/b/browse?limit=1000")
        lines = [msgspec.json.decode(line) for line in answer.body.splitlines()]
        assert [line["payload"] for line in lines] == [str(number) for number in range(50)]
        shown = owner.run("queues", "browse", "b", "--vhost", vhost, "--limit", "3", "--json")
        assert len(shown.splitlines()) == 3
        assert owner.api.ask("GET", f"/api/queues/{vhost}/none/browse").status == 404
        owner.api.done("DELETE", f"/api/queues/{vhost}/b")


# --- the command line -----------------------------------------------------------------------------


def test_the_command_line_works_at_either_owner(owners: Owners, owner: Owner) -> None:
    assert "was added" in owner.run("vhosts", "add", "cli")
    assert "was declared" in owner.run("queues", "declare", "c", "--vhost", "cli")
    assert "were set" in owner.run(
        "permissions", "set", "guest", ".*", ".*", ".*", "--vhost", "cli"
    )
    for each in owners.both:
        assert [row["name"] for row in each.json("queues", "list", "--vhost", "cli")] == ["c"]
        assert {"cli", NEAR, FAR} < {row["name"] for row in each.json("vhosts", "list")}
    assert "no vhost 'clo'" in owner.run("queues", "list", "--vhost", "clo")
    assert "was deleted" in owner.run("vhosts", "delete", "cli")


# --- definitions ----------------------------------------------------------------------------------


def canonical(document: dict[str, Any]) -> dict[str, Any]:
    """A document whose lists are in one order."""
    return {
        name: sorted(map(msgspec.json.encode, value)) if isinstance(value, list) else value
        for name, value in document.items()
    }


def test_definitions_go_out_and_come_in_at_either_owner(owners: Owners, api: Api) -> None:
    for name in ("d1", "d2"):
        api.done("PUT", f"/api/vhosts/{name}", {"description": name})
        api.done("PUT", f"/api/queues/{name}/q", {"durable": True})
        api.done("PUT", f"/api/exchanges/{name}/e", {"type": "fanout"})
        api.done("POST", f"/api/bindings/{name}/e/e/q/q", {"routing_key": "k"})
        api.user(f"user-of-{name}", "management", vhost=name)
        policy = {"pattern": ".*", "definition": {"max-length": 9}}
        api.done("PUT", f"/api/policies/{name}/p", policy)
    assert {owners.paper.vhosts[name] for name in ("d1", "d2")} == {1, 2}
    documents = [each.api.get("/api/definitions") for each in owners.both]
    assert canonical(documents[0]) == canonical(documents[1])
    assert names(documents[0]["users"]).count("guest") == 1
    for name in ("d1", "d2"):
        api.done("DELETE", f"/api/vhosts/{name}")
        api.done("DELETE", f"/api/users/user-of-{name}")
    api.done("POST", "/api/definitions", documents[0])
    for each in owners.both:
        assert canonical(each.api.get("/api/definitions")) == canonical(documents[0])
    assert {owners.paper.vhosts[name] for name in ("d1", "d2")} == {1, 2}
    for name in ("d1", "d2"):
        one = api.get(f"/api/definitions/{name}")
        assert names(one["queues"]) == ["q"]
        api.done("DELETE", f"/api/queues/{name}/q")
        api.done("POST", f"/api/definitions/{name}", one)
        assert names(api.get(f"/api/queues/{name}")) == ["q"]
        api.done("DELETE", f"/api/vhosts/{name}")
        api.done("DELETE", f"/api/users/user-of-{name}")


@pytest.mark.parametrize(
    ("section", "entry", "named"),
    [
        ("queues", {"name": "bad", "vhost": FAR, "arguments": {"x-max-length": -1}}, "bad"),
        ("queues", {"name": "bad", "vhost": NEAR, "arguments": {"x-max-length": -1}}, "bad"),
        ("queues", {"name": "bad", "vhost": "nowhere"}, "nowhere"),
        ("permissions", {"user": "nemo", "vhost": FAR, **ALL}, "nemo"),
        ("users", {"name": "bad", "password_hash": "no hash", "tags": ""}, "bad"),
        ("queues", 3, "queues"),
    ],
)
def test_an_invalid_entry_changes_nothing_in_any_store(
    owners: Owners, api: Api, section: str, entry: Any, named: str
) -> None:
    before = canonical(api.get("/api/definitions"))
    stores = dict(owners.paper.vhosts)
    document: dict[str, Any] = {
        "users": [{"name": "new", "password": "p", "tags": ""}],
        "vhosts": [{"name": "made"}],
        "permissions": [{"user": "new", "vhost": "made", **ALL}],
        "queues": [{"name": name, "vhost": name} for name in (NEAR, FAR, "made")],
    }
    document[section] = [*document[section], entry]
    refused = api.ask("POST", "/api/definitions", document)
    assert refused.status == 400
    assert named in reason(refused)
    assert canonical(api.get("/api/definitions")) == before
    assert owners.paper.vhosts == stores


def test_an_import_counts_what_all_stores_took_in(owner: Owner) -> None:
    document = {"queues": [{"name": "n", "vhost": vhost} for vhost in (NEAR, FAR)]}
    path = owner.config.data_dir / "definitions.json"
    path.write_bytes(msgspec.json.encode(document))
    assert "2 queues" in owner.run("definitions", "import", str(path))
    for vhost in (NEAR, FAR):
        owner.api.done("DELETE", f"/api/queues/{vhost}/n")


# --- an owner that is away ------------------------------------------------------------------------


@pytest.fixture
def away(owners: Owners) -> Iterator[Api]:
    """The API of the owner of store 1, while store 2 has no owner."""
    first, second = owners.both
    owners.do(second.go_away)
    yield first.api
    owners.do(second.come_back)


def test_a_request_for_a_store_without_an_owner_is_refused_with_503(away: Api) -> None:
    answer = away.ask("PUT", f"/api/queues/{FAR}/q", {})
    assert answer.status == 503
    assert reason(answer) == (
        f"vhost '{FAR}' is in store 2, which has no owner now: try again in some seconds"
    )
    assert answer.headers["retry-after"] == "5"
    away.done("PUT", f"/api/queues/{NEAR}/q", {})
    away.done("DELETE", f"/api/queues/{NEAR}/q")


def test_lists_have_what_there_is_and_say_what_is_missing(owners: Owners, away: Api) -> None:
    log = owners.both[0].log
    log.clear()
    for _ in range(2):
        answer = away.ask("GET", "/api/vhosts")
        assert answer.status == 200
        assert names(answer.json) == ["/", NEAR]
        assert answer.headers["x-harebell-stores-away"] == "2"
    missing = "lists have no rows of store 2, which has no owner that answers"
    assert log.count(missing) == 1
    assert away.get("/api/overview")["object_totals"]["queues"] == 0
    assert [row["name"] for row in owners.both[0].json("vhosts", "list")] == ["/", NEAR]
    assert owners.both[0].errors == (
        "warning: nothing of these stores is shown, as they have no owner that answers: 2\n"
    )
    owners.do(owners.both[1].come_back)
    assert "x-harebell-stores-away" not in away.ask("GET", "/api/vhosts").headers
    assert "lists have the rows of store 2 again" in log


@pytest.mark.usefixtures("away")
def test_a_broker_that_stands_by_says_what_is_missing_too(owners: Owners) -> None:
    command = find("vhosts.list")
    missing: list[int] = []
    assert command is not None
    caller = CommandCaller(owners.both[0].directory)

    async def listed() -> Any:
        return await caller.run(1, command, {}, None, reads=True, places=True, away=missing)

    assert names(msgspec.json.decode(owners.call(listed()))) == ["/", NEAR]
    assert missing == [2]


def test_commands_for_all_stores_are_refused_while_one_is_away(away: Api) -> None:
    for path in ("definitions", "users/without-permissions"):
        answer = away.ask("GET", f"/api/{path}")
        assert answer.status == 503
        assert "store 2" in reason(answer)
    document = {"queues": [{"name": "n", "vhost": vhost} for vhost in (NEAR, FAR)]}
    answer = away.ask("POST", "/api/definitions", document)
    assert answer.status == 503
    assert "nothing was imported" in reason(answer)
    assert away.ask("GET", "/api/health/checks/virtual-hosts").status == 503
    assert away.get("/api/health/checks/alarms") == {"status": "ok"}
    assert away.ask("GET", "/api/connections/none").status == 503


def test_users_cannot_be_changed_without_the_owner_of_store_1(owners: Owners) -> None:
    first, second = owners.both
    owners.do(first.go_away)
    answer = second.api.ask("PUT", "/api/users/late", {"password": "p", "tags": ""})
    assert answer.status == 503
    assert "store 1 has no owner now" in reason(answer)
    assert second.api.get("/api/users/guest")["tags"] == ["administrator"]
    owners.do(first.come_back)


def test_an_owner_that_nobody_answers_for_is_away(owners: Owners) -> None:
    first, second = owners.both
    there = owners.paper.addresses[2]
    port = free_port()
    owners.paper.addresses[2] = there._replace(address=f"127.0.0.1:{port}")
    answer = first.api.ask("GET", f"/api/queues/{FAR}")
    assert answer.status == 503
    assert f"cannot be reached at 127.0.0.1:{port}" in reason(answer)
    owners.do(second.come_back)


# --- connections between owners -------------------------------------------------------------------


def test_commands_that_follow_each_other_share_a_connection(owners: Owners) -> None:
    first, second = owners.both
    first.api.get(f"/api/queues/{FAR}")
    before = len(second.links)
    for _ in range(5):
        first.api.get(f"/api/queues/{FAR}")
        assert first.api.ask("GET", f"/api/queues/{FAR}/none").status == 404
        first.api.done("PUT", f"/api/queues/{FAR}/q", {})
    assert len(second.links) == before
    first.api.done("DELETE", f"/api/queues/{FAR}/q")


def test_few_connections_wait_for_the_next_command_and_for_a_while(owners: Owners) -> None:
    first, second = owners.both
    patient = CommandCaller(first.directory, idle_seconds=600.0)
    hasty = CommandCaller(first.directory, idle_seconds=0.1)

    async def at_once(caller: CommandCaller) -> None:
        await asyncio.gather(*(listed(caller) for _ in range(3 * CLUSTER_IDLE_LINKS)))

    def links_of(caller: CommandCaller) -> list[asyncio.Transport]:
        before = len(second.links)
        owners.call(at_once(caller))
        made = second.links[before:]
        assert len(made) == 3 * CLUSTER_IDLE_LINKS
        return made

    def waiting(links: list[asyncio.Transport]) -> int:
        return sum(not each.is_closing() for each in links)

    kept, left = links_of(patient), links_of(hasty)
    assert eventually(lambda: waiting(kept) == CLUSTER_IDLE_LINKS)
    assert eventually(lambda: waiting(left) == 0)
    assert waiting(kept) == CLUSTER_IDLE_LINKS
    owners.do(patient.close)


def test_a_connection_to_an_earlier_owner_is_not_used_again(owners: Owners) -> None:
    first, second = owners.both
    first.api.get(f"/api/queues/{FAR}")
    before = second.links[:]
    owners.paper.addresses[2] = owners.paper.addresses[2]._replace(epoch=2)
    first.api.get(f"/api/queues/{FAR}")
    assert len(second.links) == len(before) + 1
    assert eventually(lambda: all(each.is_closing() for each in before))
    owners.do(second.come_back)


def test_only_reading_is_tried_again_when_a_connection_is_cut(owners: Owners) -> None:
    first, second = owners.both
    caller = CommandCaller(first.directory)

    async def ask_while_it_is_cut(*, reads: bool) -> None:
        await listed(caller)
        # The caller cannot have seen this when it sends the command.
        second.links[-1].abort()
        await listed(caller, reads=reads)

    owners.call(ask_while_it_is_cut(reads=True))
    with pytest.raises(Unavailable, match=r"did not answer: .*: look whether it was done"):
        owners.call(ask_while_it_is_cut(reads=False))
    owners.do(caller.close)


def test_an_owner_that_works_for_long_says_so(
    owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = owners.both
    caller = CommandCaller(first.directory)
    lines: list[bytes] = []
    over = owners.call(_event())
    run_here = second.commands.run_here

    def slow(*words: Any) -> Slices[Any]:
        waiting = asyncio.get_running_loop().create_task(over.wait())
        while not waiting.done():
            yield waiting
        return (yield from run_here(*words))

    async def heard() -> None:
        transport = await open_link(owners.paper.addresses[2], SECRET, {"service": "command"})
        reader, writer = streams(transport)
        request = Request("queues.list", {"vhost": FAR}, 2, None, reads=True, waits=True)
        writer.write(msgspec.json.encode(request) + b"\n")
        asked = asyncio.ensure_future(listed(caller))
        lines.extend([await reader.readline() for _ in range(3)])
        over.set()
        while lines[-1] == b'{"working":true}\n':
            lines.append(await reader.readline())
        writer.close()
        await asked

    monkeypatch.setattr(second.service, "_working_seconds", 0.01)
    monkeypatch.setattr(second.commands, "run_here", slow)
    owners.call(heard())
    assert set(lines[:-1]) == {b'{"working":true}\n'}
    assert msgspec.json.decode(lines[-1])["ok"] is True
    owners.do(caller.close)


def test_an_owner_that_says_nothing_is_given_up(
    owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = owners.both
    caller = CommandCaller(first.directory, silent_seconds=0.1)
    command = find("definitions.export")
    assert command is not None
    over = owners.call(_event())

    async def silent(*_: object) -> None:
        await over.wait()

    monkeypatch.setattr(second.service, "_answer", silent)
    with pytest.raises(Unavailable, match="the owner of store 2 did not answer: it takes too long"):
        owners.call(caller.run(2, command, {}, None, reads=True))
    owners.do(over.set)
    owners.do(caller.close)


async def _event() -> asyncio.Event:
    return asyncio.Event()


async def listed(caller: CommandCaller, *, reads: bool = True) -> None:
    """Let the owner of store 2 list its queues."""
    command = find("queues.list")
    assert command is not None
    await caller.run(2, command, {"vhost": FAR}, None, reads=reads)


# --- users of other backends ----------------------------------------------------------------------


def test_a_user_of_a_web_service_has_the_rights_there_that_the_service_says(
    tmp_path: Path,
) -> None:
    def may(path: str, fields: dict[str, str]) -> bool:
        if fields["vhost"] != FAR:
            return False
        return path == "/auth/vhost" or fields.get("name", "").startswith("a-")

    with closing(WebService()) as service:
        service.rule = may
        where = f"http://127.0.0.1:{service.port}/auth"
        paths = {
            f"auth_http_{path}_path": f"{where}/{path}"
            for path in ("user", "vhost", "resource", "topic")
        }
        with running_owners(tmp_path, auth_backends=("internal", "http"), **paths) as owners:
            owners.paper.vhosts.update({NEAR: 1, FAR: 2})
            first, second = (each.api for each in owners.both)
            for name in (NEAR, FAR):
                first.done("PUT", f"/api/vhosts/{name}", {})
            ada = {"user": "ada:lovelace"}
            first.done("PUT", f"/api/queues/{FAR}/a-q", {}, **ada)
            # A late question about this user must not be one about the next.
            assert eventually(owners.both[1].links[-1].is_closing)
            assert first.ask("PUT", f"/api/queues/{FAR}/b-q", {}, **ada).status == 401
            assert second.ask("PUT", f"/api/queues/{NEAR}/a-q", {}, **ada).status == 401
            first.done("PUT", f"/api/queues/{NEAR}/a-q", {})
            for api in (first, second):
                assert names(api.get("/api/vhosts", **ada)) == [FAR]
                assert [row["vhost"] for row in api.get("/api/queues", **ada)] == [FAR]
                assert api.ask("GET", f"/api/queues/{NEAR}", **ada).status == 401
                assert api.ask("GET", "/api/users", **ada).status == 401
            assert {fields["username"] for fields in service.about("resource")} == {"ada"}


def test_the_permissions_of_a_user_whom_a_service_only_authenticates_are_with_the_vhost(
    tmp_path: Path,
) -> None:
    with closing(WebService()) as service:
        paths = {"auth_http_user_path": f"http://127.0.0.1:{service.port}/auth/user"}
        backends = ("internal", "http/internal")
        with running_owners(tmp_path, auth_backends=backends, **paths) as owners:
            owners.paper.vhosts[FAR] = 2
            first, second = (each.api for each in owners.both)
            first.done("PUT", f"/api/vhosts/{FAR}", {})
            new = {"password_hash": "", "tags": "management"}
            second.done("PUT", "/api/users/ada", new)
            ada = {"user": "ada:lovelace"}
            assert first.ask("PUT", f"/api/queues/{FAR}/q", {}, **ada).status == 401
            first.done("PUT", f"/api/permissions/{FAR}/ada", ALL)
            first.done("PUT", f"/api/queues/{FAR}/q", {}, **ada)
            assert names(first.get("/api/queues", **ada)) == ["q"]
