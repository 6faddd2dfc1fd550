"""Answers with rows that are made while they are sent, or that hold something until they are sent.

A command with many rows returns a `RowStream`. Whatever serves the command calls `next` on its
batches, sends the rows, and waits until its client has read them before it asks for more: neither
the broker nor the client holds all rows.

    def browse(context: AdminContext, name: str) -> RowStream:
        return RowStream(batches_of(queue))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.admin.command import Row


def _nothing() -> None:
    """Do nothing: there is nothing to release."""


class HeldRows:
    """Rows of objects that are held until the client has the rows, such as unsettled messages.

    Whatever serves the command takes `end` exactly once: with True when the whole answer was
    handed to the connection of the client, else with False.

    Args:
        rows: the rows, which are made already.
        end: settles what is held, in slices; gets whether the rows were delivered.
    """

    def __init__(self, rows: list[Row], end: Callable[[bool], Slices[None]]) -> None:
        self.rows = rows
        self.end = end


class RowStream:
    """The rows of an answer, in batches.

    Args:
        batches: each step does at most one slice of work, and charges it to the work budget. An
            empty batch means that the next rows take more slices. A step may raise
            `CommandRefused`: the stream then ends with that error.
        close: releases what the stream holds; called once, however the stream ends.
    """

    def __init__(self, batches: Iterator[list[Row]], close: Callable[[], None] = _nothing) -> None:
        self.batches = batches
        self._close = close
        self._closed = False

    def close(self) -> None:
        """End the stream: all rows were sent, or its client has gone."""
        if not self._closed:
            self._closed = True
            self._close()
