"""Schemas of a registry: a user names the id alone, and a registry that lies is said to."""

from __future__ import annotations

import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harebell.admin.limits import (
    SCHEMA_BYTES,
    SCHEMA_REFERENCE_DEPTH,
    SCHEMA_REFERENCES,
    SCHEMA_USER_REQUESTS,
)
from tests.patience import eventually
from tests.ports import free_port
from tests.running import asked, running_broker
from tests.unit.management.http.asking import Api
from tests.unit.management.http.lying_registry import (
    AVRO,
    LIES,
    REGISTRY,
    SILENT,
    SLOW,
    Registry,
    registry,
)


class Site(NamedTuple):
    """A broker with a registry."""

    api: Api
    registry: Registry


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A broker that the tests of this file share."""
    port = free_port()
    with (
        registry() as server,
        running_broker("--management-port", str(port), env={REGISTRY: server.url}),
    ):
        yield Site(Api(port), server)


def test_a_schema_is_read_once_and_has_its_type(site: Site) -> None:
    site.registry.asked.clear()
    for _ in range(2):
        assert site.api.get("/api/schemas/1") == {
            "id": 1,
            "type": "AVRO",
            "schema": AVRO,
            "references": [],
            "problem": None,
        }
    assert site.api.get("/api/schemas/2")["type"] == "PROTOBUF"
    assert site.registry.asked == ["/api/schemas/ids/1", "/api/schemas/ids/2"]


def test_schemas_that_a_schema_refers_to_are_read_once_each(site: Site) -> None:
    site.registry.asked.clear()
    for _ in range(2):
        found = site.api.get("/api/schemas/3")
        assert found["problem"] is None
        assert [each["name"] for each in found["references"]] == ["shop.Person", "shop.City"]
        assert json.loads(found["references"][1]["schema"])["name"] == "shop.City"
    assert len(site.registry.asked) == 3


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (
            7,
            "it answered 404 for 'shop.Missing' (version 2 of subject 'a shop.Missing/é'), which "
            "schema 7 refers to",
        ),
        (8, f"'deep-{SCHEMA_REFERENCE_DEPTH}' (version 2 of subject 'a deep-8/é'), which 'deep-7'"),
        (8, f"is behind {SCHEMA_REFERENCE_DEPTH} other references"),
        (9, f"'wide-{SCHEMA_REFERENCES}'"),
        (9, f"is beyond {SCHEMA_REFERENCES} references"),
        (22, f"with those before it, has more than {SCHEMA_BYTES} bytes"),
        (23, "none of a schema registry"),
        (24, "none of a schema registry"),
    ],
)
def test_a_reference_that_cannot_be_had_is_named(site: Site, number: int, sentence: str) -> None:
    site.registry.asked.clear()
    found = site.api.get(f"/api/schemas/{number}")
    assert (found["type"], found["schema"], found["references"]) == (None, None, [])
    assert sentence in found["problem"]
    assert len(site.registry.asked) <= 1 + SCHEMA_REFERENCES


@pytest.mark.parametrize("number", LIES)
def test_what_a_registry_answers_that_is_no_schema_is_said(site: Site, number: int) -> None:
    found = site.api.get(f"/api/schemas/{number}")
    assert (found["type"], found["schema"]) == (None, None)
    assert LIES[number][2] in found["problem"]
    assert "<" not in found["problem"]


@pytest.mark.parametrize("number", ["x", "-1", "4294967296", "1.5", "..%2Fa", "1%3Fa=b"])
def test_a_user_chooses_a_number_and_nothing_else_of_the_request(site: Site, number: str) -> None:
    site.registry.asked.clear()
    assert site.api.ask("GET", f"/api/schemas/{number}").status == 400
    assert site.registry.asked == []


def test_a_registry_that_is_slow_holds_up_nothing_else_and_is_left(site: Site) -> None:
    api, found = site.api, []

    def ask(number: int) -> None:
        found.append(api.get(f"/api/schemas/{number}"))

    threads = [
        threading.Thread(target=ask, args=(number,), daemon=True) for number in (SLOW, SILENT)
    ]
    for each in threads:
        each.start()
    assert eventually(lambda: len([p for p in site.registry.asked if p[-2:] in ("30", "31")]) >= 2)
    assert api.get("/api/vhosts")
    assert found == []
    for each in threads:
        each.join()
    assert sorted(each["id"] for each in found) == [SLOW, SILENT]
    assert all("timeout" in each["problem"] for each in found)


def test_a_user_has_few_schemas_read_at_a_time_and_others_are_answered(site: Site) -> None:
    api = site.api
    other = api.user("other", "management", vhost="/")
    before = len(site.registry.asked)
    threads = [
        threading.Thread(target=api.get, args=(f"/api/schemas/{SILENT}",), daemon=True)
        for _ in range(SCHEMA_USER_REQUESTS)
    ]
    for each in threads:
        each.start()
    assert eventually(lambda: len(site.registry.asked) == before + SCHEMA_USER_REQUESTS)
    refused = api.ask("GET", "/api/schemas/98")
    assert (refused.status, "as one user may have" in refused.json["reason"]) == (400, True)
    assert json.loads(api.ask("GET", "/api/schemas/99", user=other).body)["schema"] == AVRO
    site.registry.go.set()
    for each in threads:
        each.join()
    site.registry.go.clear()


def test_without_a_registry_there_is_no_schema_and_a_reload_brings_one(tmp_path: Path) -> None:
    port, file = free_port(), tmp_path / "harebell.toml"
    file.touch()
    flags = ("--config", str(file), "--management-port", str(port))
    with registry() as server, running_broker(*flags) as broker:
        api = Api(port)
        nothing = {"id": 1, "type": None, "schema": None, "references": [], "problem": None}
        assert api.get("/api/schemas/1") == nothing
        assert server.asked == []
        file.write_text(f'management_schema_registry = "{server.url}"\n')
        done = asked(broker, "config", "reload")
        assert done.returncode == 0, done.stderr
        assert api.get("/api/schemas/1")["schema"] == AVRO


def test_a_registry_that_is_away_is_said() -> None:
    port = free_port()
    url = f"http://127.0.0.1:{free_port()}"
    with running_broker("--management-port", str(port), env={REGISTRY: url}):
        problem = Api(port).get("/api/schemas/1")["problem"]
    assert problem == "the schema registry: Connection refused"


def test_a_registry_with_a_password_is_logged_in_to_and_the_password_is_shown_to_nobody() -> None:
    port = free_port()
    with registry() as server:
        url = server.url.replace("//", "//reader:p%40ss@")
        with running_broker("--management-port", str(port), env={REGISTRY: url}) as broker:
            api = Api(port)
            assert api.get("/api/schemas/1")["schema"] == AVRO
            assert "404" in api.get("/api/schemas/10")["problem"]
            assert server.logins[0] == "Basic " + b64encode(b"reader:p@ss").decode()
            shown = api.get("/api/config/effective")["management_schema_registry"]
            assert shown == "********"
            set_again = asked(broker, "config", "set", "management_schema_registry", url)
            assert "is a secret" in set_again.stderr
            assert "p%40ss" not in set_again.stderr
            assert "p%40ss" not in api.ask("GET", "/api/audit").body.decode()
