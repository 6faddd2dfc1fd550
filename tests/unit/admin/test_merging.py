"""The answers of several owners become one."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.admin.catalog import commands, find
from harebell.admin.command import Command
from harebell.admin.context import CheckFailed
from harebell.admin.merging import added, merged, merged_failure
from harebell.admin.place import EVERYWHERE


def named(name: str) -> Command:
    found = find(name)
    assert found is not None
    return found


def rows(command: str, *answers: Any) -> list[Any]:
    return list(merged(named(command), [iter(each) for each in answers]))


def test_rows_are_in_the_order_of_their_noun() -> None:
    mine = [{"vhost": "a", "name": "z"}, {"vhost": "c", "name": "a"}]
    other = [{"vhost": "b", "name": "q"}]
    assert [row["vhost"] for row in rows("queues.list", mine, other)] == ["a", "b", "c"]
    assert [row["name"] for row in rows("vhosts.list", [{"name": "b"}], [{"name": "a"}])] == [
        "a",
        "b",
    ]
    old, new = {"connected_at": 1}, {"connected_at": 2}
    assert rows("connections.list", [new], [old]) == [old, new]
    assert rows("jobs.list", [{"id": 65}], [{"id": 2}]) == [{"id": 2}, {"id": 65}]


def test_rows_without_an_order_follow_each_other() -> None:
    assert rows("channels.list", [{"name": "z"}], [{"name": "a"}]) == [{"name": "z"}, {"name": "a"}]


def test_rows_are_taken_one_by_one() -> None:
    def endless() -> Any:
        while True:
            yield {"vhost": "a"}

    found = merged(named("queues.list"), [endless(), iter([{"vhost": "b"}])])
    assert [next(found)["vhost"] for _ in range(3)] == ["a", "a", "a"]


def test_the_answer_of_one_owner_stays_as_it_is() -> None:
    for command in commands():
        if command.place == EVERYWHERE:
            answer = object()
            assert merged(command, [answer]) is answer


@pytest.mark.parametrize(
    ("first", "other", "whole"),
    [
        (1, 2, 3),
        ({"a": 1, "b": "x"}, {"a": 2, "b": "y", "c": 4}, {"a": 3, "b": "x", "c": 4}),
        ({"rate": 0.5}, {"rate": 1.0}, {"rate": 1.5}),
        (True, True, True),
        (None, 1, None),
        (
            [{"sample": 1, "timestamp": 20}],
            [{"sample": 5, "timestamp": 21}, {"sample": 4, "timestamp": 11}],
            [{"sample": 6, "timestamp": 20}, {"sample": 4, "timestamp": 11}],
        ),
        (
            [{"sample": 3, "timestamp": 30}, {"sample": 2, "timestamp": 25}],
            [
                {"sample": 40, "timestamp": 36},
                {"sample": 30, "timestamp": 31},
                {"sample": 20, "timestamp": 26},
                {"sample": 10, "timestamp": 21},
            ],
            [
                {"sample": 33, "timestamp": 30},
                {"sample": 22, "timestamp": 25},
                {"sample": 10, "timestamp": 21},
            ],
        ),
        (
            [{"sample": 3, "timestamp": 30}, {"sample": 2, "timestamp": 25}],
            [{"sample": 4, "timestamp": 31}],
            [{"sample": 7, "timestamp": 30}, {"sample": 2, "timestamp": 25}],
        ),
        ([], [], []),
    ],
)
def test_numbers_are_added_member_by_member(first: Any, other: Any, whole: Any) -> None:
    assert added(first, other) == whole


def overview(**more: Any) -> dict[str, Any]:
    return {
        "node": "n1",
        "cluster_name": "n1",
        "object_totals": {"queues": 1},
        "listeners": [{"node": "n1", "port": 1, "socket_opts": {"linger": [True, 0]}}],
        "contexts": [],
        **more,
    }


def test_the_overview_has_the_listeners_of_all_and_the_name_that_was_set() -> None:
    far = overview(node="n2", cluster_name="whole", listeners=[{"node": "n2", "port": 1}])
    found = merged(named("overview.show"), [overview(), far, overview()])
    assert found["object_totals"] == {"queues": 3}
    assert [each["node"] for each in found["listeners"]] == ["n1", "n2"]
    assert (found["node"], found["cluster_name"]) == ("n1", "whole")
    assert "message_stats" not in found, "none has statistics"


def test_the_oldest_message_is_that_of_all_stores() -> None:
    none = {"oldest_seconds": None}
    assert merged(named("overview.oldest"), [none, {"oldest_seconds": 0.0}])["oldest_seconds"] == 0
    assert merged(named("overview.oldest"), [none, none]) is none


def test_a_node_is_listed_once_with_what_is_known_best() -> None:
    known, heard = {"name": "n1", "uptime": 1}, {"name": "n1"}
    assert rows("nodes.list", [heard], [known, {"name": "n0"}]) == [{"name": "n0"}, known]
    assert merged(named("nodes.show"), [heard, known]) is known


def test_sections_of_definitions_follow_each_other_and_users_come_once() -> None:
    mine = {"users": [1], "vhosts": [{"name": "b"}], "queues": [1], "global_parameters": [7]}
    other = {"users": [1], "vhosts": [{"name": "a"}], "queues": [2], "global_parameters": []}
    assert merged(named("definitions.export"), [other, mine]) == {
        "users": [1],
        "vhosts": [{"name": "a"}, {"name": "b"}],
        "queues": [2, 1],
        "global_parameters": [7],
    }


def test_a_failed_check_has_the_lists_of_all_owners() -> None:
    failed = merged_failure(
        [CheckFailed("alarms", alarms=["disk"]), CheckFailed("alarms", alarms=["memory"])]
    )
    assert failed.answer["alarms"] == ["disk", "memory"]


def test_the_newest_rows_of_all_are_in_order_and_no_more_than_asked_for() -> None:
    answers = [[{"number": 1}, {"number": 5}], [{"number": 2}, {"number": 3}]]
    found = merged(named("audit.list"), [iter(each) for each in answers], 3)
    assert found == [{"number": 2}, {"number": 3}, {"number": 5}]
