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
FORMATS = ("table", "csv", "json")


class LastResult:
    """The rows of the last line, at most `LAST_RESULT_ROWS`."""

    def __init__(self) -> None:
        self._columns: tuple[str, ...] = ()
        self._rows: list[Sequence[Any]] | None = None
        self._again: Callable[[], None] | None = None

    def of(self, context: click.Context) -> None:
        """Keep the rows of what runs in a context."""
        context.meta[_KEPT] = self

    def clear(self) -> None:
        """Forget them: another line begins."""
        self.__init__()  # type: ignore[misc]

    def keep(
        self, columns: Sequence[str], rows: Sequence[Sequence[Any]], again: Callable[[], None]
    ) -> None:
        """Keep rows, and the function that prints them as they were."""
        self._columns, self._again = tuple(columns), again
        self._rows = list(rows[:LAST_RESULT_ROWS])

    def show(self, output: str) -> None:
        """Print them.

        Args:
            output: one of `FORMATS`; "" for the form they had.

        Raises:
            WrongUsage: there are none, or there is no such form.
        """
        if output and output not in FORMATS:
            raise WrongUsage(f"\\last shows {', '.join(FORMATS)}, not {output!r}")
        if self._rows is None or self._again is None:
            raise WrongUsage("the last line has printed no rows")
        if not output:
            self._again()
            return
        from harebell.cli.printed_rows import print_first

        print_first(self._columns, self._rows, output)


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
