"""`harebell pipeline watch`: the pipelines of this machine, live, as their registry tells them.

A pipeline writes its state after each micro-batch. The rates and ages here are of those states: a
pipeline that has no new messages keeps its last rate, and its age grows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from harebell.pipeline.registry import RUNNING, PipelineState

COLUMNS = ("pipeline", "state", "batch", "rows", "rows/s", "batch ms", "lag", "lag s", "error")
_ERROR_LETTERS = 60


def lag_seconds(state: PipelineState) -> float | None:
    """Return how long the messages that wait will take, at the rate of all micro-batches so far.

    Returns:
        None if the lag is unknown, or if no message was read yet.
    """
    if not state.lag:
        return None
    waiting = sum(state.lag.values())
    if not waiting:
        return 0.0
    if not state.rows or not state.batch_seconds:
        return None
    return waiting * state.batch_seconds / state.rows


def row_of(state: PipelineState) -> tuple[str, ...]:
    """Return the cells of a pipeline, by `COLUMNS`."""
    behind = lag_seconds(state)
    error = state.error.partition("\n")[0]
    return (
        state.name,
        state.state,
        f"{state.batch:,}" if state.batch >= 0 else "",
        f"{state.rows:,}",
        f"{state.rate:,.0f}" if state.state in RUNNING else "",
        f"{state.batch_ms:,}" if state.batches else "",
        f"{sum(state.lag.values()):,}" if state.lag else "",
        "" if behind is None else f"{behind:,.1f}",
        error if len(error) <= _ERROR_LETTERS else f"{error[: _ERROR_LETTERS - 1]}…",
    )


def live_table(states: Sequence[PipelineState], now: float | None = None) -> Any:
    """Return the states as a table of rich, running pipelines first."""
    from rich.table import Table
    from rich.text import Text

    moment = time.strftime("%H:%M:%S", time.gmtime(time.time() if now is None else now))
    table = Table(box=None, title=f"pipelines at {moment}Z", title_justify="left")
    for name in COLUMNS:
        right = name not in ("pipeline", "state", "error")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "error")
    for state in sorted(states, key=lambda each: (each.state not in RUNNING, each.name)):
        style = {"failed": "red", "lost": "red", "ended": "dim"}.get(state.state, "")
        # As text: a name in square brackets is no markup.
        table.add_row(*(Text(cell, style=style) for cell in row_of(state)))
    return table
