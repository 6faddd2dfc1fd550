"""Which rows of a list are printed, and in which order: the options `--where` and `--sort`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import click

from harebell.admin.command import Command
from harebell.base.names import did_you_mean
from harebell.cli.verb import WrongUsage

Rows = list[dict[str, Any]]
Condition = Callable[[dict[str, Any]], bool]

_CONDITION = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>|~)\s*(.*?)\s*", re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BOOLEANS = {"true": "yes", "false": "no"}
"""How JSON writes what a table has as yes and no."""
_NUMBERS, _TEXTS, _NOTHING = range(3)
"""The order of values of several kinds in a column."""


def selecting_options() -> list[click.Parameter]:
    """Return the options `--where` and `--sort`."""
    return [
        click.Option(
            ["--where"],
            multiple=True,
            metavar="CONDITION",
            help="Only rows such as `messages > 100`, `name = jobs` or, with a regular expression, "
            "`name ~ ^jobs`. All that are given have to hold.",
        ),
        click.Option(
            ["--sort"], metavar="COLUMN", help="Sort by this column; -COLUMN has the largest first."
        ),
    ]


class Selection:
    """The rows of a list that a user wants.

    Args:
        command: the list.
        where: conditions.
        sort: the column to sort by, with `-` before it for the largest first; None for the order
            of the broker.

    Raises:
        WrongUsage: a condition is none, or the list has no such column.
    """

    def __init__(
        self, command: Command, where: tuple[str, ...] = (), sort: str | None = None
    ) -> None:
        self._conditions = [_condition(command, text) for text in where]
        self._down = (sort or "").startswith("-")
        self._column = None if sort is None else checked(command, sort.removeprefix("-"))

    def of(self, batches: Iterator[Rows]) -> Iterator[Rows]:
        """Yield the rows of batches; all at once if they are sorted."""
        kept = ([row for row in rows if self._keeps(row)] for rows in batches)
        if self._column is None:
            yield from kept
            return
        column = self._column
        rows = [row for rows in kept for row in rows]
        rows.sort(key=lambda row: _rank(row.get(column)), reverse=self._down)
        yield rows

    def _keeps(self, row: dict[str, Any]) -> bool:
        return all(holds(row) for holds in self._conditions)


def checked(command: Command, name: str) -> str:
    """Return the name of a column.

    Raises:
        WrongUsage: the list has no such column.
    """
    if name not in command.columns:
        near = did_you_mean(name, command.columns)
        raise WrongUsage(f"{command.what} have no column {name!r}: {near}")
    return name


def _condition(command: Command, text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise WrongUsage(
            f"--where {text!r} is no condition: write COLUMN, one of = != < <= > >= ~, and a value"
        )
    column, sign, value = checked(command, match[1]), match[2], match[3]
    if sign == "~":
        try:
            pattern = re.compile(value)
        except re.error as error:
            raise WrongUsage(f"--where {text!r}: {error} in the regular expression") from None
        return lambda row: pattern.search(text_of(row.get(column))) is not None
    return lambda row: _compares(row.get(column), _COMPARISONS[sign], value)


def _compares(value: Any, compare: Callable[[Any, Any], bool], wanted: str) -> bool:
    if isinstance(value, bool):
        return compare(text_of(value), _BOOLEANS.get(wanted.lower(), wanted))
    if isinstance(value, int | float):
        try:
            return compare(value, float(wanted))
        except ValueError:
            return compare is operator.ne
    if value is None and compare not in (operator.eq, operator.ne):
        return False
    return compare(text_of(value), wanted)


def text_of(value: Any) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ",".join(value)
    if isinstance(value, dict | list):
        import msgspec

        return msgspec.json.encode(value).decode()
    return "" if value is None else str(value)


def _rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, int | float):
        return _NUMBERS, value
    return (_NOTHING, 0) if value in (None, "") else (_TEXTS, text_of(value))
