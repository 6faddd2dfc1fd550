"""The OpenAPI document describes every route, and schemathesis finds no contradiction to it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from harebell.admin.catalog import commands
from harebell.config import Config
from harebell.management.http import openapi
from harebell.management.http.application import ManagementApp
from harebell.management.http.asgi import ClientDisconnect
from harebell.management.http.connections import Turns
from harebell.management.http.open_paths import OPENAPI, OpenPaths
from harebell.management.http.openapi import document
from harebell.management.http.routes import routes_of
from harebell.management.http.sign_in import SignIn
from tests.unit.management.http.asking import Api

ROUTES = routes_of(commands())
SCHEMA = schemathesis.openapi.from_dict(document(ROUTES, ""))
EXAMPLES = 2


def test_the_document_is_served_without_a_login_and_has_every_route(api: Api) -> None:
    found = api.get("/api/openapi.json", user=None)
    assert found["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, each in found["paths"].items() for method in each}
    assert described == {(route.method, route.path) for route in ROUTES}
    ids = [each["operationId"] for path in found["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids))


def test_the_document_is_made_once_and_sent_again_only_if_it_has_changed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = api.ask("GET", "/api/openapi.json", user=None)
    tag = first.headers["etag"]
    known = api.ask("GET", "/api/openapi.json", user=None, headers={"if-none-match": tag})
    assert (known.status, known.body) == (304, b"")
    made: list[object] = []
    monkeypatch.setattr(openapi, "_operation", lambda route: made.append(route) or {})

    async def ask() -> list[bytes]:
        routes: Any = SimpleNamespace(all=ROUTES)
        logins: Any = None
        paths = OpenPaths(Config(), logins, SignIn(Config()), lambda: routes)
        request: Any = SimpleNamespace(reads=True, turn=Turns().turn, headers={})
        answers = [paths.answer(request, OPENAPI) for _ in range(50)]
        found = [each for each in await asyncio.gather(*answers) if each is not None]
        return [each.pieces[0] for each in found]

    found = asyncio.run(ask())
    assert len(made) == len(ROUTES)
    assert all(each is found[0] for each in found)


def test_first_requests_wait_while_one_file_of_commands_after_the_other_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: dict[object, int] = {}
    turn = 0

    class Noun:
        """A noun that notes in which turn its file is imported."""

        @property
        def commands(self) -> dict[str, Any]:
            """Import the file."""
            imported.setdefault(self, turn)
            return {}

    async def ask() -> None:
        nonlocal turn
        app: Any = ManagementApp.__new__(ManagementApp)
        app._imports = None
        app._answer = app_answer
        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        asking = [asyncio.ensure_future(app(scope, None, None)) for _ in range(3)]
        while not all(each.done() for each in asking):
            turn += 1
            await asyncio.sleep(0)

    async def app_answer(_request: Any) -> Any:
        assert len(imported) == len(nouns)
        raise ClientDisconnect

    nouns = {str(each): Noun() for each in range(9)}
    monkeypatch.setattr("harebell.admin.catalog.NOUNS", nouns)
    monkeypatch.setattr(ManagementApp, "_context", SimpleNamespace(log=print), raising=False)
    asyncio.run(ask())
    assert len(set(imported.values())) == len(nouns)


@SCHEMA.parametrize()
@hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)
def test_answers_are_those_that_the_document_has(case: schemathesis.Case, api: Api) -> None:
    response = case.call(base_url=f"http://127.0.0.1:{api.port}", auth=("guest", "guest"))
    if response.status_code == 503:
        assert case.path.startswith("/api/health/"), response.text
        return
    checks = [not_a_server_error, status_code_conformance]
    case.validate_response(response, checks=checks)
