"""Connections to the PostgreSQL server of a store, and sentences about what is wrong with one."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.errors import StoreError
from harebell.cluster.limits import KEEPALIVES_MAX
from harebell.cluster.postgresql.host_order import HostOrder, parameters_of

if TYPE_CHECKING:
    from psycopg import Connection

_OLDEST = 140_000
_ENCODINGS = ("UTF8", "SQL_ASCII")
"""Encodings of a database that keep every text: the second one keeps any bytes."""
_MS = 1_000
_WEAKER = ("interval", "os")
"""Durabilities of a data directory alone."""
_SETTINGS = (
    "SELECT set_config(name, value, false) FROM (VALUES"
    # A commit that a timeout cancels would only be made again.
    " ('statement_timeout', '0'), ('lock_timeout', '0'), ('transaction_timeout', '0'),"
    " ('idle_in_transaction_session_timeout', '0'), ('idle_session_timeout', '0'),"
    # Statements of two connections on one row wait for each other, and do not fail.
    " ('default_transaction_isolation', 'read committed'),"
    # What was checked stays so when the configuration of the server is read again.
    " ('synchronous_commit', current_setting('synchronous_commit')),"
    " ('client_min_messages', 'warning')"
    # PostgreSQL 14 has no transaction_timeout.
    ") AS wanted (name, value) WHERE current_setting(name, true) IS NOT NULL"
)
"""Sets what is set for the role, the database or the server, and would get in the way."""
_POOLED_TRIES = 3
_WAITS = ("on", "remote_apply")
"""Values of `synchronous_commit` with which a commit waits for the disk of a standby."""
_BY_SESSION = (
    "a pooler in between gives its sessions to transactions or statements: set pool_mode = session "
    "for this database in PgBouncer, or connect to the server itself"
)
_HINTS = {
    "session is read-only": "it is a standby, or default_transaction_read_only is on: name the"
    " hosts of all servers in storage",
    "pooling mode": _BY_SESSION,
}
"""What to do about what a server says."""


class Database:
    """Where a store is.

    Args:
        url: a connection string of libpq.
        schema: the schema with the tables of the store.
        lease_ms: the milliseconds of a lease; no connection hangs longer.
        node: the name of this broker.
        durability: what a commit has to guarantee, "fsync" or "replicated".

    Attributes:
        url: as given.
        schema: as given.
        lease_ms: as given.
        node: as given.
        durability: as given.
    """

    def __init__(self, url: str, schema: str, lease_ms: int, node: str, durability: str) -> None:
        self.url = url
        self.schema = schema
        self.lease_ms = lease_ms
        self.node = node
        self.durability = durability
        self._order = HostOrder()

    def connect(self) -> Connection[Any]:
        """Return a connection that commits each statement.

        The server is checked each time, because after a fail-over it is another one.

        Raises:
            psycopg.Error: the server is away or refuses the login.
            StoreError: the driver is not installed, the URL is wrong, or a commit guarantees less
                than it has to.
        """
        psycopg = driver()
        try:
            hosts = self._order.of({**_defaults(), **psycopg.conninfo.conninfo_to_dict(self.url)})
            # A host that does not answer must not keep a connection from the next one for long.
            seconds = max(2, self.lease_ms // _MS // len(hosts))
            connection: Connection[Any] = psycopg.connect(
                self.url,
                **(parameters_of(hosts) if len(hosts) > 1 else {}),
                autocommit=True,
                prepare_threshold=2,
                # Else that of the server, which would be bytes with SQL_ASCII.
                client_encoding="utf8",
                application_name=f"harebell {self.node}"[:63],
                connect_timeout=seconds,
                target_session_attrs="read-write",
                keepalives_idle=1,
                keepalives_interval=1,
                keepalives_count=min(max(2, self.lease_ms // _MS), KEEPALIVES_MAX),
                tcp_user_timeout=self.lease_ms,
            )
        except psycopg.ProgrammingError as error:
            raise StoreError(
                f"storage is no URL of PostgreSQL: {_masked(error)}; special characters in it are "
                "written as %40 and so on"
            ) from None
        try:
            _set(connection, seconds)
            commit_guarantee(connection, self.durability)
            self._order.took(connection, hosts)
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def shown(self) -> str:
        """Return the place without a password, for people."""
        psycopg = driver()
        try:
            parts: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.ProgrammingError:
            return "PostgreSQL"
        if parts.get("service") and not parts.get("host"):
            return f"PostgreSQL of the service '{parts['service']}'"
        parts = {**_defaults(), **parts}
        host = parts.get("host") or parts.get("hostaddr") or "localhost"
        name = parts.get("dbname") or parts.get("user") or ""
        return f"PostgreSQL at {host}:{parts.get('port') or 5432}, database '{name}'"

    def check_pooling(self, connection: Connection[Any]) -> None:
        """Check that a connection has a session of the server for itself.

        A pooler that gives sessions to transactions would mix up prepared statements and settings.

        Args:
            connection: to the database.

        Raises:
            psycopg.Error: the server is away or refuses.
            StoreError: the session is given to other connections, too.
        """
        backend = _backend(connection)
        if backend == connection.info.backend_pid:
            return
        for _ in range(_POOLED_TRIES):
            with self.connect() as other, other.transaction():
                pooled = _backend(other) == backend
            if pooled:
                raise StoreError(f"{self.shown}: {_BY_SESSION}")
            backend = _backend(connection)

    def reason(self, error: Exception) -> str:
        """Return a sentence for the user about an error of the driver."""
        psycopg = driver()
        text = _one_line(error)
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return f"{self.shown}: {text}; {_needed(self.schema)}"
        hints = [hint for said, hint in _HINTS.items() if said in text]
        return "; ".join([f"{self.shown}: {text}", *hints])


def driver() -> Any:
    """Return the module of the driver.

    Raises:
        StoreError: it is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise StoreError(
            f"storage in PostgreSQL needs a driver ({error}): pip install 'harebell[postgresql]'"
        ) from None
    return psycopg


