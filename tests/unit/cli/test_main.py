"""The group of verbs."""

from __future__ import annotations

import click
import pytest

from harebell.cli.main import VERBS, harebell, version_line


@pytest.mark.parametrize("name", list(VERBS))
def test_every_verb_is_a_command_of_its_own_name(name: str) -> None:
    command = harebell.get_command(click.Context(harebell), name)
    assert command is not None
    assert command.name == name


@pytest.mark.parametrize("name", list(VERBS))
def test_the_list_says_of_a_verb_what_its_help_begins_with(name: str) -> None:
    command = harebell.get_command(click.Context(harebell), name)
    assert command is not None
    assert (command.help or "").startswith(VERBS[name])


def test_a_verb_that_is_none_is_none() -> None:
    assert harebell.get_command(click.Context(harebell), "failure") is None


def test_the_version_is_one_line() -> None:
    assert version_line().startswith("harebell ")
    assert "\n" not in version_line()
