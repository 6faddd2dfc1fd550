"""Read the rows of a `RowStream` in the turns of the broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from harebell.admin.streaming import RowStream
from harebell.management.limits import COMMAND_ENTRY_UNITS

if TYPE_CHECKING:
    from harebell.admin.command import Row
    from harebell.admin.context import AdminContext
    from harebell.front.common.turns import Account


@runtime_checkable
class Rows(Protocol):
    """Rows that are made, or come from another owner of the cluster, while they are sent."""

    async def next(self) -> list[Row]:
        """Return the next rows; an empty list at the end."""

    def close(self) -> None:
        """End the stream, read to its end or not."""


class RowReader:
    """Reads one stream of rows for one client.

    The stream does work only while the client waits for rows, and within the work budget.

    Args:
        context: the broker.
        account: the account that the work is charged to.
        stream: the rows.
    """

    def __init__(self, context: AdminContext, account: Account, stream: RowStream) -> None:
        self._context = context
        self._account = account
        self._stream = stream
        self._rows: asyncio.Future[list[Row]] | None = None

    async def next(self) -> list[Row]:
        """Return the next rows; an empty list at the end.

        Raises:
            CommandRefused: the stream ends with an error.
        """
        self._rows = asyncio.get_running_loop().create_future()
        self.go_on()
        return await self._rows

    def close(self) -> None:
        """End the stream, read to its end or not."""
        self._stream.close()
        if self._rows is not None:
            self._rows.cancel()

    def go_on(self) -> None:
        """Do slices until there are rows, or the work budget of this turn is used up."""
        turns, future = self._context.registry.turns, self._rows
        if future is None or future.done():
            return  # the client has gone
        begun = turns.current is None
        if begun:
            turns.begin_anyway(self._account)
        try:
            if not self._answer(future):
                turns.wait(self._account, self)
        except Exception as error:  # raised to the task that waits for the rows
            future.set_exception(error)
        finally:
            if begun:
                turns.end()

    def _answer(self, future: asyncio.Future[list[Row]]) -> bool:
        """Do slices; True if there are rows, or there is none any more."""
        work = self._context.broker.work
        while True:
            try:
                rows = next(self._stream.batches)
            except StopIteration:
                future.set_result([])
                return True
            spent = work.charge(COMMAND_ENTRY_UNITS)
            if rows:
                future.set_result(rows)
                return True
            if spent:
                return False
