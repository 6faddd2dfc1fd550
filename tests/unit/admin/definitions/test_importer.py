"""Definitions that are taken in: everything or nothing, and what is wrong is named."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from harebell.admin.accounts import load_users
from harebell.admin.definitions.entries import DefinitionsError, ImportTarget
from harebell.admin.definitions.exporter import document
from harebell.admin.definitions.importer import import_definitions, parse
from harebell.auth.password_hashes import MD5, SHA512, hashed
from harebell.auth.users import Users
from harebell.base.gauge import Gauge
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.model.settings.ceilings import Ceilings
from harebell.model.settings.policies import Policies
from harebell.store.log.memory import MemoryStore

OWN = ("users", "vhosts")
# As rabbitmqctl of RabbitMQ 3.10 writes it, lists of pairs included.
RABBIT: dict[str, Any] = {
    "rabbit_version": "3.10.8",
    "users": [
        {
            "name": "ann",
            "password_hash": hashed("secret", b"salt"),
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": ["monitoring"],
            "limits": {"max-connections": 7},
        },
        {"name": "bob", "password_hash": "", "tags": "a, b"},
    ],
    "vhosts": [
        {"name": "/", "limits": [], "metadata": {"description": "first", "tags": []}},
        {
            "name": "v",
            "limits": [["max-queues", 5]],
            "metadata": {
                "description": "d",
                "tags": "a,b",
                "default_queue_type": "rabbit_quorum_queue",
            },
        },
    ],
    "permissions": [
        {"user": "ann", "vhost": "v", "configure": ".*", "write": "w", "read": "r"},
    ],
    "topic_permissions": [
        {"user": "ann", "vhost": "v", "exchange": "amq.topic", "write": "^a", "read": "^b"},
    ],
    "parameters": [
        {
            "component": "operator_policy",
            "name": "o",
            "vhost": "v",
            "value": {"pattern": "^q", "definition": [["max-length", 3]], "apply-to": "queues"},
        },
        {"component": "shovel", "name": "s", "vhost": "v", "value": {"src-uri": "amqp://"}},
    ],
    "global_parameters": [{"name": "g", "value": [["a", 1]]}],
    "policies": [
        {
            "name": "p",
            "vhost": "v",
            "pattern": "^q",
            "apply-to": "queues",
            "priority": 2,
            "definition": {"max-length": 5},
        },
    ],
    "queues": [
        {"name": "q", "vhost": "v", "durable": True, "auto_delete": False, "arguments": {}},
        {"name": "amq.gen-abc", "vhost": "v", "durable": True, "type": "classic"},
        {"name": "qq", "vhost": "v", "type": "quorum", "arguments": []},
    ],
    "exchanges": [
        {"name": "x", "vhost": "v", "type": "topic", "arguments": {"alternate-exchange": "ae"}},
        {"name": "amq.direct", "vhost": "v", "type": "direct"},
    ],
    "bindings": [
        {
            "source": "x",
            "vhost": "v",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "a.#",
            "arguments": {"k": 1},
        },
        {
            "source": "amq.direct",
            "vhost": "v",
            "destination": "x",
            "destination_type": "exchange",
            "routing_key": "k",
        },
        {
            "source": "",
            "vhost": "v",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "q",
        },
    ],
}


def target() -> ImportTarget:
    store = MemoryStore(Gauge())
    broker = Broker(store, Gauge(), headers_of, EDITOR)
    users = Users(lambda size: b"s" * size)
    users.add("guest", "guest", tags=("administrator",), vhosts=("/",))
    return ImportTarget(broker, users, store.definitions)


def changed(section: str, index: int, **news: Any) -> dict[str, Any]:
    found = copy.deepcopy(RABBIT)
    found[section][index].update(news)
    return found


def test_definitions_of_rabbitmq_are_taken_as_they_are_meant() -> None:
    there = target()
    taken = import_definitions(there, RABBIT).counts
    assert (taken["users"], taken["queues"], taken["bindings"]) == (2, 3, 3)
    ann, bob = there.users.get("ann"), there.users.get("bob")
    assert ann is not None
    assert bob is not None
    assert there.users.authenticate("ann", "secret", "192.0.2.1") is ann
    assert there.users.authenticate("bob", "", "") is None
    assert (ann.tags, bob.tags) == (("monitoring",), ("a", "b"))
    assert (ann.max_connections, ann.max_channels) == (7, -1)
    assert ann.permissions["v"].allow("write", "w")
    assert not ann.permissions["v"].allow("write", "x")
    assert not ann.topic_permissions["v"]["amq.topic"].allow("write", "b")
    v = there.broker.vhosts["v"]
    assert (v.metadata.description, v.metadata.tags) == ("d", ("a", "b"))
    assert v.default_queue_type == "quorum"
    assert v.limits == {"max-queues": 5}
    assert v.policies.effective(v.queues["q"]) == {"max-length": 3}
    assert v.queues["qq"].arguments["x-queue-type"] == "quorum"
    assert set(v.queues) == {"q", "qq", "amq.gen-abc"}
    assert v.exchanges["x"].alternate == "ae"
    assert v.parameters.values["shovel", "s"] == {"src-uri": "amqp://"}
    assert there.broker.global_parameters.values == {"g": [["a", 1]]}
    assert [each.routing_key for each in v.bindings()] == ["k", "a.#"]


def test_many_policies_are_applied_to_what_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    there = target()
    vhost = there.broker.vhosts.get("/") or there.broker.add_vhost("/")
    names = [f"x{number}" for number in range(20)]
    told: list[str] = []
    for name in names:
        vhost.declare_exchange(name, "fanout")
    apply = Policies.apply_to_exchange
    monkeypatch.setattr(
        Policies,
        "apply_to_exchange",
        lambda policies, exchange: told.append(exchange.name) or apply(policies, exchange),
    )
    rows = [
        {
            "vhost": "/",
            "name": name,
            "pattern": f"^{name}$",
            "apply-to": "exchanges",
            "definition": {"alternate-exchange": f"for-{name}"},
        }
        for name in names
    ]
    # The same entries are tried on a copy, too, which has a vhost of its own.
    import_definitions(there, {"policies": rows})
    assert [vhost.exchanges[name].alternate for name in names] == [f"for-{n}" for n in names]
    assert max(Counter(told)[name] for name in names) <= 4
    with pytest.raises(DefinitionsError):
        import_definitions(there, {"policies": [rows[0], {**rows[1], "pattern": "("}]})
    vhost.policies.delete("x0")
    assert vhost.exchanges["x0"].alternate is None


def test_taking_the_same_in_twice_changes_nothing() -> None:
    there = target()
    import_definitions(there, RABBIT)
    once = document(there)
    queue = there.broker.vhosts["v"].queues["q"]
    import_definitions(there, RABBIT)
    assert document(there) == once
    assert there.broker.vhosts["v"].queues["q"] is queue


def test_imported_definitions_are_there_after_a_restart() -> None:
    there = target()
    import_definitions(there, RABBIT)
    again = Broker(there.broker.store, Gauge(), headers_of, EDITOR)
    again.restore()
    users = Users(bytes)
    load_users(users, there.rows)
    guest = there.users.get("guest")
    assert guest is not None
    users.put(guest)
    assert document(ImportTarget(again, users, there.rows)) == document(there)


def test_a_user_who_is_there_keeps_what_is_not_in_the_definitions() -> None:
    there = target()
    guest = there.users.get("guest")
    assert guest is not None
    import_definitions(there, {"users": [{"name": "guest", "password": "new", "tags": ["x"]}]})
    assert there.users.get("guest") is guest
    assert there.users.authenticate("guest", "new", "") is guest
    assert guest.tags == ("x",)
    assert set(guest.permissions) == {"/"}


@pytest.mark.parametrize(
    ("entry", "password"),
    [
        ({"password_hash": hashed("a", b"salt", MD5), "hashing_algorithm": MD5}, "a"),
        ({"password_hash": hashed("a", b"salt", SHA512), "hashing_algorithm": SHA512}, "a"),
        ({"password_hash": hashed("a", b"salt")}, "a"),
        ({"password": "clear"}, "clear"),
    ],
)
def test_passwords_hashed_in_any_of_rabbitmqs_ways_let_their_users_in(
    entry: dict[str, Any], password: str
) -> None:
    there = target()
    import_definitions(there, {"users": [{"name": "u", **entry}]})
    assert there.users.authenticate("u", password, "192.0.2.1") is not None
    assert there.users.authenticate("u", password + "x", "192.0.2.1") is None


def test_hashes_of_the_oldest_versions_are_md5() -> None:
    there = target()
    users = [{"name": "u", "password_hash": hashed("a", b"salt", MD5)}]
    import_definitions(there, {"rabbit_version": "3.5.7", "users": users})
    assert there.users.authenticate("u", "a", "") is not None


def test_guest_from_definitions_comes_from_this_machine_only() -> None:
    there = target()
    there.users.remove("guest")
    import_definitions(there, {"users": [{"name": "guest", "password": "guest"}]})
    assert there.users.authenticate("guest", "guest", "127.0.0.1") is not None
    assert there.users.authenticate("guest", "guest", "192.0.2.1") is None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (changed("users", 0, name=5), "users[0] name '5': Expected `str`, got `int` - at `$.name`"),
        (changed("users", 0, name=""), "users: name '': the name of a user must not be empty"),
        (
            changed("users", 0, hashing_algorithm="rot13"),
            "users: name 'ann': the hashing algorithm 'rot13' is unknown",
        ),
        (changed("users", 0, password_hash="?"), "name 'ann': the password hash is not base64"),
        (changed("users", 0, password_hash="QUJD"), "the password hash has 3 bytes"),
        (changed("vhosts", 1, metadata={"tags": 5}), "vhosts: name 'v'"),
        (
            changed("vhosts", 1, default_queue_type="quantum"),
            "vhosts: name 'v': the default queue type 'quantum' is unknown",
        ),
        (changed("vhosts", 1, limits={"max-queues": "x"}), "vhosts: name 'v': max-queues is 'x'"),
        (
            changed("vhosts", 1, limits={"max-queues": 2}),
            'Adding 3 queue(s) to virtual host "v" would exceed the limit of 2 queue(s).',
        ),
        (
            changed("permissions", 0, user="eve"),
            "permissions: user 'eve' in vhost 'v': there is no user 'eve'",
        ),
        (changed("permissions", 0, vhost="w"), "there is no vhost 'w'"),
        (changed("permissions", 0, write="("), "user 'ann' in vhost 'v': the write pattern '('"),
        (changed("topic_permissions", 0, read="["), "topic_permissions: user 'ann' exchange"),
        (
            changed("policies", 0, definition={"max-length": "x"}),
            "policies: name 'p' in vhost 'v':",
        ),
        (changed("policies", 0, definition=[1]), "policies: name 'p' in vhost 'v': [1] is no obj"),
        (changed("parameters", 0, value={"pattern": "a"}), "parameters: component 'operator_poli"),
        (changed("parameters", 1, value=2**70), "parameters: component 'shovel' name 's'"),
        (
            changed("queues", 0, arguments={"x-max-length": "a"}),
            "queues: name 'q' in vhost 'v': invalid arg 'x-max-length'",
        ),
        (changed("queues", 0, name="amq.q"), "queue name 'amq.q' contains reserved prefix"),
        (changed("queues", 0, type="qorum"), "queues: name 'q' in vhost 'v':"),
        (changed("queues", 0, vhost="w"), "queues: name 'q' in vhost 'w': there is no vhost 'w'"),
        (
            changed("exchanges", 0, type="x-none"),
            "exchanges: name 'x' in vhost 'v': unknown exchange type 'x-none'",
        ),
        (changed("bindings", 0, destination_type="topic"), "the destination type 'topic' is unk"),
        ({**RABBIT, "queues": {}}, "queues is no list"),
        ({**RABBIT, "queues": [7]}, "queues[0] 7: Expected `object`, got `int`"),
        ({**RABBIT, "bindings": [{}]}, "bindings[0]: Object missing required field"),
        (
            changed("bindings", 0, arguments={"x-filter-jms-selector": "n ="}),
            "the selector is wrong at character 4",
        ),
    ],
)
def test_one_wrong_entry_is_named_and_nothing_is_taken(
    given: dict[str, Any], sentence: str
) -> None:
    there = target()
    before = document(there)
    with pytest.raises(DefinitionsError) as caught:
        import_definitions(there, given)
    assert sentence in str(caught.value)
    assert document(there) == before
    assert there.broker.vhosts["/"].recorder.ticket == 0


@pytest.mark.parametrize(
    ("news", "missing"),
    [({"source": "y"}, "exchange 'y'"), ({"destination": "r"}, "queue 'r'")],
)
def test_a_binding_that_has_lost_an_end_is_left_out_and_named(
    news: dict[str, str], missing: str
) -> None:
    there = target()
    taken = import_definitions(there, changed("bindings", 0, **news))
    assert [each.routing_key for each in there.broker.vhosts["v"].bindings()] == ["k"]
    (sentence,) = taken.left_out
    assert sentence.endswith(f"routing_key 'a.#' in vhost 'v': there is no {missing}")
    assert taken.counts["bindings"] == 2


def test_the_selector_of_a_binding_is_taken_and_written() -> None:
    there = target()
    selector = {"x-filter-jms-selector": "n = 1"}
    import_definitions(there, changed("bindings", 0, arguments=selector))
    vhost = there.broker.vhosts["v"]
    assert vhost.exchanges["x"].gates == 1
    rows = [row for row in document(there)["bindings"] if row["routing_key"] == "a.#"]
    assert [row["arguments"] for row in rows] == [selector]


def test_a_queue_without_a_type_follows_the_default_and_one_with_a_type_does_not() -> None:
    there = target()
    named = [
        {"name": "none", "vhost": "/"},
        {"name": "classic", "vhost": "/", "type": "classic"},
        {"name": "stream", "vhost": "/", "type": "rabbit_stream_queue"},
        {"name": "amq.gen-x", "vhost": "/"},
    ]
    import_definitions(
        there, {"vhosts": [{"name": "/", "default_queue_type": "quorum"}], "queues": named}
    )
    kinds = {name: each.kind for name, each in there.broker.vhosts["/"].queues.items()}
    assert kinds == {
        "none": "quorum",
        "classic": "classic",
        "stream": "stream",
        "amq.gen-x": "classic",
    }


def test_arguments_that_only_the_default_queue_type_refuses_are_refused_before_the_import() -> None:
    store = MemoryStore(Gauge())
    broker = Broker(store, Gauge(), headers_of, EDITOR, default_queue_type="quorum")
    there = ImportTarget(broker, Users(bytes), store.definitions)
    queues = [
        {"name": "a", "vhost": "/"},
        {"name": "b", "vhost": "/", "arguments": {"x-max-priority": 5}},
    ]
    with pytest.raises(DefinitionsError, match="queues: name 'b' in vhost '/'"):
        import_definitions(there, {"queues": queues})
    assert broker.vhosts["/"].queues == {}


def test_queues_that_are_there_count_against_the_limit_of_the_vhost() -> None:
    there = target()
    import_definitions(there, RABBIT)
    more = [{"name": f"n{number}", "vhost": "v"} for number in range(3)]
    known = {"name": "q", "vhost": "v"}
    with pytest.raises(DefinitionsError, match=r"currently has 3 queue\(s\) defined"):
        import_definitions(there, {"queues": [*more, known]})
    import_definitions(there, {"queues": [*more[:2], known]})


def test_nothing_is_taken_where_the_broker_has_not_room_for_all_of_it() -> None:
    there = target()
    vhost = there.broker.vhosts["/"]
    vhost.declare_queue("a", durable=True)
    there.broker.limit(Ceilings(queues=3))
    named = [{"name": name, "vhost": "/"} for name in "abc"]
    import_definitions(there, {"queues": named})
    with pytest.raises(DefinitionsError, match=r"queues: name 'd' in vhost '/': .* queue limit"):
        import_definitions(there, {"policies": [], "queues": [*named, {"name": "d", "vhost": "/"}]})
    assert sorted(vhost.queues) == ["a", "b", "c"]


def test_definitions_of_one_vhost_go_to_another() -> None:
    there = target()
    import_definitions(there, RABBIT)
    carried = document(there, there.broker.vhosts["v"])
    assert "users" not in carried
    assert all("vhost" not in entry for entry in carried["queues"])
    there.broker.add_vhost("w")
    import_definitions(there, carried, "w")
    assert document(there, there.broker.vhosts["w"]) == carried
    assert there.broker.vhosts["/"].queues == {}


def test_a_document_for_everything_can_be_brought_to_one_vhost() -> None:
    there = target()
    import_definitions(there, {**RABBIT, "users": [{"name": 5}]}, "/")
    assert set(there.broker.vhosts["/"].queues) == {"q", "qq", "amq.gen-abc"}
    assert there.users.get("ann") is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "no JSON object"),
        (b"[]", "no JSON object: Expected `object`, got `array`"),
        (b"{}", "have none of the sections users, vhosts"),
        (b'{"a": "\xff"}', "no JSON object"),
        (b"[" * 100_000, "no JSON object"),
    ],
)
def test_a_text_that_is_no_document_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(DefinitionsError) as caught:
        parse(text)
    assert sentence in str(caught.value)


def test_a_document_is_read_from_its_text() -> None:
    assert parse(json.dumps(RABBIT).encode()) == RABBIT


FEDERATED = {
    "policies": [
        {
            "vhost": "/",
            "name": "federate",
            "pattern": "^q",
            "definition": {"federation-upstream-set": "all", "max-length": 2},
        }
    ],
    "parameters": [
        {
            "vhost": "/",
            "component": "federation-upstream",
            "name": "origin",
            "value": {"uri": "amqp://localhost"},
        },
        {
            "vhost": "/",
            "component": "operator_policy",
            "name": "limits",
            "value": {
                "pattern": "",
                "apply-to": "queues",
                "priority": 0,
                "definition": {"max-length": 5, "new-limit": 1},
            },
        },
        {
            "vhost": "/",
            "component": "vhost-limits",
            "name": "limits",
            "value": {"max-queues": 9, "max-moons": 1},
        },
    ],
    "users": [{"name": "u", "password_hash": "", "limits": {"max-channels": 3, "max-suns": 1}}],
    "queues": [{"vhost": "/", "name": "q"}],
}


def test_an_unknown_entry_is_kept_without_effect_and_named() -> None:
    there, other = target(), target()
    taken = import_definitions(there, FEDERATED)
    assert [sentence.partition(": the ")[2] for sentence in taken.ignored] == [
        "limit 'max-suns' has no effect",
        "component 'federation-upstream' has no effect",
        "setting 'new-limit' has no effect",
        "limit 'max-moons' has no effect",
        "setting 'federation-upstream-set' has no effect",
    ]
    vhost = there.broker.vhosts["/"]
    assert vhost.policies.effective(vhost.queues["q"]) == {"max-length": 2}
    assert vhost.limits["max-queues"] == 9
    found = document(there)
    assert found["policies"][0]["definition"] == FEDERATED["policies"][0]["definition"]  # type: ignore[index]
    assert {each["name"]: each["value"] for each in found["parameters"]} == {
        each["name"]: each["value"]
        for each in FEDERATED["parameters"]  # type: ignore[index,attr-defined]
        if each["component"] != "vhost-limits"
    } | {"limits": found["parameters"][-1]["value"]}
    import_definitions(other, found)
    assert document(other)["policies"] == found["policies"]
    assert document(other)["parameters"] == found["parameters"]


def test_properties_that_an_entry_does_not_name_stay() -> None:
    there = target()
    import_definitions(there, RABBIT)
    vhost = there.broker.vhosts["v"]
    vhost.set_metadata(replace(vhost.metadata, tracing=True, durability="os"))
    before = document(there)
    names = {section: [{"name": each["name"]} for each in RABBIT[section]] for section in OWN}
    import_definitions(there, names)
    assert document(there) == before
    assert vhost.metadata.tracing
    assert vhost.metadata.durability == "os"


@pytest.mark.parametrize(
    ("entry", "changes"),
    [
        ({"tags": "administrator"}, {"tags": ["administrator"]}),
        ({"limits": {}}, {"limits": {}}),
        ({"limits": {"max-channels": 3}}, {"limits": {"max-channels": 3}}),
        ({"password_hash": ""}, {"password_hash": ""}),
    ],
    ids=str,
)
def test_of_a_user_only_what_is_named_is_replaced(
    entry: dict[str, Any], changes: dict[str, Any]
) -> None:
    there = target()
    import_definitions(there, RABBIT)
    before = next(user for user in document(there)["users"] if user["name"] == "ann")
    import_definitions(there, {"users": [{"name": "ann", **entry}]})
    after = next(user for user in document(there)["users"] if user["name"] == "ann")
    assert after == {**before, **changes}


@pytest.mark.parametrize(
    "entry",
    [
        {"description": "other"},
        {"tags": ["c"]},
        {"default_queue_type": "stream"},
        {"tracing": True},
        {"durability": "os"},
    ],
    ids=str,
)
def test_of_a_vhost_only_what_is_named_is_replaced(entry: dict[str, Any]) -> None:
    there = target()
    import_definitions(there, RABBIT)
    vhost = there.broker.vhosts["v"]
    before = vhost.metadata
    import_definitions(there, {"vhosts": [{"name": "v", **entry}]})
    named = {key: tuple(value) if key == "tags" else value for key, value in entry.items()}
    assert vhost.metadata == replace(before, **named)
