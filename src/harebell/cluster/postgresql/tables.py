"""The tables of a store: who owns it, who runs, and the generations of its log.

    store                one row: the owner, its epoch, and the beat of its lease
        one, identity, format, epoch, owner, addresses (JSON), beat, released, drained, successor,
        lease_ms, cluster_version, load
    node                 one row per broker that runs
        name, address, state, version, beat, number (of the last row of the log that it has read)
    log_<ten digits>     a generation of the log; rows are inserted and never changed
        number, epoch, content (`store/journal/changes.py`)

A generation of the log is removed as a table, so that no row of a message is ever updated or
deleted, and autovacuum has nothing to do there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg import sql

from harebell.base.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

FORMAT = 1
_LOCK = 0x4842_5354
"""The advisory lock of those who create tables, "HBST"."""
_DIGITS = 10

_STORE = """
CREATE TABLE IF NOT EXISTS {schema}.store (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    identity text NOT NULL DEFAULT gen_random_uuid()::text,
    format integer NOT NULL,
    epoch bigint NOT NULL DEFAULT 0,
    owner text NOT NULL DEFAULT '',
    addresses text NOT NULL DEFAULT '{{}}',
    beat bigint NOT NULL DEFAULT 0,
    released boolean NOT NULL DEFAULT true,
    drained boolean NOT NULL DEFAULT false,
    successor text NOT NULL DEFAULT '',
    lease_ms integer NOT NULL DEFAULT 0
) WITH (fillfactor = 10)
"""
_LATER_COLUMNS = (
    *(("store", "cluster_version", "bigint"), ("store", "load", "real")),
    ("node", "number", "bigint"),
)
"""Columns of tables that earlier versions lack; see `shared_tables.py` and `standby_lag.py`."""
_NODE = """
CREATE TABLE IF NOT EXISTS {schema}.node (
    name text PRIMARY KEY,
    address text NOT NULL,
    state text NOT NULL,
    version text NOT NULL,
    beat bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 10)
"""
_LOG = """
CREATE TABLE IF NOT EXISTS {table} (
    number bigint PRIMARY KEY,
    epoch bigint NOT NULL,
    content bytea NOT NULL
) WITH (autovacuum_enabled = off, toast.autovacuum_enabled = off)
"""


class Tables:
    """Statements for the tables of a schema.

    Args:
        schema: the name of the schema.
    """

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def log(self, generation: int) -> sql.Identifier:
        """Return the name of the table of a generation."""
        return sql.Identifier(self.schema, f"log_{generation:0{_DIGITS}}")

    def statement(self, text: str, generation: int = 0) -> sql.Composed:
        """Return a statement with the names of the tables: {store}, {node} and {log}."""
        return sql.SQL(text).format(
            store=sql.Identifier(self.schema, "store"),
            node=sql.Identifier(self.schema, "node"),
            log=self.log(generation),
        )

    def make(self, connection: Connection[Any]) -> None:
        """Create what is missing.

        Raises:
            psycopg.Error: the server refuses.
            StoreError: a newer version of Harebell made the tables.
        """
        schema = sql.Identifier(self.schema)
        with connection.transaction():
            # Two brokers that start at once would both find that nothing is there.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            known = connection.execute("SELECT to_regnamespace(%s)", (self.schema,)).fetchone()
            if known is None or known[0] is None:
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
            connection.execute(sql.SQL(_STORE).format(schema=schema))
            connection.execute(sql.SQL(_NODE).format(schema=schema))
            self._add_columns(connection)
            connection.execute(
                self.statement("INSERT INTO {store} (format) VALUES (%s) ON CONFLICT DO NOTHING"),
                (FORMAT,),
            )
            if not self.generations(connection):
                self.make_log(connection, 1)
        row = connection.execute(self.statement("SELECT format FROM {store}")).fetchone()
        if row is None or row[0] != FORMAT:
            stored = "none" if row is None else row[0]
            raise StoreError(
                f"the schema '{self.schema}' has format {stored}, and this version of Harebell "
                f"reads {FORMAT}: use the version that made it, or another storage_schema"
            )

    def _add_columns(self, connection: Connection[Any]) -> None:
        """Add what a store of an earlier version lacks.

        ALTER TABLE waits for the renewal of a lease, and the next renewal waits for it, so it is
        used only if there is something to add.
        """
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = %s AND table_name IN ('store', 'node')",
            (self.schema,),
        ).fetchall()
        for table, name, kind in _LATER_COLUMNS:
            if (table, name) not in rows:
                added = sql.SQL("ALTER TABLE {} ADD COLUMN {} {} NOT NULL DEFAULT 0").format(
                    sql.Identifier(self.schema, table), sql.Identifier(name), sql.SQL(kind)
                )
                connection.execute(added)

    def make_log(self, connection: Connection[Any], generation: int) -> None:
        """Create the table of a generation, unless it is there."""
        table = self.log(generation)
        connection.execute(sql.SQL(_LOG).format(table=table))
        # PostgreSQL 14 and 15 take the storage of a column in ALTER TABLE only.
        connection.execute(
            sql.SQL("ALTER TABLE {} ALTER COLUMN content SET STORAGE EXTERNAL").format(table)
        )

    def drop_log(self, connection: Connection[Any], generation: int) -> None:
        """Remove a generation."""
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(self.log(generation)))

    def generations(self, connection: Connection[Any]) -> list[int]:
        """Return the generations that are there, in order."""
        rows = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s AND tablename ~ '^log_[0-9]+$'"
            " ORDER BY tablename",
            (self.schema,),
        ).fetchall()
        return [int(name.removeprefix("log_")) for (name,) in rows]


def is_first(connection: Connection[Any], schema: str) -> bool:
    """True if a schema has the tables that the stores of a cluster share: it is store 1."""
    return _has(connection, schema, "cluster")


def is_later(connection: Connection[Any], schema: str) -> bool:
    """True if a schema has a store that was claimed, and not those tables."""
    if is_first(connection, schema) or not _has(connection, schema, "store"):
        return False
    store = sql.Identifier(schema, "store")
    return connection.execute(sql.SQL("SELECT FROM {} WHERE epoch > 0").format(store)).rowcount > 0


def _has(connection: Connection[Any], schema: str, table: str) -> bool:
    rows = connection.execute(
        "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s", (schema, table)
    )
    return rows.rowcount > 0
