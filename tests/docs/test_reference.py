"""The reference pages name every key, flag, verb and dependency that exists, and no other."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import click
import pytest

from harebell import __version__
from harebell.cli.limits import EXIT_INTERRUPTED
from harebell.cli.main import VERBS, harebell
from harebell.cli.verb import DAMAGED, FAILED, NOT_CONNECTED, WRONG_USAGE
from harebell.config.reading import OTHER_VARIABLES
from harebell.config.settings import SETTINGS
from harebell.server.limits import EXIT_DISK
from tests.docs.markdown import ROOT, read, rows

CODE = re.compile(r"`([^`]+)`")


TABLES = ROOT / "tools" / "reference_tables.py"


def test_the_tables_of_keys_metrics_and_routes_are_those_that_the_code_makes() -> None:
    # What it prints are the lines that differ; without --check it writes them.
    done = subprocess.run(
        [sys.executable, TABLES, "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_key_says_its_values_and_its_meaning() -> None:
    table = rows(read(ROOT / "docs/reference/configuration.md").section("Keys"))
    assert [row[0] for row in table] == [f"`{setting.name}`" for setting in SETTINGS]
    for row in table:
        assert len(row) == 6, row
        assert row[1].endswith("."), row
        assert row[2], row


def test_every_other_variable_has_its_row() -> None:
    table = rows(read(ROOT / "docs/reference/configuration.md").section("Other variables"))
    assert {row[0].strip("`") for row in table} == set(OTHER_VARIABLES)


def test_every_verb_has_its_section_and_the_other_way_round() -> None:
    titles = read(ROOT / "docs/reference/cli.md").titles(2)
    general = ["Which broker", "Output and lists", "Exit codes"]
    assert titles == [*general, *(f"harebell {verb}" for verb in VERBS)]


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_flag_of_a_verb_is_in_its_section_and_the_other_way_round(verb: str) -> None:
    command = harebell.get_command(click.Context(harebell), verb)
    assert command is not None
    actions = command.commands.values() if isinstance(command, click.Group) else ()
    flags = {
        flag
        for each in (command, *actions)
        for parameter in each.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }
    section = read(ROOT / "docs/reference/cli.md").section(f"harebell {verb}")
    documented = {
        word for row in rows(section) for word in CODE.findall(row[0]) if word.startswith("-")
    }
    assert documented == flags


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    table = rows(read(ROOT / "docs/reference/cli.md").section("Exit codes"))
    assert [int(row[0]) for row in table] == [
        0,
        FAILED,
        WRONG_USAGE,
        DAMAGED,
        NOT_CONNECTED,
        EXIT_DISK,
        EXIT_INTERRUPTED,
    ]


def test_every_dependency_has_its_reason_and_the_other_way_round() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    document = read(ROOT / "docs/internals/dependencies.md")
    documented: dict[str, set[str]] = {}
    for title in document.titles(2):
        extra = re.search(r"\[(\w+)\]", title)
        names = {row[0].lower() for row in rows(document.section(title))}
        documented[extra[1] if extra else ""] = names
    declared = {
        extra: {re.split(r"[^A-Za-z0-9_.-]", each)[0].lower() for each in requirements}
        for extra, requirements in groups.items()
    }
    assert documented == declared


def test_the_changelog_has_a_place_for_the_next_release() -> None:
    titles = read(ROOT / "CHANGELOG.md").titles(2)
    assert titles[0] == "[Unreleased]"
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(read(ROOT / "CHANGELOG.md").titles(3)) <= kinds


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
