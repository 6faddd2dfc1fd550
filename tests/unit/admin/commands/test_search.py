"""A search finds by a part of the name what its user may see elsewhere, and nothing else."""

from __future__ import annotations

import pytest

from harebell.admin.context import CommandRefused
from harebell.admin.limits import SEARCH_ROWS, SEARCH_TEXT_BYTES
from tests.unit.admin.commands.site import Site


def _shop() -> Site:
    site = Site()
    for name in ("orders", "all orders", "orders.eu", "bills"):
        site.run("queues.declare", name=name)
    site.run("exchanges.declare", name="Orders", type="topic")
    site.run("bindings.add", source="Orders", destination="bills", routing_key="orders.late")
    site.run("policies.set", name="orders", pattern=".*", definition={"max-length": 1})
    site.run("users.add", name="orderly", password="p")
    return site


def test_the_whole_name_comes_before_its_start_and_its_start_before_a_part() -> None:
    rows = _shop().run("overview.search", text="ORDERS")
    assert [row["name"] for row in rows if row["kind"] == "queue"] == [
        "orders",
        "orders.eu",
        "all orders",
    ]


def test_all_kinds_are_found() -> None:
    rows = _shop().run("overview.search", text="order")
    assert {row["kind"] for row in rows} == {"queue", "exchange", "policy", "user", "routing key"}
    (key,) = (row for row in rows if row["kind"] == "routing key")
    assert (key["vhost"], key["name"], key["detail"]) == ("/", "Orders", "orders.late, to bills")


def test_a_connection_is_found_by_the_name_that_its_client_gave() -> None:
    site = Site()
    peer = site.world.connect("127.0.0.1")
    peer.log_in({})
    peer.connection.client_properties = {"connection_name": "payments"}
    (row,) = site.run("overview.search", text="paym")
    name = peer.connection.peer.connection_name
    assert (row["kind"], row["name"], row["detail"]) == ("connection", name, "payments")


def test_each_kind_has_its_best_matches_alone() -> None:
    site = Site()
    for number in range(3 * SEARCH_ROWS):
        site.run("queues.declare", name=f"x{number:02}")
    rows = site.run("overview.search", text="x")
    assert [row["name"] for row in rows] == [f"x{number:02}" for number in range(SEARCH_ROWS)]


def test_a_long_text_is_refused() -> None:
    with pytest.raises(CommandRefused, match="text has more than 255 bytes"):
        Site().run("overview.search", text="x" * (SEARCH_TEXT_BYTES + 1))
