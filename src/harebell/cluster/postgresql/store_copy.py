"""Copy a store between a data directory and PostgreSQL, while no broker runs on either.

    directory -> PostgreSQL   one transaction, which is checked before it commits
    PostgreSQL -> directory   into DIRECTORY.copying, which is checked, synced and renamed

So a copy that is interrupted leaves nothing behind that a broker could start on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell import __version__
from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles, sync_path
from harebell.cluster.postgresql.database import Database, driver
from harebell.cluster.postgresql.fenced_log_writer import GENERATION_BYTES
from harebell.cluster.postgresql.log_reader import LogReader
from harebell.cluster.postgresql.ownership import LeaseWatch, Ownership, claim, now, read_store
from harebell.cluster.postgresql.shared_tables import ClusterTables
from harebell.cluster.postgresql.tables import Tables, is_first
from harebell.cluster.stores import FIRST_STORE, schema_of
from harebell.cluster.workers.layout import stores_of
from harebell.server.disk.lock import NAME as LOCK
from harebell.server.disk.lock import DirectoryLock
from harebell.server.disk.storage import decoded_table
from harebell.store.definitions import NAME, read_definitions
from harebell.store.journal.changes import END, SNAPSHOT, WRITE, Change, decode, encode, plain
from harebell.store.journal.replaying import Replica
from harebell.store.journal.row_compression import RowCompressor
from harebell.store.log.log_index import is_index
from harebell.wire.v09.fields import encode_table

if TYPE_CHECKING:
    from psycopg import Connection

COPIER = "harebell store copy"
"""The name of the owner of a store that is copied."""
_DIRECTORIES = ("queues", "quarantine")
_ROW_BYTES = 1_048_576
_LEASE_MS = 3_000
_LOOK_SECONDS = 0.1
_CHUNK_BYTES = 1_048_576


class Copied(NamedTuple):
    """What was copied.

    Args:
        files: files of logs.
        byte_count: their bytes.
        elsewhere: schemas of other stores of the cluster that have vhosts, which were not copied.
        damaged: what is wrong with rows of the log; the rest was copied.
    """

    files: int
    byte_count: int
    elsewhere: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def into_postgresql(source: Path, url: str, schema: str) -> Copied:
    """Copy a data directory into an empty schema.

    Raises:
        OSError: the directory cannot be read.
        StoreError: a broker uses one of them, the schema has a store, or the copy differs.
    """
    source = source.resolve()
    if not (source / NAME).is_file():
        raise StoreError(f"{source} is no data directory of Harebell: it has no {NAME}")
    count = stores_of(source)
    if count > 1:
        raise StoreError(
            f"{source} has {count} stores: make it one with `harebell store join {source}` first"
        )
    database = Database(url, schema, _LEASE_MS, COPIER, "fsync")
    tables = Tables(schema)
    lock = DirectoryLock(source)
    try:
        image = _image_of(source)
        with _speaking(database), database.connect() as connection, connection.transaction():
            tables.make(connection)
            seen = read_store(connection, tables)
            if seen.epoch or seen.beat:
                raise StoreError(
                    f"the schema '{schema}' has a store already: name another one with --schema"
                )
            done = _append_all(connection, tables, source, image)
            _check_rows(connection, tables, source, image)
        return done
    finally:
        lock.release()


def into_directory(url: str, schema: str, target: Path) -> Copied:
    """Copy a store in PostgreSQL into a directory that is empty or does not exist.

    Raises:
        OSError: the directory cannot be written.
        StoreError: a broker uses the store, there is none, or the copy differs.
    """
    target = target.absolute()
    if target.exists() and any(target.iterdir()):
        raise StoreError(f"{target} is not empty: name a directory that does not exist yet")
    database = Database(url, schema, _LEASE_MS, COPIER, "fsync")
    tables = Tables(schema)
    draft = target.with_name(f"{target.name}.copying")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700, parents=True)
    with _speaking(database), database.connect() as connection:
        ownership = _claimed(connection, tables, database)
        try:
            damaged, reader = _read_into(connection, tables, draft)
            done = _check_files(draft, reader)
            _sync(draft)
            done = done._replace(elsewhere=_elsewhere(connection, database), damaged=tuple(damaged))
            if not ownership.holds():
                raise StoreError(f"the store was claimed during the copy: {ownership.lost}")
        finally:
            ownership.end(release=True)
    os.rename(draft, target)
    sync_path(target.parent)
    return done


def look_into(url: str, schema: str, target: Path) -> tuple[str, list[str]]:
    """Read a store in PostgreSQL, as it is at one commit, into an empty directory.

    Nothing is changed or claimed there, so a broker may go on meanwhile.

    Returns:
        Where the store is, for people, and what is wrong with rows of its log.

    Raises:
        OSError: the directory cannot be written.
        StoreError: there is no store, or the server refuses.
    """
    database = Database(url, schema, _LEASE_MS, COPIER, "fsync")
    tables = Tables(schema)
    with _speaking(database), database.connect() as connection:
        _check_exists(connection, schema)
        damaged, _ = _read_into(connection, tables, target)
    if not (target / NAME).is_file():
        raise StoreError("the store is empty: no broker has ever owned it")
    return database.shown, damaged


def _read_into(
    connection: Connection[Any], tables: Tables, target: Path
) -> tuple[list[str], LogReader]:
    """Replay the log into a directory; return what is wrong with its rows, and the reader."""
    replica = Replica(str(target), OsFiles(str(target)))
    damaged: list[str] = []
    reader = LogReader(tables, replica, lambda row: damaged.append(row.text))
    try:
        reader.follow(connection)
    finally:
        replica.close()
    return damaged, reader


def _check_exists(connection: Connection[Any], schema: str) -> None:
    """Check that a schema has a store.

    Raises:
        StoreError: it has none.
    """
    exists = connection.execute("SELECT to_regclass(%s)", (f'"{schema}".store',)).fetchone()
    if exists is None or exists[0] is None:
        raise StoreError(f"there is no store in the schema '{schema}'")


def _elsewhere(connection: Connection[Any], database: Database) -> tuple[str, ...]:
    """Return the schemas of other stores that have vhosts, if this one is store 1."""
    schema = database.schema
    if not is_first(connection, schema):
        return ()
    vhosts = ClusterTables(database, schema, FIRST_STORE).vhosts(connection)
    return tuple(schema_of(schema, each) for each in sorted(set(vhosts.values()) - {FIRST_STORE}))


@contextlib.contextmanager
def _speaking(database: Database) -> Iterator[None]:
    """Turn errors of the driver into sentences."""
    try:
        yield
    except driver().Error as error:
        raise StoreError(database.reason(error)) from None


def _image_of(source: Path) -> bytes:
    """Return the definitions of a directory that was closed in good order.

    Raises:
        StoreError: it was not, or they are damaged.
    """
    definitions = read_definitions(
        str(source), OsFiles(str(source), looking=True), encode_table, decoded_table
    )
    try:
        if not definitions.was_clean:
            raise StoreError(
                f"the broker on {source} was not stopped in good order: start it and stop it once"
            )
        return definitions.image()
    finally:
        definitions.detach()


def _logs_of(root: Path) -> list[str]:
    """Return the paths of the files that last, in order."""
    paths = [path for name in _DIRECTORIES for path in (root / name).rglob("*")]
    names = [path.relative_to(root).as_posix() for path in paths if path.is_file()]
    return sorted(name for name in names if not is_index(name))


def _append_all(connection: Connection[Any], tables: Tables, source: Path, image: bytes) -> Copied:
    """Append a whole directory as the rows of a log."""
    epoch = 1
    number, generation, stored = 0, 1, 0
    compressor = RowCompressor()

    def append(change: Change) -> None:
        nonlocal number, generation, stored
        number += 1
        content = compressor.compress(encode([change]))
        connection.execute(
            tables.statement(
                "INSERT INTO {log} (number, epoch, content) VALUES (%s, %s, %b)", generation
            ),
            (number, epoch, content),
        )
        stored += len(content)
        if stored >= GENERATION_BYTES and change.kind != END:
            tables.make_log(connection, generation + 1)
            append(Change(END))
            generation, stored = generation + 1, 0

    append(Change(SNAPSHOT, 0, "", image))
    files = byte_count = 0
    for path in _logs_of(source):
        files += 1
        offset = 0
        with (source / path).open("rb") as file:
            while data := file.read(_ROW_BYTES):
                append(Change(WRITE, offset, path, data))
                offset += len(data)
        byte_count += offset
    connection.execute(
        tables.statement("UPDATE {store} SET epoch = %s, owner = %s, released = true"),
        (epoch, COPIER),
    )
    return Copied(files, byte_count)


def _check_rows(connection: Connection[Any], tables: Tables, source: Path, image: bytes) -> None:
    """Compare the rows with the directory by checksums.

    Raises:
        StoreError: they differ.
    """
    sums: dict[str, Any] = {}
    for generation in tables.generations(connection):
        statement = tables.statement("SELECT number FROM {log} ORDER BY number", generation)
        one = tables.statement("SELECT content FROM {log} WHERE number = %s", generation)
        for (number,) in connection.execute(statement).fetchall():
            row = connection.execute(one, (number,), binary=True).fetchone()
            assert row is not None
            where = f"row {number} of the log"
            for change in decode(plain(row[0], where), where):
                if change.kind == SNAPSHOT and bytes(change.data) != image:
                    raise StoreError("the definitions in PostgreSQL are not those of the directory")
                if change.kind == WRITE:
                    sums.setdefault(change.name, hashlib.sha256()).update(change.data)
    expected = {path: _sum_of(source / path) for path in _logs_of(source)}
    digests = {path: each.hexdigest() for path, each in sums.items()}
    empty = hashlib.sha256().hexdigest()
    differing = [path for path, each in expected.items() if digests.get(path, empty) != each]
    if differing or digests.keys() - expected.keys():
        raise StoreError(f"the copy differs from {source}: {', '.join(differing[:3])}")


def _sum_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _claimed(connection: Connection[Any], tables: Tables, database: Database) -> Ownership:
    """Claim a store that no broker owns.

    Raises:
        StoreError: there is no store, or a broker owns it.
    """
    _check_exists(connection, tables.schema)
    watch = LeaseWatch(COPIER)
    first = seen = read_store(connection, tables)
    while not watch.may_claim(seen, now()):
        if seen.beat != first.beat or seen.epoch != first.epoch:
            raise StoreError(f"the broker '{seen.owner}' owns the store: stop it first")
        time.sleep(_LOOK_SECONDS)
        seen = read_store(connection, tables)
    began = now()
    epoch = claim(connection, tables, seen, database)
    if epoch is None:
        raise StoreError("a broker has claimed the store just now: stop it first")
    report: Callable[[str, str], None] = lambda _level, _line: None  # noqa: E731
    return Ownership(database, tables, epoch, began, __version__, report)


def _check_files(root: Path, reader: LogReader) -> Copied:
    """Compare the files with what the log says of them.

    Raises:
        StoreError: they differ.
    """
    if not (root / NAME).is_file():
        raise StoreError("the store is empty: no broker has ever owned it")
    sizes = {path: (root / path).stat().st_size for path in _logs_of(root)}
    expected = reader.pieces.sizes
    differing = [
        path for path in sizes.keys() | expected.keys() if sizes.get(path) != expected.get(path)
    ]
    if differing:
        raise StoreError(f"the copy differs from the log: {', '.join(sorted(differing)[:3])}")
    return Copied(len(sizes), sum(sizes.values()))


def _sync(root: Path) -> None:
    for path in sorted(root.rglob("*"), reverse=True):
        if path.is_dir() or (path.is_file() and path.name != LOCK):
            sync_path(path)
    sync_path(root)
