"""A command is described once, in one file; everything that serves it reads that description."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

import harebell.admin.commands
from harebell.admin.catalog import NOUNS, Noun, commands, find
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, MONITORING, POLICYMAKER, plural
from harebell.cli.main import harebell as harebell_verb
from harebell.cli.nouns import group_of
from harebell.cli.verbs import audit, config, dead_letters
from tests.unit.management.control.test_dispatcher import World

FILE = '''
"""Commands for parrots."""

from __future__ import annotations

from typing import Annotated, TypedDict

from harebell.admin.catalog import NOUNS
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused


class ParrotRow(TypedDict):
    """A parrot."""

    name: str
    words: int


@NOUNS["parrots"].listing("parrots", "GET /api/parrots", tag=MANAGEMENT, row=ParrotRow)
def list_parrots(context: AdminContext) -> list[ParrotRow]:
    """List parrots by name."""
    return [{"name": "polly", "words": len(context.broker.vhosts)}]


@NOUNS["parrots"].command(
    "POST /api/parrots/{name}", tag=MANAGEMENT, done="parrot '{name}' says: {said}"
)
def ask(
    context: AdminContext,
    name: str,
    times: Annotated[int, Argument("How often it is said.", "NUMBER")] = 2,
) -> Row:
    """Have a parrot say its name."""
    if name != "polly":
        raise CommandRefused(f"no parrot '{name}'")
    return {"name": name, "said": " ".join([name] * times)}
'''


@pytest.fixture
def parrots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Noun]:
    """A noun whose commands are in one new file of `harebell.admin.commands`."""
    (tmp_path / "parrots.py").write_text(textwrap.dedent(FILE))
    directories = [*harebell.admin.commands.__path__, str(tmp_path)]
    monkeypatch.setattr(harebell.admin.commands, "__path__", directories)
    noun = Noun("parrots", "Look at parrots.", "parrots")
    monkeypatch.setitem(NOUNS, "parrots", noun)
    yield noun
    sys.modules.pop("harebell.admin.commands.parrots", None)


@pytest.mark.usefixtures("parrots")
def test_a_command_of_one_file_is_in_the_listing_of_commands() -> None:
    assert {command.name for command in commands()} >= {"parrots.list", "parrots.ask"}
    command = find("parrots.ask")
    assert command is not None
    assert command.summary == "Have a parrot say its name."
    assert command.http == ("POST /api/parrots/{name}",)
    assert [(each.name, each.type) for each in command.parameters] == [
        ("name", str),
        ("times", int),
    ]


def test_a_command_of_one_file_is_on_the_command_line(
    parrots: Noun, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = CliRunner().invoke(group_of(parrots), ["ask", "--help"]).output
    assert re.search(r"ask \[OPTIONS\] NAME\s+Have a parrot say its name\.", shown)
    assert re.search(r"--times NUMBER\s+How often it is said\.\s+\[default: 2\]", shown)
    asked = []

    def answer(_directory: Path, command: str, fields: dict[str, object], *_: object) -> object:
        asked.append((command, fields))
        return {"name": "polly", "said": "polly polly"}

    monkeypatch.setattr("harebell.cli.nouns.ask_command", answer)
    done = CliRunner().invoke(group_of(parrots), ["ask", "polly", "--times", "3"])
    assert asked == [("parrots.ask", {"name": "polly", "times": 3})]
    assert done.output == "parrot 'polly' says: polly polly\n"


@pytest.mark.asyncio
@pytest.mark.usefixtures("parrots")
async def test_a_command_of_one_file_is_served_on_the_control_socket() -> None:
    world = World()
    assert world.dispatcher.knows("parrots.ask")
    assert await world.ask("parrots.ask", name="polly") == {
        "ok": True,
        "answer": {"name": "polly", "said": "polly polly"},
    }
    assert await world.ask("parrots.list") == {
        "ok": True,
        "answer": [{"name": "polly", "words": 1}],
    }
    assert await world.ask("parrots.ask", name="rex") == {"ok": False, "error": "no parrot 'rex'"}
    wrong = await world.ask("parrots.ask", name="polly", times="often")
    assert wrong["error"] == "parrots.ask: Expected `int`, got `str` - at `$.times`"
    await asyncio.sleep(0)


def test_fields_are_checked_against_the_types_of_the_arguments() -> None:
    command = find("queues.declare")
    assert command is not None
    given = command.arguments_of({"name": "q", "vhost": "v", "type": "quorum"})
    assert given == {
        "name": "q",
        "vhost": "v",
        "type_": "quorum",
        "durable": True,
        "auto_delete": False,
        "arguments": {},
    }
    for wrong in ({}, {"name": 1}, {"name": "q", "nmae": "q"}):
        with pytest.raises(msgspec.ValidationError):
            command.arguments_of(wrong)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (each.name, parameter.name)
        for each in commands()
        for parameter in each.parameters
        if parameter.argument.choices
    ],
)
def test_an_argument_with_choices_has_no_other_value(name: str, wrong: str) -> None:
    command = find(name)
    assert command is not None
    given = {
        each.name: "x" for each in command.parameters if each.default is inspect.Parameter.empty
    }
    with pytest.raises(msgspec.ValidationError, match=f"{wrong} is 'nope': it is one of "):
        command.arguments_of({**given, wrong: "nope"})


def test_no_command_is_found_by_a_wrong_name() -> None:
    for name in ("queues", "queues.", "queues.nothing", ".list", "os.system", "overview", ""):
        assert find(name) is None


@pytest.mark.parametrize("name", list(NOUNS))
def test_every_command_has_an_action_a_permission_and_routes_that_name_its_arguments(
    name: str,
) -> None:
    noun = NOUNS[name]
    group = harebell_verb.get_command(click.Context(harebell_verb), name)
    assert isinstance(group, click.Group)
    verbs = {verb for verb, command in noun.commands.items() if not command.hidden}
    others = {"config": config, "audit": audit, "dead-letters": dead_letters}
    further = others[name].ACTIONS if name in others else ()
    verbs |= {action.name for action in further if action.name is not None}
    assert set(group.commands) == verbs
    for command in noun.commands.values():
        assert command.tag in (MANAGEMENT, MONITORING, POLICYMAKER, ADMINISTRATOR)
        assert command.summary, command.name
        names = {parameter.name for parameter in command.parameters}
        for route in command.routes:
            assert route.method in ("GET", "PUT", "POST", "DELETE")
            assert route.path.startswith("/api/")
            assert set(re.findall(r"{(\w+)}", route.path)) <= names, route


def test_a_route_says_what_it_does_without_words_of_the_command_line() -> None:
    words = re.compile(r"\b(NAME|FILE|EXCHANGE|Print|standard input|`list`)(?!\w)")
    said = {each.summary for command in commands() for each in command.routes}
    assert [summary for summary in said if words.search(summary)] == []


def test_counts_have_their_plural() -> None:
    assert plural(1, "queue") == "1 queue"
    assert plural(0, "queue") == "0 queues"
    assert plural(2, "batch") == "2 batches"
