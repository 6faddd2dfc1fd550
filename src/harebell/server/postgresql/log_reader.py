"""Read the log of a store into a directory: what a claim begins with, and a standby follows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from harebell.base.errors import StoreError
from harebell.server.postgresql.database import driver
from harebell.server.postgresql.log_sizes import LogSizes
from harebell.server.postgresql.tables import Tables
from harebell.store.journal.changes import END, decode, plain
from harebell.store.journal.pieces import LivePieces
from harebell.store.journal.replaying import Replica

if TYPE_CHECKING:
    from psycopg import Connection

_ROWS = 1_000
"""Rows of one query: a longer one would keep its snapshot for too long."""


class LogReader:
    """Replays a log, in order.

    Args:
        tables: of the store.
        replica: the directory.

    Attributes:
        pieces: what of each generation lives.
        sizes: the bytes of each generation.
        number: of the last row that was replayed; 0 for none.
        generation: the one that the next row is in.
    """

    def __init__(self, tables: Tables, replica: Replica) -> None:
        self.pieces = LivePieces()
        self.sizes = LogSizes()
        self.number = 0
        self.generation = 0
        self._tables = tables
        self._replica = replica
        self._ended = True
        # Whether nothing of the generation was read: those before it may be gone.
        self._fresh = True

    def follow(self, link: Connection[Any]) -> None:
        """Replay everything that there is.

        Raises:
            OSError: the disk of the directory refuses.
            psycopg.Error: the server is away or refuses.
            StoreError: a row is damaged or missing.
        """
        while not self._ended or self._next_generation(link):
            try:
                self._read(link)
            except driver().errors.UndefinedTable:
                # It was removed before it was read: what lived of it is in a later one.
                self._ended = True
                continue
            if not self._ended:
                break
        self._replica.check()

    def _next_generation(self, link: Connection[Any]) -> bool:
        """Go on to the next generation; False if there is none."""
        later = [each for each in self._tables.generations(link) if each > self.generation]
        if not later:
            return False
        self.generation = later[0]
        self.sizes.begin(self.generation)
        self._ended = False
        self._fresh = True
        return True

    def _read(self, link: Connection[Any]) -> None:
        """Replay the rest of the generation."""
        statement = self._tables.statement(
            "SELECT number, content FROM {log} WHERE number > %s ORDER BY number LIMIT %s",
            self.generation,
        )
        while not self._ended:
            count = 0
            # Rows are fetched one by one, because each is a commit and may be large.
            rows: Any = link.cursor(binary=True).stream(statement, (self.number, _ROWS))
            # The connection can be used again when the rows are closed, after an error too.
            with contextlib.closing(rows):
                for number, content in rows:
                    count += 1
                    self._replay(number, content)
            if count < _ROWS:
                return

    def _replay(self, number: int, content: bytes) -> None:
        if not self._fresh and number != self.number + 1:
            raise StoreError(
                f"row {self.number + 1} of the log is missing: restore the database from a backup"
            )
        self._fresh = False
        where = f"row {number} of the log"
        row = plain(content, where)
        changes = list(decode(row, where))
        self._replica.replay(changes)
        for change in changes:
            self.pieces.note(change, self.generation)
        self.sizes.add(self.generation, len(content), len(row))
        self.number = number
        self._ended = any(change.kind == END for change in changes)
