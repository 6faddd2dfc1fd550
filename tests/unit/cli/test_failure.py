"""Exit codes."""

from __future__ import annotations

import click

from harebell.cli.failure import Failure, NotConnected, WrongUsage


def test_the_exit_codes_are_those_that_are_documented() -> None:
    assert Failure("x").exit_code == 1
    assert WrongUsage("x").exit_code == 2
    assert NotConnected("x").exit_code == 4


def test_click_s_own_complaints_have_the_code_of_ours() -> None:
    assert click.UsageError("x").exit_code == WrongUsage("x").exit_code
