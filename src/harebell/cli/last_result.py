r"""The rows that the last line of a shell has printed, for its `\last`.

Outside of a shell nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from harebell.cli.limits import LAST_RESULT_ROWS
from harebell.cli.verb import WrongUsage

_KEPT = "harebell.last_result"


class LastResult:
    """The rows of the last line, at most `LAST_RESULT_ROWS`."""

    def __init__(self) -> None:
        self._columns: tuple[str, ...] = ()
        self._rows: list[Sequence[Any]] | None = None
        self._printed: Callable[[], None] = _nothing
        self.before: tuple[tuple[str, ...], list[Sequence[Any]]] | None = None
        """The rows of the line before, which a question may ask for."""

    def of(self, context: click.Context) -> None:
        """Keep the rows of what runs in a context."""
        context.meta[_KEPT] = self

    def clear(self) -> None:
        """Forget them: another line begins."""
        if self._rows is not None:
            self.before = (self._columns, self._rows)
        self._rows, self._printed = None, _nothing

    def keep(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], again: Callable[[], None]
    ) -> None:
        """Keep rows, and the function that prints them as they were."""
        self._columns, self._printed = tuple(columns), again
        self._rows = list(rows[:LAST_RESULT_ROWS])

    def again(self) -> None:
        """Print them as they were.

        Raises:
            WrongUsage: there are none.
        """
        self._printed()

    def rows(self) -> tuple[tuple[str, ...], list[Sequence[Any]]]:
        """Return the names of the columns, and the rows.

        Raises:
            WrongUsage: there are none.
        """
        if self._rows is None:
            _nothing()
        return self._columns, self._rows or []


def _nothing() -> None:
    raise WrongUsage("the last line has printed no rows")


def kept() -> LastResult | None:
    """Return where the shell that runs keeps its rows; None without a shell."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_KEPT)


def keep_dicts(
    columns: Sequence[str], rows: Sequence[Mapping[str, Any]], again: Callable[[], None]
) -> None:
    """Keep rows that are tables of values by column."""
    if (keeper := kept()) is not None:
        made = [[row.get(name) for name in columns] for row in rows[:LAST_RESULT_ROWS]]
        keeper.keep(columns, made, again)
