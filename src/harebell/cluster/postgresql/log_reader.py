"""Read the log of a store into a directory: what a claim begins with, and a standby follows.

A row that is damaged, missing or there twice is reported and kept as evidence, and reading goes on:
every change says where in its file it goes, so later rows do not need an earlier one. What the row
had is missing then, and the start of the broker finds the records that are. See `salvage.py` for
what is still used of a damaged row. Only definitions that are gone altogether stop a start.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.cluster.postgresql.database import driver
from harebell.cluster.postgresql.log_sizes import LogSizes
from harebell.cluster.postgresql.tables import Tables
from harebell.store.journal.changes import END, WRITE, Change, RowDamage, decode, plain
from harebell.store.journal.pieces import LivePieces
from harebell.store.journal.replaying import Replica
from harebell.store.journal.salvage import Salvage, salvaged

if TYPE_CHECKING:
    from psycopg import Connection

_UNKNOWN = (
    "the messages of its commit are lost, what it acknowledged may come again, and what it "
    "declared or deleted is not; the start reports what queues lack"
)
_SHOWN = 5
_ROWS = 1_000
"""Rows of one query: a longer one would keep its snapshot for too long."""


class DamagedRow(NamedTuple):
    """A row that is not what was written.

    Args:
        number: of the row.
        text: what is wrong with it, and what follows from that.
        content: what was read of it; empty if it is missing.
    """

    number: int
    text: str
    content: bytes = b""


class LogReader:
    """Replays a log, in order.

    Args:
        tables: of the store.
        replica: the directory.
        damage: called with each row that is not what was written.
        between: called with the connection between two queries: many rows take minutes.

    Attributes:
        pieces: what of each generation lives.
        sizes: the bytes of each generation.
        number: of the last row that was replayed; 0 for none.
        generation: the one that the next row is in.
    """

    def __init__(
        self,
        tables: Tables,
        replica: Replica,
        damage: Callable[[DamagedRow], object],
        between: Callable[[Connection[Any]], object] = lambda _connection: None,
    ) -> None:
        self.pieces = LivePieces()
        self.sizes = LogSizes()
        self.number = 0
        self.generation = 0
        self._tables = tables
        self._replica = replica
        self._ended = True
        # Whether nothing of the generation was read: those before it may be gone.
        self._fresh = True
        self._damage = damage
        self._between = between
        # The last row that was damaged, and whether any was.
        self._damaged_number = 0
        self._saw_end = False
        self._distrusted = False

    def follow(self, connection: Connection[Any]) -> None:
        """Replay everything that there is.

        Raises:
            OSError: the disk of the directory refuses.
            psycopg.Error: the server is away or refuses.
            StoreError: there are no definitions, or a newer version wrote a row.
        """
        while not self._ended or self._next_generation(connection):
            try:
                self._read(connection)
            except driver().errors.UndefinedTable:
                # It was removed before it was read: what lived of it is in a later one.
                self._ended = True
                continue
            if not self._ended and not self._end_is_lost(connection):
                break
        if self._distrusted:
            self._replica.distrust()
        self._replica.check()

    def _end_is_lost(self, connection: Connection[Any]) -> bool:
        """End a generation without its last row, if the next one has rows."""
        number = self.number
        for later in self._tables.generations(connection):
            if later > self.generation:
                statement = self._tables.statement("SELECT FROM {log} LIMIT 1", later)
                if not connection.execute(statement).rowcount:
                    return False
                # It was written before the rows of the next one, perhaps just now.
                self._read(connection)
                if not self._ended and self.number == number:
                    self._ended = True
                    text = f"the last row of generation {self.generation} of the log is missing"
                    self._report(DamagedRow(self.number + 1, text))
                return True
        return False

    def _report(self, row: DamagedRow) -> None:
        self._distrusted = True
        self._damage(row)

    def _next_generation(self, connection: Connection[Any]) -> bool:
        """Go on to the next generation; False if there is none."""
        later = [each for each in self._tables.generations(connection) if each > self.generation]
        if not later:
            return False
        # After the end of the one before, its rows go on with the next number.
        self._fresh = later[0] != self.generation + 1 or not self._saw_end
        self.generation = later[0]
        self.sizes.begin(self.generation)
        self._ended = self._saw_end = False
        return True

    def _read(self, connection: Connection[Any]) -> None:
        """Replay the rest of the generation."""
        statement = self._tables.statement(
            "SELECT number, content FROM {log} WHERE number > %s ORDER BY number LIMIT %s",
            self.generation,
        )
        while not self._ended:
            count = 0
            # Rows are fetched one by one, because each is a commit and may be large.
            rows: Any = connection.cursor(binary=True).stream(statement, (self.number, _ROWS))
            # The connection can be used again when the rows are closed, after an error too.
            with contextlib.closing(rows):
                for number, content in rows:
                    count += 1
                    self._replay(number, content)
            if count < _ROWS:
                return
            self._between(connection)

    def _replay(self, number: int, content: bytes) -> None:
        where = f"row {number} of the log"
        # A damaged index may show a number twice; after a damaged row the second may be whole.
        if not self._fresh and number <= self.number and number != self._damaged_number:
            self._report(DamagedRow(number, f"{where} is there twice: the first is used", content))
            return
        if not self._fresh and number > self.number + 1:
            self._report_missing(number - 1)
        self._fresh = False
        try:
            row = plain(content, where)
            changes = list(decode(row, where))
        except RowDamage as error:
            self._damaged_number = number
            row, changes = content, self._salvage(number, content, str(error))
        else:
            self._replica.replay(changes)
        for change in changes:
            self.pieces.note(change, self.generation)
        self.sizes.add(self.generation, len(content), len(row))
        self.number = max(self.number, number)
        self._ended = self._saw_end = any(change.kind == END for change in changes)

    def _report_missing(self, last: int) -> None:
        """Report the rows up to one: what they declared, wrote and removed is unknown."""
        first = self.number + 1
        rows = f"row {first} of the log is" if first == last else f"rows {first} to {last} are"
        self._report(DamagedRow(first, f"{rows} missing: {_UNKNOWN}"))

    def _salvage(self, number: int, content: bytes, text: str) -> list[Change]:
        """Make what can be made of a damaged row; return these changes."""
        salvage = salvaged(content, self.pieces.sizes, has_image=self._replica.has_image)
        if salvage.sure:
            self._replica.replay(salvage.changes)
            made = salvage.changes
        else:
            made = [each for each in salvage.changes if self._make(each)]
        self._report(DamagedRow(number, f"{text}: {_used(salvage, made)}", content))
        return made

    def _make(self, change: Change) -> bool:
        if change.kind == WRITE:
            return self._replica.fill(change)
        self._replica.replay([change])
        return True


def _used(salvage: Salvage, made: list[Change]) -> str:
    """Say what is used of a damaged row, and what is missing now."""
    if salvage.sure:
        return "only its head, and everything in it is used"
    if not salvage.changes and not salvage.unused:
        return _UNKNOWN
    paths = sorted({each.name for each in made if each.kind == WRITE})
    shown = ", ".join(paths[:_SHOWN]) + (" ..." if len(paths) > _SHOWN else "")
    left = salvage.unused + len(salvage.changes) - len(made)
    text = f"{len(made)} changes in it are used and {left} are not"
    if paths:
        text += f"; messages in {shown} may be damaged, which the start reports by queue"
    if salvage.declarations:
        text += f"; not declared or deleted: {', '.join(salvage.declarations[:_SHOWN])}"
    return text
