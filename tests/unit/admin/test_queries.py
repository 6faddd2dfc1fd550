"""Queries that report are listed and deleted by those who may."""

from __future__ import annotations

import pytest

from tests.unit.admin.test_jobs import act
from tests.unit.management.control.test_dispatcher import World


@pytest.mark.asyncio
async def test_queries_are_listed_by_vhost_and_name_with_what_they_have_reported() -> None:
    world = World()
    other = world.broker.add_vhost("other")
    other.query_reports.add("ann", "b", {})
    world.vhost.query_reports.add("ann", "z", {"batch": 4, "error": "no disk"})
    world.vhost.query_reports.add("bob", "a", {"state": "failed", "sources": ["orders"]})
    rows = (await act(world, "queries.list"))["answer"]
    assert [(row["vhost"], row["name"], row["state"]) for row in rows] == [
        ("/", "a", "failed"),
        ("/", "z", "running"),
        ("other", "b", "running"),
    ]
    assert (rows[0]["sources"], rows[0]["batch"]) == (["orders"], None)
    assert (rows[1]["batch"], rows[1]["error"], rows[1]["stale"]) == (4, "no disk", False)
    rows = (await act(world, "queries.list", vhost="other"))["answer"]
    assert [row["name"] for row in rows] == ["b"]


@pytest.mark.asyncio
async def test_the_report_of_a_query_is_deleted() -> None:
    world = World()
    world.vhost.query_reports.add("ann", "a", {})
    deleted = await act(world, "queries.delete", name="a", user="ann")
    assert deleted["answer"] == {"vhost": "/", "user": "ann", "name": "a"}
    again = await act(world, "queries.delete", name="a", user="ann")
    assert "user 'ann' has no report of a query 'a' in vhost '/'" in str(again)
    assert (await act(world, "queries.list"))["answer"] == []
