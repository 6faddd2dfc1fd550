"""The OpenAPI document describes every route, and schemathesis finds no contradiction to it."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from harebell.admin.catalog import commands
from harebell.server.http.openapi import document
from harebell.server.http.routes import routes_of
from tests.unit.server.http.asking import Api, running_api

ROUTES = routes_of(commands())
SCHEMA = schemathesis.openapi.from_dict(document(ROUTES, ""))
EXAMPLES = 2


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with running_api() as found:
        yield found


def test_the_document_is_served_without_a_login_and_has_every_route(api: Api) -> None:
    found = api.get("/api/openapi.json", user=None)
    assert found["openapi"] == "3.1.0"
    described = {(method.upper(), path) for path, each in found["paths"].items() for method in each}
    assert described == {(route.method, route.path) for route in ROUTES}
    ids = [each["operationId"] for path in found["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids))


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
