"""Wrong flags of a verb."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from harebell.cli.verb import Failure, NotConnected, Verb, WrongUsage, echo


@click.command(cls=Verb)
@click.option("--port")
@click.option("--host")
@click.option("--ack/--no-ack")
@click.option("--secret", hidden=True)
def verb(port: str, host: str, ack: bool, secret: str) -> None:
    click.echo(f"{port} {host} {ack} {secret}")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("--prot", "--port"), ("--hots", "--host"), ("--no-akc", "--no-ack"), ("--hepl", "--help")],
)
def test_the_nearest_flag_is_named(wrong: str, right: str) -> None:
    result = CliRunner().invoke(verb, [wrong])
    assert result.exit_code == 2
    assert f"Error: No option {wrong}: did you mean {right}?" in result.output


def test_a_hidden_flag_is_not_proposed() -> None:
    result = CliRunner().invoke(verb, ["--secrets"])
    assert "--secret?" not in result.output


def test_right_flags_work() -> None:
    result = CliRunner().invoke(verb, ["--port", "1", "--no-ack"])
    assert result.output == "1 None False None\n"


def test_line_ends_stay_and_orders_to_a_terminal_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    echo("a\tb\nc \x1b[31m")
    echo("d", nl=False)
    echo("e\x9b", err=True)
    out, err = capsys.readouterr()
    assert out == "a\tb\nc \\u001b[31m\nd"
    assert err == "e\\u009b\n"


def test_the_exit_codes_are_those_that_are_documented() -> None:
    assert Failure("x").exit_code == 1
    assert WrongUsage("x").exit_code == 2
    assert NotConnected("x").exit_code == 4


def test_click_s_own_complaints_have_the_code_of_ours() -> None:
    assert click.UsageError("x").exit_code == WrongUsage("x").exit_code
