"""A flag for a whole number, whose help says its default."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])


def number_flag(
    name: str,
    help_text: str,
    default: int | None = None,
    *,
    minimum: int = 1,
    maximum: int | None = None,
    metavar: str = "NUMBER",
) -> Callable[[F], F]:
    """Return the decorator of a verb that adds a flag.

    Args:
        name: of the flag, such as "--count".
        help_text: a sentence.
        default: the number without the flag, which the help names; None for no number.
        minimum: the smallest number that is taken.
        maximum: the greatest; None for any.
        metavar: stands for the number in the help.
    """
    # Not `show_default` of click: beside the default it would print the range.
    shown = "" if default is None else f"  [default: {default}]"
    kind = click.IntRange(minimum, maximum)
    return click.option(name, type=kind, default=default, metavar=metavar, help=help_text + shown)
