"""`harebell pipeline watch`: the pipelines of this machine, live, as their registry tells them.

A pipeline writes its state after each micro-batch. The rates here are of those states: a pipeline
that has no new messages keeps its last rate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from harebell.pipeline.registry import RUNNING, PipelineState

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

COLUMNS = ("pipeline", "state", "batch", "rows", "rows/s", "batch ms", "lag", "lag s", "error")
_FIRST_TO_GO = ("batch ms", "batch", "lag s", "rows", "rows/s", "lag")
"""Columns that a narrow terminal has no room for, in this order."""
_ERROR_LETTERS = 60
_ERROR_LETTERS_MIN = 12
_NAME_LETTERS = 10
_HEAD_LINES = 2
_PADDING = 2


def lag_seconds(state: PipelineState) -> float | None:
    """Return how long the messages that wait will take, at the rate of all micro-batches so far.

    Returns:
        None if the lag is unknown, or if no message was read yet.
    """
    if not state.lag:
        return None
    waiting = sum(state.lag.values())
    # Known without a rate, so also before the first micro-batch.
    if not waiting:
        return 0.0
    if not state.rows or not state.batch_seconds:
        return None
    return waiting * state.batch_seconds / state.rows


def row_of(state: PipelineState, error_letters: int | None = _ERROR_LETTERS) -> tuple[str, ...]:
    """Return the cells of a pipeline, by `COLUMNS`.

    Args:
        state: of the pipeline.
        error_letters: most letters of the error; None for all of its first line.
    """
    behind = lag_seconds(state)
    error = state.error.partition("\n")[0]
    return (
        state.name,
        state.state,
        f"{state.batch:,}" if state.batch >= 0 else "",
        f"{state.rows:,}",
        # The last rate of a pipeline that has ended says nothing of the present.
        f"{state.rate:,.0f}" if state.state in RUNNING else "",
        f"{state.batch_ms:,}" if state.batches else "",
        f"{sum(state.lag.values()):,}" if state.lag else "",
        "" if behind is None else f"{behind:,.1f}",
        _cut(error, error_letters),
    )


def _cut(text: str, letters: int | None) -> str:
    return text if letters is None or len(text) <= letters else f"{text[: letters - 1]}…"


def in_order(states: Sequence[PipelineState]) -> list[PipelineState]:
    """Return running pipelines by name, then those that failed and those that ended, by time."""

    def place(state: PipelineState) -> tuple[int, float, str]:
        if state.state in RUNNING:
            return 0, 0.0, state.name
        return 2 if state.state == "ended" else 1, -state.updated, state.name

    return sorted(states, key=place)


class LiveTable:
    """The states as a table of rich that fits a terminal: a line each, as many as there is room.

    Args:
        states: of the pipelines.
        now: seconds since 1970; None for the current time.
    """

    def __init__(self, states: Sequence[PipelineState], now: float | None = None) -> None:
        self._states = in_order(states)
        self._now = time.time() if now is None else now

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        """Yield the table for the size of the terminal."""
        from rich.table import Table
        from rich.text import Text

        room = max(1, (options.height or console.height) - _HEAD_LINES)
        rows = [(state, row_of(state, error_letters=None)) for state in self._states]
        # One line is left for the number of those that are not shown.
        shown = rows if len(rows) <= room else rows[: max(1, room - 1)]
        moment = time.strftime("%H:%M:%S", time.gmtime(self._now))
        table = Table(box=None, title=f"pipelines at {moment}Z", title_justify="left")
        widths = _fitting([row for _, row in shown], options.max_width)
        for column, width in widths.items():
            right = COLUMNS[column] not in ("pipeline", "state", "error")
            justify: Literal["left", "right"] = "right" if right else "left"
            table.add_column(COLUMNS[column], justify=justify, no_wrap=True, width=width)
        for state, row in shown:
            style = {"failed": "red", "lost": "red", "ended": "dim"}.get(state.state, "")
            # As text: a name in square brackets is no markup.
            table.add_row(*(Text(row[column], style=style) for column in widths))
        yield table
        if len(shown) < len(rows):
            yield Text(f" and {len(rows) - len(shown)} more: `harebell pipeline list` has all")


def _fitting(rows: Sequence[tuple[str, ...]], width: int) -> dict[int, int]:
    """Return the columns that fit next to each other and their widths, by index in `COLUMNS`."""
    from rich.cells import cell_len

    error = len(COLUMNS) - 1
    longest = {
        column: max([len(name), *(cell_len(row[column]) for row in rows)])
        for column, name in enumerate(COLUMNS)
    }
    chosen = longest | {
        0: min(longest[0], max(_NAME_LETTERS, width // 3)),
        error: min(longest[error], _ERROR_LETTERS_MIN),
    }
    # An empty column would take its room from the others.
    if not any(row[error] for row in rows):
        del chosen[error]

    def spare() -> int:
        return width - sum(chosen.values()) - _PADDING * len(chosen)

    for name in _FIRST_TO_GO:
        if spare() < 0:
            del chosen[COLUMNS.index(name)]
    # Last: the error takes the room that the columns before have left.
    if error in chosen:
        chosen[error] = max(1, min(longest[error], chosen[error] + spare()))
    return chosen
