"""Connections to the PostgreSQL server of a store, and sentences about what is wrong with one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.base.errors import StoreError

if TYPE_CHECKING:
    from psycopg import Connection

_OLDEST = 140_000
_ENCODINGS = ("UTF8", "SQL_ASCII")
"""Encodings of a database that keep every text: the second one keeps any bytes."""
_MS = 1_000
_WEAKER = ("interval", "os")
"""Durabilities of a data directory alone."""
_WAITS = ("on", "remote_apply")
"""Values of `synchronous_commit` with which a commit waits for the disk of a standby."""


class Database(NamedTuple):
    """Where a store is.

    Args:
        url: a connection string of libpq.
        schema: the schema with the tables of the store.
        lease_ms: the milliseconds of a lease; no connection hangs longer.
        node: the name of this broker.
        durability: what a commit has to guarantee, "fsync" or "replicated".
    """

    url: str
    schema: str
    lease_ms: int
    node: str
    durability: str

    def connect(self) -> Connection[Any]:
        """Return a connection that commits each statement.

        The server is checked each time, because after a fail-over it is another one.

        Raises:
            psycopg.Error: the server is away or refuses the login.
            StoreError: the driver is not installed, the URL is wrong, or a commit guarantees less
                than it has to.
        """
        psycopg = driver()
        seconds = max(2, self.lease_ms // _MS)
        try:
            found: Connection[Any] = psycopg.connect(
                self.url,
                autocommit=True,
                prepare_threshold=2,
                # Else that of the server, which would be bytes with SQL_ASCII.
                client_encoding="utf8",
                application_name=f"harebell {self.node}"[:63],
                connect_timeout=seconds,
                target_session_attrs="read-write",
                keepalives_idle=1,
                keepalives_interval=1,
                keepalives_count=seconds,
                tcp_user_timeout=self.lease_ms,
            )
        except psycopg.ProgrammingError as error:
            raise StoreError(f"storage is no URL of PostgreSQL: {_masked(error)}") from None
        try:
            # A commit that a timeout cancels would only be made again.
            found.execute("SET statement_timeout = 0")
            found.execute("SET idle_in_transaction_session_timeout = 0")
            found.execute("SET client_min_messages = warning")
            commit_guarantee(found, self.durability)
        except BaseException:
            found.close()
            raise
        return found

    @property
    def shown(self) -> str:
        """Return the place without a password, for people."""
        psycopg = driver()
        try:
            parts: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(self.url)
        except psycopg.ProgrammingError:
            return "PostgreSQL"
        host = parts.get("host") or "localhost"
        name = parts.get("dbname") or parts.get("user") or ""
        return f"PostgreSQL at {host}:{parts.get('port') or 5432}, database '{name}'"

    def reason(self, error: Exception) -> str:
        """Return a sentence for the user about an error of the driver."""
        psycopg = driver()
        text = _one_line(error)
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return f"{self.shown}: {text}; {_needed(self.schema)}"
        return f"{self.shown}: {text}"


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


def missing_right(link: Connection[Any], schema: str) -> str:
    """Return what the role of a connection needs for a schema that is there or not; "" if nothing.

    Args:
        link: a connection.
        schema: with the tables of the store.
    """
    found = link.execute("SELECT oid FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone()
    if found is None:
        row = link.execute("SELECT has_database_privilege(current_database(), 'CREATE')").fetchone()
    else:
        row = link.execute(
            "SELECT has_schema_privilege(%s::oid, 'USAGE') AND has_schema_privilege(%s::oid,"
            " 'CREATE') AND NOT EXISTS (SELECT FROM pg_tables WHERE schemaname = %s AND NOT"
            " pg_has_role(tableowner, 'USAGE'))",
            (found[0], found[0], schema),
        ).fetchone()
    return "" if row is not None and row[0] else _needed(schema)


def _needed(schema: str) -> str:
    return f"the role needs CREATE on the database, or a schema '{schema}' that it owns"


def commit_guarantee(link: Connection[Any], durability: str) -> str:
    """Return what a confirm guarantees with this server, in a sentence.

    Args:
        link: a connection.
        durability: "fsync" or "replicated".

    Raises:
        StoreError: a commit guarantees less than `durability` promises, or the server or the
            database cannot be used.
    """
    _check_server(link)
    found = {
        name: str(_value(link, name))
        for name in ("fsync", "synchronous_commit", "synchronous_standby_names")
    }
    standbys = found["synchronous_standby_names"].strip()
    commit = found["synchronous_commit"]
    if found["fsync"] != "on":
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


def _check_server(link: Connection[Any]) -> None:
    """Check that the version of a server and the encoding of its database can be used.

    Raises:
        StoreError: one of them cannot.
    """
    if link.info.server_version < _OLDEST:
        raise StoreError(
            f"the server is PostgreSQL {link.info.parameter_status('server_version')}, and "
            "Harebell needs 14 or newer"
        )
    encoding = link.info.parameter_status("server_encoding")
    if encoding not in _ENCODINGS:
        raise StoreError(
            f"the database has the encoding {encoding}, which lacks characters of names of users "
            "and vhosts: create another one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE "
            "template0"
        )


def _value(link: Connection[Any], name: str) -> Any:
    row = link.execute(f"SHOW {name}").fetchone()
    return "" if row is None else row[0]


def _masked(error: Exception) -> str:
    """Return what is wrong with a URL without what is quoted of it, which may be the password."""
    return re.sub(r'"[^"]*"|(?<=: ")[^"]*$', '"..."', _one_line(error))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
