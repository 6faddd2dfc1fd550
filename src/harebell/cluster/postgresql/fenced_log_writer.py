"""Append the changes of each batch to the log of a store, and bound the size of the log.

A row is one commit. It is appended by one statement that commits by itself, so nothing waits in an
open transaction.

**The fence.** The statement inserts nothing when the epoch of the owner is over, and the first row
of an owner is its claim, so no earlier owner can append behind it.

**An outcome that is unknown.** When the connection is lost, the row is read by its number: if it is
there and ours, the commit has happened, but perhaps not on the standby yet, so a further commit has
to succeed before anything is confirmed. If it is not there, it is inserted again; should the first
attempt still be on its way, one of the two fails for the number is unique.

**Without a thread.** A small commit may be sent by the event loop, which does not wait for the
answer. From `send` until the answer the connection belongs to the loop, and otherwise to the thread
that appends. What goes wrong is left to that thread: the outcome counts as unknown.

**Cleaning.** When more of the log is dead than it should be, the generation with the most dead
bytes is emptied: what lives of it is appended again, piece by piece, and its table is dropped. A
session that reads all tables, such as pg_dump, may hold it for hours: it is dropped after that, and
nothing waits for it.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.base.errors import StoreError
from harebell.base.ports import Files
from harebell.cluster.postgresql.database import Database, driver
from harebell.cluster.postgresql.log_reader import LogReader
from harebell.cluster.postgresql.ownership import Deposed, Ownership
from harebell.cluster.postgresql.prepared_statement import PreparedStatement
from harebell.cluster.postgresql.tables import Tables
from harebell.server.limits import LOOP_COMMIT_BYTES
from harebell.store.journal.changes import CLAIM, END, WRITE, Change, encode
from harebell.store.journal.pieces import DEFINITIONS, PIECE_BYTES, Piece
from harebell.store.journal.row_compression import RowCompressor

if TYPE_CHECKING:
    from psycopg import Connection

GENERATION_BYTES = 32 * 1_048_576
"""The size from which a generation is ended."""
DEAD_MAX_BYTES = 32 * 1_048_576
"""Dead bytes from which the log is cleaned..."""
DEAD_SHARE = 0.25
"""... or this share of what lives, if that is more."""
_SLICE_BYTES = 1_048_576
"""What is appended again after one commit: more would delay the next confirm."""
_ROW_BYTES = 64 * 1_048_576
"""The size from which the changes of a commit go on in another row."""
_RETRY_SECONDS = 0.05
_NO_ROOM = ("No space left on device", "Disk quota exceeded")
"""What a server without room says in errors of other kinds."""
_DROP_SECONDS = 1.0
"""Before another attempt to remove a generation that another session uses; twice as long each time,
because each attempt is an error in the log of the server."""
_DROP_MAX_SECONDS = 16.0
_APPEND = (
    "INSERT INTO {log} (number, epoch, content)"
    " SELECT $1::bigint, epoch, $2::bytea FROM {store} WHERE epoch = $3::bigint"
)


class _Row(NamedTuple):
    """A row of the log.

    Args:
        content: as it is stored.
        plain_bytes: its size before compression.
    """

    content: bytes
    plain_bytes: int


class FencedLogWriter:
    """Appends to the log; used by one thread at a time, from `send` until the answer too.

    Args:
        database: where the store is.
        tables: the statements for its tables.
        ownership: the claim.
        reader: has replayed the log.
        report: called with a level and a line.

    Attributes:
        rows: appended rows.
        written: their bytes.
    """

    def __init__(
        self,
        database: Database,
        tables: Tables,
        ownership: Ownership,
        reader: LogReader,
        report: Callable[[str, str], None],
    ) -> None:
        self.rows = 0
        self.written = 0
        self._database = database
        self._tables = tables
        self._ownership = ownership
        self._report = report
        self._pieces = reader.pieces
        self._sizes = reader.sizes
        self._compressor = RowCompressor()
        self._number = reader.number
        ownership.log_end = lambda: (self._number, self.written)
        self._generation = reader.generation
        # The number before the first one of the generation; 0 if it is older than this writer.
        self._begun = 0
        self._connection: Connection[Any] | None = None
        self._append: tuple[Connection[Any], int, PreparedStatement] | None = None
        self._warned = False
        self._kept: list[Change] = []
        # What was sent without waiting: its changes, and the row.
        self._sent: tuple[list[Change], _Row] | None = None
        # The generation that is being emptied, and those that are empty and not dropped yet.
        self._emptied = 0
        self._empty: list[int] = []
        self._drop_at = 0.0
        self._drop_wait = _DROP_SECONDS
        self._in_use = False
        self._last_error = ""
        self._files: Files
        self._image: Callable[[], Change]

    def attach(self, files: Files, image: Callable[[], Change]) -> None:
        """Set where living pieces are read from.

        Args:
            files: the cache.
            image: returns the database of definitions as a change.
        """
        self._files = files
        self._image = image

    def begin(self, reader: LogReader, connection: Connection[Any]) -> None:
        """Append the claim, so that no earlier owner can append any more.

        Args:
            reader: it reads what an earlier owner still appended.
            connection: to the database.

        Raises:
            Deposed: another broker has claimed the store.
            psycopg.Error: the server is away or refuses.
        """
        while True:
            reader.follow(connection)
            self._number, self._generation = reader.number, reader.generation
            claim = self._row([Change(CLAIM, self._ownership.epoch, self._database.node)])
            try:
                self._insert_once(connection, [claim.content])
            except driver().errors.UniqueViolation:
                continue
            self._appended([], [claim])
            return

    def append(self, changes: Iterable[Change]) -> None:
        """Append changes; they are durable when this returns, and what was sent before, too.

        Raises:
            Deposed: this broker does not own the store any more.
            OSError: with ENOSPC if the server has no room; call it again then.
        """
        self._kept.extend(changes)
        if self._sent is not None:
            sent, row = self._sent
            self._insert([row.content], unknown=True)
            self._appended(sent, [row])
            self._sent = None
        if self._kept:
            self._commit(self._kept)
            self._kept = []

    def send(self, changes: Iterable[Change]) -> int:
        """Send changes as one small row, and do not wait for the answer.

        Returns:
            A file descriptor that can be read when there is an answer: call `answered` then. -1 if
            `append` has to commit the changes, which are kept for it.
        """
        self._kept.extend(changes)
        prepared = self._append
        if (
            prepared is None
            or self._sent is not None
            or prepared[:2] != (self._connection, self._generation)
            or not self._kept
            or sum([len(change.data) for change in self._kept]) > LOOP_COMMIT_BYTES
            or not self._ownership.holds()
        ):
            return -1
        row = self._row(self._kept)
        self._sent = self._kept, row
        self._kept = []
        self._warned = False
        try:
            prepared[2].send((self._number + 1, row.content, self._ownership.epoch))
        except driver().Error:
            return -1
        return prepared[0].fileno()

    def answered(self) -> bool | None:
        """Return whether what was sent is committed; None if there is no answer yet.

        If it is not or not for sure, `append` has to find out.
        """
        assert self._append is not None
        assert self._sent is not None
        try:
            rows = self._append[2].received()
        except driver().Error:
            return False
        if rows is None:
            return None
        if rows != 1 or self._warned:
            return False
        sent, row = self._sent
        self._sent = None
        self._appended(sent, [row])
        return True

    def needs_cleaning(self) -> bool:
        """Return whether `clean` has something to do."""
        return (
            self._sizes.of(self._generation) >= GENERATION_BYTES
            or self._emptied > 0
            or self._victim() > 0
            or (bool(self._empty) and time.monotonic() >= self._drop_at)
        )

    def clean(self) -> None:
        """End a generation that is large enough, and clean a part of the log.

        Raises:
            Deposed: this broker does not own the store any more.
            OSError: with ENOSPC if the server has no room; call it again then.
        """
        if self._sizes.of(self._generation) >= GENERATION_BYTES:
            self._end_generation()
        self._clean()
        self._drop_empty()

    def figures(self) -> dict[str, int]:
        """Return the size of the log, for people; called in any thread."""
        stored, live = self._sizes.stored, self._live()
        return {
            "log_rows": self.rows,
            "log_written_bytes": self.written,
            "log_bytes": stored,
            "log_live_bytes": live,
            "log_dead_bytes": max(0, stored - live),
            "log_generations": len(self._sizes),
        }

    def close(self) -> None:
        """Close the connection."""
        self._drop_connection()

    def _commit(self, changes: list[Change]) -> None:
        rows = [self._row(part) for part in _parts(changes)]
        self._insert([row.content for row in rows])
        self._appended(changes, rows)

    def _row(self, changes: list[Change]) -> _Row:
        plain = encode(changes)
        return _Row(self._compressor.compress(plain), len(plain))

    def _appended(self, changes: list[Change], rows: list[_Row]) -> None:
        size = sum([len(row.content) for row in rows])
        self._number += len(rows)
        self._sizes.add(self._generation, size, sum([row.plain_bytes for row in rows]))
        for change in changes:
            self._pieces.note(change, self._generation)
        self.rows += len(rows)
        self.written += size

    def _insert(self, contents: list[bytes], *, unknown: bool = False) -> None:
        """Insert the rows of a commit, and find out whether they are there until it is known.

        Args:
            contents: of the rows.
            unknown: whether they may be there already.
        """
        errors = driver().errors
        last_text = ""
        while self._ownership.holds():
            try:
                connection = self._connected()
                if unknown and self._is_mine(connection, self._number + len(contents)):
                    return
                self._insert_once(connection, contents)
                if not self._warned:
                    return
                # The row is committed here, and perhaps on no standby: `_is_mine` makes sure.
                unknown = True
            except errors.UniqueViolation:
                # An earlier attempt was still on its way, or another owner has this number now:
                # the epoch of the row says which.
                unknown = True
            except errors.UndefinedTable:
                raise self._deposed("its log was emptied by another broker") from None
            except (errors.DiskFull, errors.OutOfMemory) as error:
                raise OSError(errno.ENOSPC, self._database.reason(error)) from None
            except (driver().Error, StoreError) as error:
                unknown = True
                self._drop_connection()
                text = self._database.reason(error)
                if any(each in text for each in _NO_ROOM):
                    # A server without room for its WAL ends, and says this where one connects.
                    raise OSError(errno.ENOSPC, text) from None
                if text != last_text:
                    last_text = text
                    self._report("warning", f"cannot commit, and try again: {text}")
                time.sleep(_RETRY_SECONDS)
        raise self._deposed(self._ownership.lost or "its lease is over")

    def _insert_once(self, connection: Connection[Any], contents: list[bytes]) -> None:
        self._warned = False
        insert = self._prepared(connection)
        # One row is one statement, which commits by itself.
        transaction = connection.transaction() if len(contents) > 1 else contextlib.nullcontext()
        with transaction:
            for number, content in enumerate(contents, self._number + 1):
                if insert.run((number, content, self._ownership.epoch)) != 1:
                    raise self._deposed("another broker has claimed it")

    def _prepared(self, connection: Connection[Any]) -> PreparedStatement:
        """Return the statement that appends to the generation."""
        prepared = self._append
        if prepared is None or prepared[:2] != (connection, self._generation):
            name = f"append_{self._generation}"
            made = PreparedStatement(
                connection, name, self._tables.statement(_APPEND, self._generation)
            )
            if prepared is not None and prepared[0] is connection:
                prepared[2].forget()
            self._append = prepared = (connection, self._generation, made)
        return prepared[2]

    def _is_mine(self, connection: Connection[Any], number: int) -> bool:
        """True if a row is there, and on every standby that commits wait for."""
        row = connection.execute(
            self._tables.statement("SELECT epoch FROM {log} WHERE number = %s", self._generation),
            (number,),
        ).fetchone()
        if row is None:
            return False
        if row[0] != self._ownership.epoch:
            raise self._deposed("another broker has claimed it")
        self._warned = False
        # A later commit that has waited for the standbys shows that they have the earlier one.
        done = connection.execute(
            self._tables.statement("UPDATE {store} SET beat = beat + 1 WHERE epoch = %s"),
            (self._ownership.epoch,),
        )
        if done.rowcount != 1:
            raise self._deposed("another broker has claimed it")
        return not self._warned

    def _deposed(self, reason: str) -> Deposed:
        self._ownership.depose(reason)
        return Deposed(errno.ESTALE, f"the store is not owned any more: {reason}")

    def _connected(self) -> Connection[Any]:
        if self._connection is None:
            connection = self._database.connect()
            # When tables are dropped, a driver that had prepared statements would remove ours, too.
            connection.prepare_threshold = None
            connection.add_notice_handler(self._noticed)
            self._connection = connection
            self._check_end(connection)
        return self._connection

    def _check_end(self, connection: Connection[Any]) -> None:
        """Check that the server has what was committed: after a fail-over it is another one.

        Raises:
            Deposed: it has lost commits, so what this broker holds in memory is not what is stored.
        """
        row = connection.execute(
            self._tables.statement("SELECT max(number) FROM {log}", self._generation)
        ).fetchone()
        newest = None if row is None else row[0]
        if (self._begun if newest is None else newest) < self._number:
            raise self._deposed(
                "the server has lost confirmed commits: it was no synchronous standby before"
            )

    def _noticed(self, notice: Any) -> None:
        # For example, the wait for a standby was cancelled: only this server has the commit.
        self._warned = True
        self._report("warning", f"PostgreSQL warns: {notice.message_primary}")

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        self._append = None
        if connection is not None:
            with contextlib.suppress(driver().Error):
                connection.close()

    def _end_generation(self) -> None:
        """End the generation, and begin the next one."""
        following = self._generation + 1
        # Its table is there before the end is, so a reader that sees the end can go on.
        if not self._change(lambda connection: self._tables.make_log(connection, following)):
            return
        self._commit([Change(END)])
        self._generation = following
        self._begun = self._number
        self._sizes.begin(following)

    def _clean(self) -> None:
        """Append a slice of what lives in the generation with the most dead bytes."""
        victim = self._emptied or self._victim()
        if not victim:
            return
        self._emptied = victim
        pieces, size = [], 0
        for piece in sorted(self._pieces.of(victim)):
            if size >= _SLICE_BYTES:
                break
            pieces.append(piece)
            size += self._pieces.byte_count(piece)
        changes = [self._whole(piece) for piece in pieces]
        is_last = len(pieces) == len(self._pieces.of(victim))
        if is_last:
            # Rows of the victim also say which files were removed. Without them an older row could
            # bring one back, so one row lists all files that live.
            changes.append(self._pieces.alive())
        self._commit(changes)
        for piece in pieces:
            self._pieces.whole(piece, self._generation)
        if is_last:
            self._emptied = 0
            self._empty.append(victim)
            self._drop_at = 0.0

    def _drop_empty(self) -> None:
        """Drop the generations that are empty, unless another session uses one of them.

        Order does not matter: a leftover generation changes nothing on replay.
        """
        if not self._empty or time.monotonic() < self._drop_at:
            return
        # A session such as pg_dump locks the tables that exist when it begins. So the newest are
        # tried first: when one is in use, older ones are too.
        for victim in reversed(tuple(self._empty)):
            if not self._change(partial(self._tables.drop_log, generation=victim)):
                break
            self._empty.remove(victim)
            self._pieces.forget(victim)
            self._sizes.remove(victim)
        if self._empty:
            self._drop_wait = min(2 * self._drop_wait, _DROP_MAX_SECONDS)
        else:
            self._in_use, self._drop_wait = False, _DROP_SECONDS
        self._drop_at = time.monotonic() + self._drop_wait

    def _victim(self) -> int:
        """Return the generation to empty; 0 if few enough bytes are dead."""
        live = self._live()
        dead = self._sizes.stored - live - sum([self._sizes.of(each) for each in self._empty])
        if dead <= max(DEAD_MAX_BYTES, live * DEAD_SHARE):
            return 0
        ended = set(self._sizes.generations()) - {self._generation, *self._empty}
        if not ended:
            return 0
        return max(ended, key=lambda each: self._sizes.dead(each, self._pieces.live_bytes(each)))

    def _live(self) -> int:
        """Return about how many stored bytes are needed to restore the store."""
        return self._sizes.compressed(self._pieces.total_bytes())

    def _whole(self, piece: Piece) -> Change:
        """Return a piece as a change."""
        if piece == DEFINITIONS:
            return self._image()
        path, number = piece
        file = self._files.open(path)
        try:
            data = file.read_at(self._pieces.byte_count(piece), number * PIECE_BYTES)
        finally:
            file.close()
        return Change(WRITE, number * PIECE_BYTES, path, data)

    def _change(self, call: Callable[[Connection[Any]], None]) -> bool:
        """Change tables; False if the server refuses now, so that it is tried again later.

        It waits for no disk: the row that comes next is after it in the WAL, and does. If the
        server dies before that, a table that was dropped is there again: replaying it changes
        nothing.
        """
        try:
            connection = self._connected()
            with connection.transaction():
                connection.execute("SET LOCAL synchronous_commit = off")
                # Confirms would wait, too, and behind this all who read the table.
                connection.execute("SET LOCAL lock_timeout = 1")
                call(connection)
        except driver().errors.LockNotAvailable:
            if not self._in_use:
                self._in_use = True
                self._report(
                    "info",
                    "the log grows: another session, such as pg_dump, uses parts of it that are "
                    "dead, and they are removed after it has ended",
                )
            return False
        except (driver().Error, StoreError) as error:
            self._drop_connection()
            text = self._database.reason(error)
            if text != self._last_error:
                self._last_error = text
                self._report("warning", f"cannot clean the log: {text}")
            return False
        self._last_error = ""
        return True


def _parts(changes: list[Change]) -> Iterator[list[Change]]:
    """Yield the changes in parts that each fit in a row."""
    part: list[Change] = []
    size = 0
    for change in changes:
        if part and size + len(change.data) > _ROW_BYTES:
            yield part
            part, size = [], 0
        part.append(change)
        size += len(change.data)
    yield part
