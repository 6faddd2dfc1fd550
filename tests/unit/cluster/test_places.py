"""Every command of the catalog has one place where it runs in a cluster."""

from __future__ import annotations

from collections import Counter

import pytest

from harebell.admin.catalog import commands, find
from harebell.admin.command import Command
from harebell.admin.merging import NEEDS_ALL
from harebell.admin.place import (
    ANYWHERE,
    EVERYWHERE,
    FIRST,
    HERE,
    IN_PARTS,
    MERGES,
    NEW_VHOST,
    PLACES,
    ROWS,
    SHARED,
    STORE,
    VHOST,
    WORKERS,
)

EVERY = sorted(commands(), key=lambda command: command.name)
PROCESS = ("config", "listeners", "app", "logs")
"""Nouns that are about the process."""


def named(name: str) -> Command:
    found = find(name)
    assert found is not None
    return found


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_a_command_has_one_known_place_and_one_known_merge(command: Command) -> None:
    assert command.place in PLACES
    assert command.merge in MERGES
    merges = command.place in (EVERYWHERE, WORKERS)
    assert command.merge == ROWS or merges, "nothing would be merged"


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_a_command_that_needs_a_vhost_runs_in_its_store(command: Command) -> None:
    parameter = command.vhost_parameter
    needs = parameter is not None and parameter.default not in (None, "")
    assert needs == (command.place in (VHOST, NEW_VHOST, "end of vhost"))


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_a_command_that_may_have_a_vhost_never_runs_here_alone(command: Command) -> None:
    if command.vhost_parameter is not None:
        assert command.place not in (HERE, ANYWHERE)


@pytest.mark.parametrize("command", EVERY, ids=lambda command: command.name)
def test_a_command_with_a_stream_of_rows_runs_in_one_place(command: Command) -> None:
    assert not command.streams or command.place in (HERE, VHOST)


@pytest.mark.parametrize("noun", PROCESS)
def test_commands_about_the_process_run_here(noun: str) -> None:
    assert {each.place for each in EVERY if each.noun.name == noun} <= {HERE, WORKERS}


def test_workers_have_one_configuration_and_open_their_logs_together() -> None:
    of_all = {each.name for each in EVERY if each.place == WORKERS}
    config = {f"config.{verb}" for verb in ("effective", "reload", "set", "unset")}
    assert of_all == {*config, "logs.reopen"}


def test_users_are_changed_in_store_1_and_read_here() -> None:
    places = {each.verb: each.place for each in EVERY if each.noun.name == "users"}
    reads = ("list", "list-with-hashes", "show", "authenticate")
    assert {verb for verb, place in places.items() if place == HERE} == set(reads)
    assert places.pop("list-without-permissions") == EVERYWHERE
    # The states of the audit trail, before and after a change there.
    assert places.pop("state") == FIRST
    assert {place for verb, place in places.items() if verb not in reads} == {SHARED}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("queues.list", EVERYWHERE),
        ("queues.declare", VHOST),
        ("permissions.set", VHOST),
        ("permissions.list", EVERYWHERE),
        ("vhosts.list", EVERYWHERE),
        ("vhosts.show", VHOST),
        ("vhosts.add", NEW_VHOST),
        ("vhosts.put", NEW_VHOST),
        ("vhosts.delete", "end of vhost"),
        ("limits.set", SHARED),
        ("limits.put-user-limit", SHARED),
        ("limits.put-vhost-limit", VHOST),
        ("global-parameters.set", FIRST),
        ("global-parameters.list", FIRST),
        ("service.set-cluster-name", FIRST),
        ("service.cluster-name", FIRST),
        ("service.enable-feature-flag", FIRST),
        ("definitions.export", EVERYWHERE),
        ("definitions.import", IN_PARTS),
        ("jobs.cancel", ANYWHERE),
        ("connections.close", ANYWHERE),
        ("sql.cancel", ANYWHERE),
        ("health.alarms", EVERYWHERE),
        ("health.local-alarms", HERE),
        ("overview.show", EVERYWHERE),
    ],
)
def test_the_place_of_a_command_is_as_documented(name: str, place: str) -> None:
    assert named(name).place == place


def test_definitions_and_users_without_permissions_need_all_owners() -> None:
    assert {each.name for each in EVERY if each.merge in NEEDS_ALL} == {
        "definitions.export",
        "users.list-without-permissions",
    }


def test_the_vhost_of_a_command_about_vhosts_is_its_name() -> None:
    assert named("vhosts.show").vhost_of({"name": "x"}) == "x"
    assert named("queues.list").vhost_of({"vhost": None}) == ""
    assert named("queues.purge").vhost_of({"name": "q", "vhost": "x"}) == "x"
    assert named("users.show").vhost_of({"name": "x"}) == ""


def test_fields_have_the_names_of_a_request_and_not_those_of_the_function() -> None:
    assert named("jobs.show").fields_of({"id_": 3}) == {"id": 3}


def test_most_commands_need_no_word_about_their_place() -> None:
    said = Counter(bool(each.own_place) for each in EVERY)
    assert said[True] < said[False] / 2


def test_commands_about_the_cluster_run_where_the_store_is() -> None:
    places = {each.verb: each.place for each in EVERY if each.noun.name == "cluster"}
    assert places == {"status": EVERYWHERE, "drain": HERE, "move": STORE}
