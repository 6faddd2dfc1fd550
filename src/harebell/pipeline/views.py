"""Show running pipelines: a live table on a terminal, else a line per batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from harebell.pipeline.registry import PipelineState


def line_of(state: PipelineState) -> str:
    """Format a pipeline's last micro-batch as a line."""
    lag = f", {sum(state.lag.values()):,} behind" if state.lag else ""
    bad = f", {state.bad:,} bad" if state.bad else ""
    return (
        f"{state.name}: micro-batch {state.batch}, {state.rows:,} rows so far{bad}, "
        f"{state.rate:,.0f} rows/s, {state.batch_ms:,} ms{lag}"
    )


def end_of(state: PipelineState) -> str:
    """Describe how a pipeline ended."""
    if state.state == "failed":
        return f"{state.name}: failed: {state.error}"
    wrote = ", ".join(f"{count:,} to {name}" for name, count in state.written.items())
    bad = f", {state.bad:,} bad" if state.bad else ""
    return f"{state.name}: {state.rows:,} rows read{bad}; written {wrote or 'nothing'}"


class View:
    """Show some runs, as a context manager.

    Args:
        echo: prints a line where there is no terminal.
        terminal: whether output is a terminal; None detects it.
    """

    def __init__(self, echo: Callable[[str], None], terminal: bool | None = None) -> None:
        self._echo = echo
        self._printed: dict[str, int] = {}
        self._live: Any = None
        if sys.stdout.isatty() if terminal is None else terminal:
            self._live = _live()

    def __enter__(self) -> View:
        """Start the live table."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the live table."""
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        if self._live is not None:
            # By the console of the table, which prints above it. Names may have square brackets,
            # which are markup to rich.
            self._live.console.print(text, markup=False, highlight=False)
        else:
            self._echo(text)

    def show(self, states: Iterable[PipelineState]) -> None:
        """Update the output."""
        shown = list(states)
        if self._live is not None:
            self._live.update(_table(shown))
            return
        for state in shown:
            # The caller looks several times during a micro-batch: each is printed once.
            if state.batch > self._printed.get(state.name, -1):
                self._printed[state.name] = state.batch
                self._echo(line_of(state))


def _live() -> Any:
    try:
        from rich.live import Live
    except ImportError:
        # rich is optional: without it there is a line per micro-batch, as without a terminal.
        return None
    return Live(refresh_per_second=4)


def _table(states: list[PipelineState]) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for name in ("pipeline", "state"):
        table.add_column(name)
    for name in ("batch", "rows", "bad", "rows/s", "ms", "behind"):
        table.add_column(name, justify="right")
    for state in states:
        lag = f"{sum(state.lag.values()):,}" if state.lag else ""
        batch = "" if state.batch < 0 else f"{state.batch:,}"
        counts = (batch, f"{state.rows:,}", f"{state.bad:,}", f"{state.rate:,.0f}")
        # As text: a name in square brackets is no markup.
        table.add_row(Text(state.name), state.state, *counts, f"{state.batch_ms:,}", lag)
    return table
