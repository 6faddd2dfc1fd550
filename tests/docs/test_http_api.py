"""The page of the HTTP API lists every route with the tag that it needs, and no other."""

from __future__ import annotations

from harebell.admin.catalog import commands
from harebell.server.http.openapi import first_sentence
from harebell.server.http.routes import Route, routes_of
from tests.docs.markdown import ROOT, read, rows


def line(route: Route) -> list[str]:
    """The row of a route in the page's table."""
    return [
        f"`{route.method}`",
        f"`{route.path}`",
        route.command.tag or "management",
        first_sentence(route.command.summary),
    ]


def test_every_route_has_its_row_in_alphabetical_order() -> None:
    table = rows(read(ROOT / "docs/reference/http-api.md").section("Routes"))
    routes = sorted(routes_of(commands()), key=lambda route: (route.path, route.method))
    assert table == [line(route) for route in routes]