def check_durability(durability: str) -> None:
    """Check that a durability makes sense for PostgreSQL.

    Raises:
        StoreError: it does not.
    """
    if durability in _WEAKER:
        raise StoreError(
            f"durability is '{durability}', and a commit in PostgreSQL is always durable: leave it "
            "out, or set it to replicated"
        )


def missing_right(connection: Connection[Any], schema: str) -> str:
    """Return what the role of a connection needs for a schema that is there or not; "" if nothing.

    Args:
        connection: to the database.
        schema: with the tables of the store.
    """
    rights = connection.execute(
        "SELECT oid FROM pg_namespace WHERE nspname = %s", (schema,)
    ).fetchone()
    if rights is None:
        row = connection.execute(
            "SELECT has_database_privilege(current_database(), 'CREATE')"
        ).fetchone()
    else:
        row = connection.execute(
            "SELECT has_schema_privilege(%s::oid, 'USAGE') AND has_schema_privilege(%s::oid,"
            " 'CREATE') AND NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = %s AND NOT"
            " pg_has_role(tableowner, 'USAGE'))",
            (rights[0], rights[0], schema),
        ).fetchone()
    return "" if row is not None and row[0] else _needed(schema)


def _set(connection: Connection[Any], seconds: float) -> None:
    """Set what must not be as the role, the database or the server have it.

    A timeout of statements that is set there holds for this one, too. It may be shorter than a
    busy server takes.

    Args:
        connection: to the database, without settings yet.
        seconds: how long this may be tried.
    """
    cancelled = driver().errors.QueryCanceled
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute(_SETTINGS)
            # A timeout that runs out while the settings end cancels the statement after them.
            connection.execute("SELECT")
            return
        except cancelled:
            if time.monotonic() > until:
                raise


def _backend(connection: Connection[Any]) -> int:
    """Return the process of the server that has the session of a connection now."""
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None, "a SELECT without FROM has one row"
    return int(row[0])


def _defaults() -> dict[str, str]:
    """Return what libpq takes from the environment where a URL says nothing."""
    psycopg = driver()
    try:
        options = psycopg.pq.Conninfo.get_defaults()
    except psycopg.Error:
        return {}
    wanted = ("host", "hostaddr", "port", "dbname", "user")
    return {
        each.keyword.decode(): each.val.decode()
        for each in options
        if each.val is not None and each.keyword.decode() in wanted
    }


def _needed(schema: str) -> str:
    return f"the role needs CREATE on the database, or a schema '{schema}' that it owns"


def commit_guarantee(connection: Connection[Any], durability: str) -> str:
    """Return what a confirm guarantees with this server, in a sentence.

    Args:
        connection: to the database.
        durability: "fsync" or "replicated".

    Raises:
        StoreError: a commit guarantees less than `durability` promises, or the server or the
            database cannot be used.
    """
    _check_server(connection)
    fsync, commit, standbys = _settings_of_commits(connection)
    if fsync != "on":
        raise StoreError(
            "the server runs with fsync = off, so a crash of its machine loses everything: set "
            "fsync = on"
        )
    if commit == "off":
        raise StoreError(
            "synchronous_commit is off for this role, so a confirm would not mean that a message "
            "is on disk: set it to on (ALTER ROLE ... SET synchronous_commit = on)"
        )
    replicated = bool(standbys) and commit in _WAITS
    if durability == "replicated" and not replicated:
        why = (
            f"synchronous_commit is '{commit}', which does not wait for the disk of a standby"
            if standbys
            else "synchronous_standby_names is empty"
        )
        raise StoreError(
            f"durability is 'replicated', and the server does not wait for a standby: {why}"
        )
    if replicated:
        return f"a confirm means committed on this server and on its standbys: {standbys}"
    return (
        "a confirm means committed and synced on this server alone: when its disk is lost, "
        "confirmed messages are lost (no synchronous standby)"
    )


def _check_server(connection: Connection[Any]) -> None:
    """Check that the version of a server and the encoding of its database can be used.

    Raises:
        StoreError: one of them cannot.
    """
    if connection.info.server_version < _OLDEST:
        raise StoreError(
            f"the server is PostgreSQL {connection.info.parameter_status('server_version')}, and "
            "Harebell needs 14 or newer"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in _ENCODINGS:
        raise StoreError(
            f"the database has the encoding {encoding}, which lacks characters of names of users "
            "and vhosts: create another one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE "
            "template0"
        )


def _settings_of_commits(connection: Connection[Any]) -> list[str]:
    row = connection.execute(
        "SELECT current_setting('fsync'), current_setting('synchronous_commit'),"
        " current_setting('synchronous_standby_names')"
    ).fetchone()
    assert row is not None, "a SELECT without FROM has one row"
    return [str(each).strip() for each in row]


def _masked(error: Exception) -> str:
    """Return the error without the quoted part of the URL, which may be a password."""
    return re.sub(r'"[^"]*"|(?<=: ")[^"]*$', '"..."', _one_line(error))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
