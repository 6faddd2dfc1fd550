"""Wrong flags of a verb."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from harebell.cli.verb import Verb


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
