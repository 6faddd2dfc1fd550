"""A page of a long list makes the rows that it has, and no others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harebell.admin.catalog import find
from harebell.admin.rows import exchanges, queues
from harebell.admin.rows.lazy import LazyRow
from harebell.base.slices import at_once
from harebell.management.http.rows import chosen, encoded, query_of_rows
from tests.unit.admin.commands.site import Site

ROWS = 5_000
QUICK = {"name": lambda number: f"q{number:05}", "stats": lambda number: {"rate": -number}}


def page_of(query: dict[str, str]) -> tuple[Any, list[int]]:
    """The answer to a query, and the numbers of the rows that were made for it."""
    made: list[int] = []

    def make(number: int) -> dict[str, Any]:
        made.append(number)
        return {"name": f"q{number:05}", "stats": {"rate": -number}, "size": number}

    rows = [LazyRow(QUICK, make, number) for number in range(ROWS)]
    pieces = at_once(encoded(iter(rows), query_of_rows(query)))
    return msgspec.json.decode(b"".join(pieces)), made


@pytest.mark.parametrize("sort", ["name", "stats.rate"])
@pytest.mark.parametrize("columns", ["", "name,size"])
def test_a_sorted_page_makes_its_own_rows_alone(sort: str, columns: str) -> None:
    query = {"page": "2", "page_size": "10", "sort": sort, "columns": columns}
    found, made = page_of(query)
    first = 10 if sort == "name" else ROWS - 20
    wanted = range(first, first + 10)
    assert sorted(made) == list(wanted)
    assert sorted(row["size"] for row in found["items"]) == list(wanted)
    assert found["total_count"] == ROWS


def test_a_filtered_page_makes_its_own_rows_alone() -> None:
    found, made = page_of({"page": "1", "page_size": "10", "name": "q0001"})
    assert [row["name"] for row in found["items"]] == [f"q0001{number}" for number in range(10)]
    assert len(made) == 10


def test_a_column_that_is_not_quick_is_sorted_by_too() -> None:
    query = {"page": "1", "page_size": "2", "sort": "size", "sort_reverse": "true"}
    found, _ = page_of(query)
    assert [row["size"] for row in found["items"]] == [ROWS - 1, ROWS - 2]


def test_the_quick_columns_of_queues_and_exchanges_are_those_of_their_rows() -> None:
    site = Site()
    context = site.context
    vhost = context.broker.vhosts["/"]
    site.run("queues.declare", name="a")
    for module, thing in ((queues, vhost.queues["a"]), (exchanges, vhost.exchanges["amq.topic"])):
        row = module.listed_row(context, vhost, thing)
        whole = row.whole()
        for name in module._QUICK:
            assert row[name] == whole[name]
        assert row.some([("name",), ("type",)]) == {name: whole[name] for name in ("name", "type")}
        assert row.some([("name",), ("arguments",)]) == whole
        assert (dict(row), len(row)) == (whole, len(whole))
        for name in set(module._LISTED) - set(module._QUICK):
            value = whole
            for part in name.split("."):
                value = value[part]
            assert row.at(name) == value
            path = tuple(name.split("."))
            assert chosen(row.some([path]), [path]) == chosen(whole, [path])
    listed = queues.listed_row(context, vhost, vhost.queues["a"])
    assert listed.at("messages_details.rate") == 0.0
    assert listed.at("messages_details.no.such") is None


def test_queues_in_a_list_have_samples() -> None:
    site = Site()
    site.run("queues.declare", name="a")
    (row,) = site.run("queues.list", lengths_age=60, lengths_incr=5)
    assert (row["messages_trend"], row["oldest_seconds"]) == (0.0, None)
    assert "samples" in row["messages_details"]


_COLUMNS = (
    *("name", "vhost", "type", "durable", "auto_delete", "exclusive", "policy", "messages_ready"),
    *("messages_unacknowledged", "messages", "consumers", "state", "consumer_utilisation"),
    *("message_stats.publish_details.rate", "message_stats.deliver_get_details.rate"),
    *("oldest_seconds", "message_bytes", "messages_trend", "messages_details.samples"),
)
"""What the page of queues asks for."""


@pytest.mark.parametrize("sort", [each for each in _COLUMNS if each != "messages_details.samples"])
def test_the_page_of_queues_makes_no_whole_row_in_any_order(
    monkeypatch: pytest.MonkeyPatch, sort: str
) -> None:
    site = Site()
    for name in ("a", "b", "c"):
        site.run("queues.declare", name=name)
    command = find("queues.list")
    assert command is not None
    query = {"page": "1", "page_size": "2", "sort": sort, "columns": ",".join(_COLUMNS)}
    asked = query_of_rows({**query, "sort_reverse": "true"})
    wanted = at_once(encoded(command.run(site.context).items, asked))

    def whole(*_: object) -> None:
        raise AssertionError("a whole row is made")

    monkeypatch.setattr(queues, "queue_row", whole)
    found = at_once(encoded(command.run(site.context).items, asked))
    assert found == wanted
    page = msgspec.json.decode(b"".join(found))
    assert [row["name"] for row in page["items"]] == ["c", "b"]
    assert page["filtered_count"] == 3
