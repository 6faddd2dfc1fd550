"""Definitions in SQLite, in tables that people can read.

    definitions.sqlite   application id "HBDF", write-ahead log, and as user version the random
                         number of the data, which copies keep
        meta         version of this format, and whether the last process closed in good order
        vhosts, users, permissions, topic_permissions, exchanges, queues, bindings, policies,
        parameters, global_parameters, offsets, leases
        dropped      identities of deleted logs whose files may still be there

Every table but the first has a growing `number`, which is the order of declaration, and a checksum
of the rest of the row. Tables of arguments are stored in the encoding of the caller. Changes gather
in memory, and one transaction per commit makes them durable. A database that is not Harebell's, is
newer, or is damaged is never written to. A database of an older version is upgraded when it is
opened for use.
"""

from __future__ import annotations

import contextlib
import errno
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from harebell.base.errors import DiskError, HarebellError, StoreError
from harebell.base.ports import Definitions, Files
from harebell.store.encoded import check_number, check_text, checked_table
from harebell.store.log.unreadable import cannot_read, refused
from harebell.store.quarantine import Quarantine
from harebell.store.tables import (
    BLOB,
    FLAG,
    NUMBER,
    TABLES,
    TEXT,
    VERSION,
    Table,
    statements,
    upgrades,
)

NAME = "definitions.sqlite"
AHEAD = f"{NAME}-wal"
"""The write-ahead log."""
_APPLICATION = int.from_bytes(b"HBDF")
_SHARED = f"{NAME}-shm"
_DRAFT = "definitions.new"
_CHECKPOINT_CHANGES = 1_000
_PIECE_BYTES = 1_048_576
_TYPES: dict[str, Any] = {TEXT: str, NUMBER: int, FLAG: int, BLOB: bytes}

Change = tuple[str, tuple[Any, ...]]
_DURABLE = "PRAGMA synchronous = FULL"
_STATEMENTS = statements()


class FormatError(StoreError):
    """A newer version of Harebell wrote the data directory: nothing in it may be changed."""


