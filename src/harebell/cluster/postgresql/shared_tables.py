r"""The tables that the stores of a cluster share; they are in the schema of store 1.

    cluster    one row: the secret, the users, and a version that grows with each change
    vhost      which store each vhost lives in; its name with \0 for NUL, which PostgreSQL refuses,
               and \\ for \

An owner that has taken over a version writes it to `cluster_version` of its own row in `store`. So
a command that changes something can wait until all owners know it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from psycopg import Error, errors, sql

from harebell.base.errors import StoreError
from harebell.cluster.shared import OwnerRow
from harebell.cluster.stores import FIRST_STORE, RUNNING, schema_of

if TYPE_CHECKING:
    from psycopg import Connection

    from harebell.cluster.postgresql.database import Database

_MS = 1_000
_LOCK = 0x4842_434C
"""The advisory lock of those who create these tables, "HBCL"."""
_CLUSTER = """
CREATE TABLE IF NOT EXISTS {schema}.cluster (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    secret text NOT NULL DEFAULT gen_random_uuid()::text || gen_random_uuid()::text,
    version bigint NOT NULL DEFAULT 0,
    users text NOT NULL DEFAULT ''
) WITH (fillfactor = 10)
"""
_VHOST = """
CREATE TABLE IF NOT EXISTS {schema}.vhost (
    name text PRIMARY KEY,
    store integer NOT NULL
)
"""


class ClusterTables:
    """Statements for the shared tables; has the methods of `harebell.cluster.shared.Shared`.

    Args:
        database: where a store of the cluster is.
        base: the schema of store 1.
        stores: how many stores there are.

    Attributes:
        stores: as given.
        patience: the seconds of a lease.
        errors: what is raised when the server is away, or refuses.
    """

    errors: type[Exception] = Error

    def __init__(self, database: Database, base: str, stores: int) -> None:
        self.stores = stores
        self.patience = database.lease_ms / _MS
        self._database = database
        self._base = base
        self._numbers = range(FIRST_STORE, FIRST_STORE + stores)
        self.channel = f"{base}_cluster"
        parts = sql.SQL(" UNION ALL ").join(
            sql.SQL(
                "SELECT {number}::integer, epoch, owner, addresses, cluster_version, load,"
                " released FROM {store}"
            ).format(number=sql.Literal(number), store=self._store(number))
            for number in self._numbers
        )
        self._owners = parts

    def _store(self, number: int) -> sql.Identifier:
        return sql.Identifier(schema_of(self._base, number), "store")

    def _shared(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(
            cluster=sql.Identifier(self._base, "cluster"),
            vhost=sql.Identifier(self._base, "vhost"),
            store=self._store(FIRST_STORE),
        )

    def connect(self) -> Connection[Any]:
        """Return a connection, which the end of a block closes.

        Raises:
            psycopg.Error: the server is away or refuses the login.
            StoreError: it cannot be used.
        """
        return self._database.connect()

    def reason(self, error: Exception) -> str:
        """Return why the server cannot be used, for people."""
        return self._database.reason(error)

    def wait(self, connection: Connection[Any], seconds: float) -> None:
        """Wait until something changes, at most so many seconds."""
        for _ in connection.notifies(timeout=seconds, stop_after=1):
            break

    def prepare(self, connection: Connection[Any]) -> None:
        """Create what is missing, and listen for changes.

        Raises:
            psycopg.Error: the server refuses, or store 1 was not made yet.
        """
        self.make(connection)
        connection.execute(f'LISTEN "{self.channel}"')

    def make(self, connection: Connection[Any]) -> None:
        """Create what is missing; the schema of store 1 has to be there.

        Raises:
            psycopg.Error: the server refuses, or store 1 was not made yet.
        """
        schema = sql.Identifier(self._base)
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            connection.execute(sql.SQL(_CLUSTER).format(schema=schema))
            connection.execute(sql.SQL(_VHOST).format(schema=schema))
            connection.execute(
                self._shared("INSERT INTO {cluster} DEFAULT VALUES ON CONFLICT DO NOTHING")
            )

    def secret(self, connection: Connection[Any]) -> bytes:
        """Return what the brokers of the cluster know each other by."""
        row = connection.execute(self._shared("SELECT secret FROM {cluster}")).fetchone()
        assert row is not None, "make() has inserted it"
        return str(row[0]).encode()

    def version(self, connection: Connection[Any]) -> int:
        """Return the version of the shared tables."""
        row = connection.execute(self._shared("SELECT version FROM {cluster}")).fetchone()
        return 0 if row is None else int(row[0])

    def service(self, _connection: Connection[Any]) -> str:
        """Return RUNNING: brokers on several machines are not suspended together."""
        return RUNNING

    def write_service(self, _connection: Connection[Any], state: str) -> None:
        """Refuse to change it: see `service`."""
        raise StoreError(f"brokers of several machines are not {state} together")

    def owners(self, connection: Connection[Any]) -> dict[int, OwnerRow]:
        """Return the owners of the stores that were ever made, by number.

        Stores without an owner now are left out.
        """
        try:
            rows = connection.execute(self._owners).fetchall()
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return {}
        return {
            number: OwnerRow(epoch, owner, json.loads(addresses), version, load)
            for number, epoch, owner, addresses, version, load, released in rows
            if not released
        }

    def owner_beyond(self, connection: Connection[Any]) -> tuple[str, int] | None:
        """Return the owner of the store after the last one, and its beat; None if it has none."""
        schema = schema_of(self._base, self._numbers.stop)
        # Asking for a table that is not there would be an error in the log of the server.
        table = connection.execute("SELECT to_regclass(%s)", (f"{schema}.store",)).fetchone()
        if table is None or table[0] is None:
            return None
        row = connection.execute(
            sql.SQL("SELECT owner, beat FROM {} WHERE NOT released").format(
                self._store(self._numbers.stop)
            )
        ).fetchone()
        return None if row is None else (str(row[0]), int(row[1]))

    def vhosts(self, connection: Connection[Any]) -> dict[str, int]:
        """Return the stores of all vhosts."""
        rows = connection.execute(self._shared("SELECT name, store FROM {vhost}")).fetchall()
        return {_name_of(written): store for written, store in rows}

    def users(self, connection: Connection[Any]) -> str:
        """Return the users, as the owner of store 1 has written them."""
        row = connection.execute(self._shared("SELECT users FROM {cluster}")).fetchone()
        return "" if row is None else str(row[0])

    def place(self, connection: Connection[Any], vhost: str, store: int) -> int:
        """Write down where a vhost lives, unless that is known.

        Returns:
            The number of its store.
        """
        with connection.transaction():
            connection.execute(
                self._shared(
                    "INSERT INTO {vhost} (name, store) VALUES (%s, %s) ON CONFLICT DO NOTHING"
                ),
                (_written(vhost), store),
            )
            row = connection.execute(
                self._shared("SELECT store FROM {vhost} WHERE name = %s"), (_written(vhost),)
            ).fetchone()
            self._changed(connection)
        return store if row is None else int(row[0])

    def register(self, connection: Connection[Any], store: int, present: set[str]) -> None:
        """Write down which vhosts a store has: those that are present, and no others."""
        with connection.transaction():
            written = {name for name, number in self.vhosts(connection).items() if number == store}
            gone = [_written(name) for name in sorted(written - present)]
            if gone:
                connection.execute(
                    self._shared("DELETE FROM {vhost} WHERE store = %s AND name = ANY(%s)"),
                    (store, gone),
                )
            for name in sorted(present - written):
                connection.execute(
                    self._shared(
                        "INSERT INTO {vhost} (name, store) VALUES (%s, %s) ON CONFLICT DO NOTHING"
                    ),
                    (_written(name), store),
                )
            if present != written:
                self._changed(connection)

    def forget(self, connection: Connection[Any], vhost: str) -> None:
        """Remove a vhost that was deleted."""
        with connection.transaction():
            connection.execute(
                self._shared("DELETE FROM {vhost} WHERE name = %s"), (_written(vhost),)
            )
            self._changed(connection)

    def write_users(self, connection: Connection[Any], users: str, epoch: int) -> bool:
        """Replace the users; False if store 1 has another owner now.

        Args:
            connection: to the database.
            users: all of them.
            epoch: of the owner of store 1 that writes.
        """
        with connection.transaction():
            # The epoch in the statement: an owner that has lost store 1 overwrites nothing.
            cursor = connection.execute(
                self._shared(
                    "UPDATE {cluster} SET users = %s"
                    " WHERE EXISTS (SELECT FROM {store} WHERE epoch = %s)"
                ),
                (users, epoch),
            )
            if cursor.rowcount != 1:
                return False
            self._changed(connection)
        return True

    def acknowledge(
        self, connection: Connection[Any], store: int, epoch: int, version: int, load: float
    ) -> None:
        """Write down which version the owner of a store has taken over, and its load."""
        connection.execute(
            sql.SQL("UPDATE {} SET cluster_version = %s, load = %s WHERE epoch = %s").format(
                self._store(store)
            ),
            (version, load, epoch),
        )

    def _changed(self, connection: Connection[Any]) -> None:
        connection.execute(self._shared("UPDATE {cluster} SET version = version + 1"))
        connection.execute("SELECT pg_notify(%s, '')", (self.channel,))


def _written(vhost: str) -> str:
    """Return the name of a vhost as the table has it."""
    return vhost.replace("\\", r"\\").replace("\0", r"\0")


def _name_of(written: str) -> str:
    """Return the name of a vhost from the table."""
    return "\\".join(part.replace(r"\0", "\0") for part in written.split(r"\\"))
