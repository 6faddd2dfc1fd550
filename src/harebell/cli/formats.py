"""How a verb prints: `--json` with every verb that prints data, and `-o` for its other forms.

The older spelling `-o json` is accepted, too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

C = TypeVar("C", bound=Callable[..., Any])

JSON = "json"
_ASKED = "harebell.json"


class _Format(click.Choice[str]):
    """A choice that takes `json` too, which help and completion leave to `--json`."""

    def __init__(self, formats: tuple[str, ...]) -> None:
        super().__init__((*formats, JSON))
        self._shown = formats

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return f"[{'|'.join(self._shown)}]"


def _note(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[_ASKED] = value == JSON


def _or_noted(ctx: click.Context, _param: click.Parameter, value: bool) -> bool:
    return value or bool(ctx.meta.get(_ASKED))


def json_options(help_text: str = "Print one line of JSON.") -> list[click.Parameter]:
    """Return the option `--json` of a verb with one other form, and `-o json`, which is hidden."""
    return [
        click.Option(
            ["-o", "--output"],
            type=click.Choice(("table", JSON)),
            is_eager=True,
            expose_value=False,
            hidden=True,
            callback=_note,
        ),
        click.Option(["--json", "as_json"], is_flag=True, callback=_or_noted, help=help_text),
    ]


def takes_json(help_text: str = "Print one line of JSON.") -> Callable[[C], C]:
    """Decorate a verb with the options of `json_options`."""

    def decorate(command: C) -> C:
        known: list[click.Parameter] = getattr(command, "__click_params__", [])
        command.__click_params__ = [*known, *json_options(help_text)]  # type: ignore[attr-defined]
        return command

    return decorate


def takes_format(
    *formats: str, help_text: str, json_help: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a verb with `-o` and `--json`; it gets the form as `output`.

    Args:
        *formats: its other forms; the first is the default.
        help_text: says in `--help` what the other forms are.
        json_help: says in `--help` what a line of JSON is about.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(*arguments: Any, as_json: bool, output: str, **more: Any) -> Any:
            return command(*arguments, output=JSON if as_json else output, **more)

        options = (
            click.option("--json", "as_json", is_flag=True, help=json_help),
            click.option(
                "-o",
                "--output",
                type=_Format(formats),
                default=formats[0],
                help=f"{help_text}  [default: {formats[0]}]",
            ),
        )
        for option in options:
            run = option(run)
        return run

    return decorate
