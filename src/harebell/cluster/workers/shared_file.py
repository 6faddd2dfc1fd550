r"""What the stores of a data directory share, in a file that all of its processes have open.

    cluster    one row: the secret, the users, and a version that grows with each change
    vhost      which store each vhost lives in
    store      of each store, the epoch of its owner, where that is reached, and its load
    service    one row: whether the processes accept clients

The stores have the truth: the supervisor reads at its start which vhosts they have, and store 1
writes the users. So the file need not be synced, and a damaged one is made anew. Of an earlier run
only the epochs count: the power may have gone before the last changes of the file were on disk.

A process that changes something sends a datagram to the socket of each one, which looks then.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harebell.base.errors import StoreError
from harebell.cluster.limits import (
    WORKERS_PATIENCE_SECONDS,
    WORKERS_SECRET_BYTES,
    WORKERS_USERS_LOOK_SECONDS,
)
from harebell.cluster.shared import OwnerRow
from harebell.cluster.stores import DIRECTORY, FIRST_STORE, RUNNING

NAME = "shared.sqlite"
_SOCKET = "wake-{}.sock"
_OWNER_ONLY = 0o600
_WAKE_BYTES = 1
_TABLES = (
    "CREATE TABLE IF NOT EXISTS cluster (one INTEGER PRIMARY KEY CHECK (one = 1),"
    " secret TEXT NOT NULL, version INTEGER NOT NULL, users TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS vhost (name TEXT PRIMARY KEY, store INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS store (number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL,"
    " owner TEXT NOT NULL, addresses TEXT NOT NULL, version INTEGER NOT NULL, load REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS service (state TEXT NOT NULL)",
)


class SharedFile:
    """Statements for the file; has the methods of `harebell.cluster.shared.Shared`.

    Args:
        data_dir: of store 1.
        stores: how many stores there are.
        number: the store of this process; 0 for the supervisor, which waits for no change.

    Attributes:
        stores: as given.
        patience: seconds after which an owner that does not answer is not waited for.
        errors: what is raised when the file cannot be used.
    """

    errors: type[Exception] = sqlite3.Error
    patience = WORKERS_PATIENCE_SECONDS

    def __init__(self, data_dir: Path, stores: int, number: int = 0) -> None:
        self.stores = stores
        self._directory = data_dir / DIRECTORY
        self._path = self._directory / NAME
        self._number = number
        self._wakes: socket.socket | None = None

    @contextlib.contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Return a connection that commits each statement."""
        with contextlib.closing(self._open()) as link:
            yield link

    def _open(self) -> sqlite3.Connection:
        """Return a connection; the caller closes it."""
        link = sqlite3.connect(self._path, timeout=self.patience, isolation_level=None)
        # What is lost with the power is written again by the stores.
        link.execute("PRAGMA synchronous = OFF")
        # A journal that stays needs no new space, so a broker starts on a full disk.
        link.execute("PRAGMA journal_mode = PERSIST")
        return link

    def reason(self, error: Exception) -> str:
        """Return why the file cannot be used, for people."""
        return f"{self._path}: {error}"

    # --- the supervisor ---------------------------------------------------------------------------

    def begin(self, vhosts: Mapping[str, int]) -> None:
        """Make the file if it is missing or damaged, and forget what an earlier run has written.

        Args:
            vhosts: the store of each vhost.

        Raises:
            OSError: the disk refuses.
            StoreError: the file cannot be made.
        """
        try:
            self._begin(vhosts)
        except sqlite3.OperationalError as error:
            raise StoreError(f"cannot use {self.reason(error)}") from None
        except sqlite3.DatabaseError:
            # The stores say again what it had.
            for name in (NAME, f"{NAME}-journal"):
                self._path.with_name(name).unlink(missing_ok=True)
            try:
                self._begin(vhosts)
            except sqlite3.Error as error:
                raise StoreError(f"cannot use {self.reason(error)}") from None

    def _begin(self, vhosts: Mapping[str, int]) -> None:
        # It has the secret and the hashes of passwords.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY))
        with self.connect() as link:
            if link.execute("PRAGMA quick_check").fetchone()[0] != "ok":
                raise sqlite3.DatabaseError("it is damaged")
            for statement in _TABLES:
                link.execute(statement)
            link.execute("INSERT OR IGNORE INTO cluster VALUES (1, '', 0, '')")
            # A new one for each run: an earlier one, wherever it was seen, lets no caller in.
            secret = secrets.token_hex(WORKERS_SECRET_BYTES)
            # Without users until store 1 has written them: one who was removed stays out.
            link.execute(
                "UPDATE cluster SET secret = ?, version = version + 1, users = ''", (secret,)
            )
            link.execute("DELETE FROM vhost")
            # Before any process starts: a vhost whose store is not ready would look like one that
            # does not exist, and could be made again in another store.
            link.executemany("INSERT INTO vhost VALUES (?, ?)", vhosts.items())
            link.execute("DELETE FROM store WHERE number > ?", (self.stores,))
            link.execute("UPDATE store SET addresses = '{}'")
            # A start of the broker accepts clients, whatever an operator has done before.
            link.execute("DELETE FROM service")
            link.execute("INSERT INTO service VALUES (?)", (RUNNING,))

    def ended(self, store: int) -> None:
        """Note that the process of a store has ended, in any way.

        Raises:
            sqlite3.Error: the file cannot be used.
        """
        with self.connect() as link:
            link.execute("UPDATE store SET addresses = '{}' WHERE number = ?", (store,))
        self._wake()

    # --- the owner of a store ---------------------------------------------------------------------

    def await_users(self, link: sqlite3.Connection) -> None:
        """Wait until store 1 has written the users in this run of the supervisor.

        Raises:
            sqlite3.Error: the file cannot be used.
        """
        while not self.users(link):
            time.sleep(WORKERS_USERS_LOOK_SECONDS)

    def claim(self, link: sqlite3.Connection, store: int, owner: str) -> int:
        """Note the new owner of a store, which has the lock of its directory; return its epoch."""
        row = link.execute(
            "INSERT INTO store VALUES (?, 1, ?, '{}', -1, 0.0) ON CONFLICT (number) DO UPDATE SET"
            " epoch = epoch + 1, owner = excluded.owner, addresses = '{}', version = -1"
            " RETURNING epoch",
            (store, owner),
        ).fetchone()
        return int(row[0])

    def publish(
        self, link: sqlite3.Connection, store: int, epoch: int, addresses: dict[str, str]
    ) -> None:
        """Let the other processes know where the owner of a store is reached."""
        link.execute(
            "UPDATE store SET addresses = ? WHERE number = ? AND epoch = ?",
            (json.dumps(addresses), store, epoch),
        )
        self._wake()

    # --- what all do: see `Shared` ----------------------------------------------------------------

    def prepare(self, link: sqlite3.Connection) -> None:
        """Have this process woken by changes.

        Raises:
            OSError: the socket cannot be made.
        """
        if self._wakes is not None:
            return
        path = self._socket(self._number)
        path.unlink(missing_ok=True)
        wakes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            wakes.bind(os.fspath(path))
            path.chmod(_OWNER_ONLY)
        except OSError:
            wakes.close()
            raise
        self._wakes = wakes

    def wait(self, link: sqlite3.Connection, seconds: float) -> None:
        """Wait until something changes, at most so many seconds."""
        assert self._wakes is not None, "prepare() has made it"
        if select.select([self._wakes], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    self._wakes.recv(_WAKE_BYTES)

    def secret(self, link: sqlite3.Connection) -> bytes:
        """Return what the processes know each other by."""
        return str(self._cluster(link, "secret")).encode()

    def version(self, link: sqlite3.Connection) -> int:
        """Return the version."""
        return int(self._cluster(link, "version"))

    def users(self, link: sqlite3.Connection) -> str:
        """Return the users, as the owner of store 1 has written them."""
        return str(self._cluster(link, "users"))

    def service(self, link: sqlite3.Connection) -> str:
        """Return whether the processes accept clients."""
        return str(link.execute("SELECT state FROM service").fetchone()[0])

    def write_service(self, link: sqlite3.Connection, state: str) -> None:
        """Change whether the processes accept clients."""
        with self._change(link):
            link.execute("UPDATE service SET state = ?", (state,))

    def owners(self, link: sqlite3.Connection) -> dict[int, OwnerRow]:
        """Return the owners of the stores that were ever started, by number."""
        rows = link.execute("SELECT number, epoch, owner, addresses, version, load FROM store")
        return {
            number: OwnerRow(epoch, owner, json.loads(addresses), version, load)
            for number, epoch, owner, addresses, version, load in rows.fetchall()
        }

    def owner_beyond(self, link: sqlite3.Connection) -> None:
        """Return the owner of the store after the last one: the supervisor starts none."""
        return

    def vhosts(self, link: sqlite3.Connection) -> dict[str, int]:
        """Return the stores of all vhosts."""
        return dict(link.execute("SELECT name, store FROM vhost").fetchall())

    def place(self, link: sqlite3.Connection, vhost: str, store: int) -> int:
        """Write down where a vhost lives, unless that is known; return the number of its store."""
        with self._change(link):
            link.execute("INSERT OR IGNORE INTO vhost VALUES (?, ?)", (vhost, store))
            row = link.execute("SELECT store FROM vhost WHERE name = ?", (vhost,)).fetchone()
        return int(row[0])

    def register(self, link: sqlite3.Connection, store: int, present: set[str]) -> None:
        """Write down which vhosts a store has: those that are present, and no others."""
        with self._change(link):
            of_store = {name for name, number in self.vhosts(link).items() if number == store}
            link.executemany(
                "DELETE FROM vhost WHERE name = ?", [(each,) for each in of_store - present]
            )
            link.executemany(
                "INSERT OR IGNORE INTO vhost VALUES (?, ?)", [(each, store) for each in present]
            )

    def forget(self, link: sqlite3.Connection, vhost: str) -> None:
        """Remove a vhost that was deleted."""
        with self._change(link):
            link.execute("DELETE FROM vhost WHERE name = ?", (vhost,))

    def write_users(self, link: sqlite3.Connection, users: str, epoch: int) -> bool:
        """Replace the users; False if store 1 has another owner than that of the epoch now."""
        with self._change(link):
            done = link.execute(
                "UPDATE cluster SET users = ?"
                " WHERE EXISTS (SELECT * FROM store WHERE number = ? AND epoch = ?)",
                (users, FIRST_STORE, epoch),
            )
            return done.rowcount == 1

    def acknowledge(
        self, link: sqlite3.Connection, store: int, epoch: int, version: int, load: float
    ) -> None:
        """Write down which version the owner of a store has taken over, and its load."""
        link.execute(
            "UPDATE store SET version = ?, load = ? WHERE number = ? AND epoch = ?",
            (version, load, store, epoch),
        )

    def _cluster(self, link: sqlite3.Connection, column: str) -> Any:
        return link.execute(f"SELECT {column} FROM cluster").fetchone()[0]  # noqa: S608  # from here

    @contextlib.contextmanager
    def _change(self, link: sqlite3.Connection) -> Iterator[None]:
        """Make the changes of a block as one, with a new version, and wake the processes."""
        # IMMEDIATE: a transaction that only begins to write at its end may fail there.
        link.execute("BEGIN IMMEDIATE")
        try:
            yield
            link.execute("UPDATE cluster SET version = version + 1")
        except BaseException:
            link.execute("ROLLBACK")
            raise
        link.execute("COMMIT")
        self._wake()

    def _wake(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
            for number in range(FIRST_STORE, FIRST_STORE + self.stores):
                # A process that is away, or has many of them, looks anyway before long.
                with contextlib.suppress(OSError):
                    out.sendto(b"\0", os.fspath(self._socket(number)))

    def _socket(self, number: int) -> Path:
        return self._directory / _SOCKET.format(number)
