"""The output of the demo: progress bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

_LINES_SECONDS = 2.0


class Moves(Protocol):
    """Called with the completed amount of a step."""

    def __call__(self, done: int) -> None:
        """Report the completed amount."""


class View:
    """Prints the output of the demo."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line with the time since the start."""
        self.console.print(f"[dim]{time.monotonic() - self._began:6.1f} s[/]  {text}")

    @contextmanager
    def step(self, title: str, total: int) -> Iterator[Moves]:
        """Show the progress of a step with a known amount of work."""
        if self.console.is_terminal:
            with self._bar() as bar:
                task = bar.add_task(title, total=total)
                yield lambda done: bar.update(task, completed=done)
        else:
            yield self._lines(title, total)

    def _bar(self) -> Progress:
        return Progress(
            TextColumn("          {task.description:<12}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
        )

    def _lines(self, title: str, total: int) -> Moves:
        self.say(f"{title} {total:,}")
        last, told = time.monotonic(), 0

        def moved(done: int) -> None:
            nonlocal last, told
            if done not in (told, total) and time.monotonic() - last >= _LINES_SECONDS:
                last, told = time.monotonic(), done
                self.say(f"{title} {done:,} of {total:,}")

        return moved

    def table(self, title: str, heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """Print a small table; the first column is text, the others are numbers."""
        table = Table(title=title, title_justify="left", title_style="bold")
        for number, head in enumerate(heads):
            table.add_column(head, justify="left" if number == 0 else "right")
        for row in rows:
            table.add_row(*row)
        self.console.print(table)