class SqliteDefinitions(Definitions):
    """Definitions in an open database; `open_definitions` creates it.

    Args:
        link: the connection; used by one thread at a time.
        path: the path of the database, for errors.
        encode: encodes a table of arguments.
        decode: decodes one.

    Attributes:
        was_clean: whether the last process closed in good order.
        gathered: whether there are changes for the next commit.
    """

    def __init__(
        self,
        link: sqlite3.Connection,
        path: str,
        encode: Callable[[Mapping[str, Any]], bytes],
        decode: Callable[[bytes], Mapping[str, Any]],
    ) -> None:
        self._link = link
        self._path = path
        self._encode = encode
        self._decode = decode
        self._changes: list[Change] = []
        self._stricter = False
        self._since_checkpoint = 0
        clean, self._version = self._read("SELECT clean, version FROM meta")[0]
        self.was_clean = bool(clean)

    @property
    def gathered(self) -> bool:
        """Whether there are changes for the next commit."""
        return bool(self._changes)

    def check(self, resource: str, table: Mapping[str, Any]) -> int:
        """Return the size of a table of arguments in bytes.

        Raises:
            Refusal: PRECONDITION_FAILED, it cannot be stored.
        """
        return len(checked_table(self._encode, resource, table))

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Gather all changes of a block, or none of them if it raises."""
        before = len(self._changes)
        try:
            yield
        # Also for KeyboardInterrupt: a half of the block must not become part of the next commit.
        except BaseException:
            del self._changes[before:]
            raise

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add or replace a definition; columns added by later versions may be omitted.

        Raises:
            Refusal: PRECONDITION_FAILED, a value cannot be stored; nothing was changed.
        """
        table = TABLES[kind]
        # What SQLite refuses must not come to the commit: it has changes of others, too.
        for name, part in zip(table.key, key, strict=True):
            check_text(kind, name, part)
        row = [self._stored(table, kind, key, name, type_, fields) for name, type_ in table.fields]
        crc = table.checksum((*key, *row))
        self._changes.append((_STATEMENTS[kind, True], (*key, *row, crc)))

    def _stored(
        self,
        table: Table,
        kind: str,
        key: tuple[str, ...],
        name: str,
        type_: str,
        fields: Mapping[str, Any],
    ) -> Any:
        """Return the value of a column, or refuse one that it cannot hold."""
        if type_ == BLOB:
            return checked_table(self._encode, f"{kind} '{key[-1]}'", fields[name])
        value = fields.get(name, table.added.get(name))
        if type_ == TEXT:
            check_text(kind, name, value)
        else:
            check_number(kind, name, value)
        return value

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition if it exists."""
        self._changes.append((_STATEMENTS[kind, False], key))

    def load(self, kind: str) -> Iterable[tuple[tuple[str, ...], Mapping[str, Any]]]:
        """Return every committed definition of a kind, in the order of declaration.

        Raises:
            StoreError: the database is damaged.
        """
        table = TABLES[kind]
        count = len(table.key)
        rows = []
        if table.since > self._version:
            return []
        for *row, crc in self._read(table.load(self._version)):
            if not all(isinstance(part, str) for part in row[:count]):
                raise _damaged(self._path, f"a name in {table.name} is no text")
            fields = {
                name: self._value(table, name, type_, value)
                for (name, type_), value in zip(table.fields, row[count:], strict=True)
            }
            if not table.is_whole(row, crc, self._version):
                raise _damaged(self._path, f"a row of {table.name} is not what was written")
            rows.append((tuple(row[:count]), fields))
        return rows

    def stored(self, kind: str) -> list[tuple[Any, ...]]:
        """Return the committed rows of a kind as they are stored, each with its checksum last.

        Raises:
            StoreError: the database is damaged.
        """
        table = TABLES[kind]
        rows = [tuple(row) for row in self._read(table.load(VERSION))]
        if not all(table.is_whole(row[:-1], row[-1], VERSION) for row in rows):
            raise _damaged(self._path, f"a row of {table.name} is not what was written")
        return rows

    def take_in(self, kind: str, row: tuple[Any, ...]) -> None:
        """Add or replace a row that `stored` of another database has returned."""
        self._changes.append((_STATEMENTS[kind, True], row))

    def take(self) -> list[Any]:
        """Return the changes since the last call, for a batch, and forget them."""
        taken, self._changes = self._changes, []
        return taken

    def write(self, changes: list[Any]) -> None:
        """Make changes durable, all or none.

        Raises:
            OSError: with ENOSPC if the disk is full; the call may be repeated then.
        """
        try:
            if self._stricter:
                self._stricter = False
                self._link.execute(_DURABLE)
            # IMMEDIATE: if another process has a lock, the transaction fails here and not at its
            # COMMIT.
            self._link.execute("BEGIN IMMEDIATE")
            for statement, values in changes:
                self._link.execute(statement, values)
            self._link.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise _os_error(error, self._path) from None
        self._since_checkpoint += len(changes)
        if self._since_checkpoint >= _CHECKPOINT_CHANGES:
            self._since_checkpoint = 0
            # PASSIVE: it waits for no reader, and copies as much as is possible without.
            self._checkpoint("PASSIVE")

    def be_durable(self) -> None:
        """From now on, sync each write (and all writes before it) before it returns."""
        self._stricter = True

    def mark(self, clean: bool) -> None:
        """Store whether the directory is closed in good order.

        Raises:
            OSError: it cannot be written.
        """
        self.write([("UPDATE meta SET clean = ?", (int(clean),))])

    def image(self) -> bytes:
        """Return the whole database, as the content of a file."""
        return self._link.serialize()

    def close(self) -> None:
        """Close the database after a checkpoint of its write-ahead log.

        Raises:
            OSError: the disk refused.
        """
        try:
            self._checkpoint("TRUNCATE")
        finally:
            self._link.close()

    def detach(self) -> None:
        """Close a database that `read_definitions` opened, without a checkpoint."""
        self._link.close()

    def _checkpoint(self, mode: str) -> None:
        """Copy the write-ahead log into the database.

        SQLite's automatic checkpoints are off because they do not report a failed sync.
        """
        try:
            self._link.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        except sqlite3.Error as error:
            failure = _os_error(error, self._path)
            # On a full disk the write-ahead log stays as it is, which loses nothing; a later
            # checkpoint copies it.
            if failure.errno != errno.ENOSPC:
                raise failure from None

    def _roll_back(self) -> None:
        if self._link.in_transaction:
            self._link.execute("ROLLBACK")

    def _read(self, statement: str) -> list[Any]:
        try:
            return self._link.execute(statement).fetchall()
        except _REFUSALS as error:
            raise _refused(self._path, error) from None

    def _value(self, table: Table, name: str, type_: str, value: Any) -> Any:
        if not isinstance(value, _TYPES[type_]):
            raise _damaged(self._path, f"{table.name}.{name} has {value!r}")
        if type_ == FLAG:
            return bool(value)
        if type_ == BLOB:
            try:
                return self._decode(value)
            except HarebellError as error:
                raise _damaged(self._path, f"{table.name}.{name}: {error}") from None
        return value


def open_definitions(
    root: str,
    files: Files,
    encode: Callable[[Mapping[str, Any]], bytes],
    decode: Callable[[bytes], Mapping[str, Any]],
    *,
    synced: bool = True,
    vfs: str = "",
) -> SqliteDefinitions:
    """Open the definitions of a data directory; create them if they do not exist.

    Args:
        root: the data directory, an absolute path.
        files: the same directory.
        encode: encodes a table of arguments.
        decode: decodes one; raises a HarebellError for bytes that are not a table.
        synced: whether a commit is synced before it returns.
        vfs: the name of the SQLite VFS to use; "" for the default one.

    Raises:
        StoreError: the database cannot be used, in a sentence for the user.
    """
    path = str(PurePosixPath(root) / NAME)
    try:
        # Before SQLite sees the directory: it would create what is missing, and apply a stray
        # write-ahead log.
        names = files.names("")
        if NAME not in names:
            _put_aside(files, names)
            _make(root, files, [name for name in names if name.startswith(_DRAFT)], vfs)
        _inspect(path, vfs)
        link = _connect(path, vfs)
        link.execute(_DURABLE if synced else "PRAGMA synchronous = NORMAL")
        # See `_checkpoint`: those of SQLite itself hide a failed sync.
        link.execute("PRAGMA wal_autocheckpoint = 0")
        _upgrade(link)
        _number(link)
    except _REFUSALS as error:
        raise _read_again(files, path, _refused(path, error), vfs) from None
    except StoreError as error:
        raise _read_again(files, path, error, vfs) from None
    except OSError as error:
        raise StoreError(f"cannot use {path}: {error.strerror or error}") from None
    return SqliteDefinitions(link, path, encode, decode)


def read_definitions(
    root: str,
    files: Files,
    encode: Callable[[Mapping[str, Any]], bytes],
    decode: Callable[[bytes], Mapping[str, Any]],
    *,
    sealed: bool = False,
    copied: str = "",
) -> SqliteDefinitions:
    """Open the definitions of a data directory for reading.

    Args:
        root: the data directory, an absolute path.
        files: the same directory.
        encode: encodes a table of arguments.
        decode: decodes one.
        sealed: whether there is no write-ahead log, so that nothing is written beside the database.
        copied: a directory with copies of the database and its write-ahead log, which are read in
            place of those in the data directory; "" for none.

    Raises:
        DiskError: the disk fails to read them.
        StoreError: there are none, or they cannot be used, in a sentence for the user.
    """
    path = str(PurePosixPath(root) / NAME)
    try:
        # SQLite does not always distinguish a page that it could not read from a damaged one.
        _read_through(files)
    except OSError as error:
        raise refused(f"cannot use {path}", error) from None
    try:
        read = str(PurePosixPath(copied) / NAME) if copied else path
        _inspect(read, sealed=sealed)
        return SqliteDefinitions(_open_read_only(read, sealed=sealed), path, encode, decode)
    except _REFUSALS as error:
        raise _read_again(files, path, _refused(path, error), sealed=sealed) from None


def _uri(path: str, mode: str, vfs: str) -> str:
    through = f"&vfs={vfs}" if vfs else ""
    return f"{PurePosixPath(path).as_uri()}?mode={mode}{through}"


def _open_read_only(path: str, vfs: str = "", *, sealed: bool = False) -> sqlite3.Connection:
    """Return a read-only connection."""
    uri = _uri(path, "ro", vfs)
    # Without `immutable`, SQLite creates files beside the database even for reading.
    return sqlite3.connect(f"{uri}&immutable=1" if sealed else uri, uri=True, isolation_level=None)


def _connect(path: str, vfs: str) -> sqlite3.Connection:
    """Return a connection with explicit transactions only."""
    uri = _uri(path, "rw", vfs)
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _upgrade(link: sqlite3.Connection) -> None:
    """Upgrade a database of an older version in one transaction."""
    version = link.execute("SELECT version FROM meta").fetchone()[0]
    statements = upgrades(version)
    if not statements:
        return
    link.execute("BEGIN IMMEDIATE")
    for statement in statements:
        link.execute(statement)
    for table in TABLES.values():
        table.check_all(link)
    link.execute("UPDATE meta SET version = ?", (VERSION,))
    link.execute("COMMIT")


def _put_aside(files: Files, names: list[str]) -> None:
    """Move the write-ahead log of a lost database away: SQLite would apply it to the new one.

    Raises:
        OSError: the disk refuses.
    """
    if _SHARED in names:
        files.remove(_SHARED)
    if AHEAD in names:
        Quarantine(files, "left").move(AHEAD)


def _make(root: str, files: Files, drafts: list[str], vfs: str) -> None:
    """Create an empty database under a draft name and rename it, so that it is always complete."""
    for name in drafts:
        files.remove(name)
    # SQLite copies the file's mode to the files beside it: access for the owner only.
    files.open(_DRAFT, create=True).close()
    link = _connect(str(PurePosixPath(root) / _DRAFT), vfs)
    try:
        link.execute("PRAGMA journal_mode = WAL")
        link.execute("PRAGMA synchronous = FULL")
        link.execute("BEGIN IMMEDIATE")
        link.execute(f"PRAGMA application_id = {_APPLICATION}")
        link.execute("CREATE TABLE meta (version INTEGER NOT NULL, clean BOOLEAN NOT NULL)")
        link.execute("INSERT INTO meta VALUES (?, 1)", (VERSION,))
        for table in TABLES.values():
            link.execute(table.make())
        link.execute("COMMIT")
        link.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise _os_error(error, NAME) from None
    finally:
        link.close()
    # After the checkpoint the draft has no write-ahead log, which would keep the old name.
    files.rename(_DRAFT, NAME)
    files.sync_directory("")


def _number(link: sqlite3.Connection) -> None:
    """Give the data a random number, unless it has one: copies keep it, so backups know theirs."""
    if not store_number(link):
        # On a full disk a later start does it.
        with contextlib.suppress(sqlite3.OperationalError):
            number = link.execute("SELECT (random() & 2147483646) + 1").fetchone()[0]
            link.execute(f"PRAGMA user_version = {number}")


def store_number(link: sqlite3.Connection) -> int:
    """Return the number of the data; 0 if it has none yet."""
    number: int = link.execute("PRAGMA user_version").fetchone()[0]
    return number


def _inspect(path: str, vfs: str = "", *, sealed: bool = False) -> None:
    """Check a database without writing to it.

    Raises:
        StoreError: it is not Harebell's, newer, or damaged.
    """
    link = _open_read_only(path, vfs, sealed=sealed)
    try:
        if link.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
            raise StoreError(
                f"{path} is no database of Harebell: move it away, or choose another directory "
                "with --data-dir"
            )
        row = link.execute("SELECT version FROM meta").fetchone()
        if row is None or not isinstance(row[0], int):
            raise _damaged(path, "meta has no version")
        version = row[0]
        if not 1 <= version <= VERSION:
            raise FormatError(
                f"{path} has format {version}, and this version of Harebell reads 1 to {VERSION}: "
                "use the version that wrote it"
            )
        # PRAGMA quick_check does not check the indexes that find the row of a change.
        complaint = link.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if _is_refusal(complaint):
            raise DiskError(cannot_read(path, complaint))
        if complaint != "ok":
            raise _damaged(path, complaint.replace("\n", " "))
    finally:
        link.close()


class DamagedError(StoreError):
    """The stored definitions are damaged; a read that fails is another error."""


def _damaged(path: str, why: str) -> StoreError:
    return DamagedError(_damage_text(path, why))


def _damage_text(path: str, why: str) -> str:
    return (
        f"{path} is damaged ({why}): move it away, with the files -wal and -shm beside it, and put "
        "a copy in its place or start without what was declared; the messages stay in queues/"
    )


def _refused(path: str, error: Exception) -> StoreError:
    """Return the error for a database that SQLite does not read."""
    if isinstance(error, UnicodeDecodeError):
        return _damaged(path, "what SQLite says of it is no text")
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    if code == sqlite3.SQLITE_IOERR:
        return DiskError(cannot_read(path, str(error)))
    if code == sqlite3.SQLITE_ERROR:
        # A table or column that is not there: what was read is a whole database.
        return StoreError(_damage_text(path, str(error)))
    if code in _DAMAGE:
        return _damaged(path, str(error))
    return StoreError(f"cannot use {path}: {error}")


def _read_again(
    files: Files, path: str, complaint: StoreError, vfs: str = "", *, sealed: bool = False
) -> StoreError:
    """Return the real cause: SQLite reports a page that it could not read as malformed, too."""
    try:
        _read_through(files)
        _inspect(path, vfs, sealed=sealed)
    except OSError as error:
        return DiskError(cannot_read(str(error.filename or path), error.strerror or str(error)))
    except (*_REFUSALS, StoreError):
        return complaint
    if not isinstance(complaint, DamagedError):
        return complaint
    # A disk that fails now and then: what is read now is what was written.
    return DiskError(cannot_read(path, "a read failed, and not when it was repeated"))


def _read_through(files: Files) -> None:
    """Read the database and its write-ahead log once.

    Raises:
        OSError: the disk cannot read them.
    """
    for name in (NAME, AHEAD):
        with contextlib.suppress(FileNotFoundError), contextlib.closing(files.open(name)) as file:
            for at in range(0, file.size(), _PIECE_BYTES):
                file.read_at(_PIECE_BYTES, at)


def _is_refusal(complaint: str) -> bool:
    """True if the text of an integrity check reports a read error."""
    match = _ERROR_CODE.search(complaint)
    return match is not None and int(match[1]) & _PRIMARY in _UNREAD


_ERROR_CODE = re.compile(r"error code=(\d+)")
"""SQLite's text for a page that it could not read."""
_UNREAD = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN)
_REFUSALS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a database that cannot be read; the second where SQLite quotes damaged text."""
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""Codes for damage of the file itself."""
_ERRNOS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
}
_PRIMARY = 0xFF
"""The low byte of an SQLite error code is the primary code; the rest is detail."""


def _os_error(error: sqlite3.Error, path: str) -> OSError:
    """Convert an error of SQLite to an OSError with the file's name."""
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
    return OSError(_ERRNOS.get(code, errno.EIO), str(error), path)
