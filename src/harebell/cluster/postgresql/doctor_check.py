"""What `harebell doctor` finds about the storage in PostgreSQL; it changes nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.errors import StoreError
from harebell.base.finding import BAD, GOOD
from harebell.cluster.postgresql.database import (
    Database,
    check_durability,
    commit_guarantee,
    driver,
    missing_right,
)
from harebell.cluster.stores import FIRST_STORE, schema_of

if TYPE_CHECKING:
    from psycopg import Connection

    from harebell.config import Config


def examine_storage(config: Config) -> tuple[str, str]:
    """Connect as a broker would; return the state and the text of a `Finding`.

    Args:
        config: its storage is in PostgreSQL.

    Returns:
        what its confirms are worth, or what is wrong.
    """
    database = Database(
        config.storage,
        schema_of(config.storage_schema, FIRST_STORE),
        config.storage_lease_ms,
        "doctor",
        config.durability,
    )
    try:
        check_durability(config.durability)
        errors = driver().Error
    except StoreError as error:
        return BAD, str(error)
    try:
        connection = database.connect()
        database.check_pooling(connection)
    except errors as error:
        return BAD, database.reason(error)
    except StoreError as error:
        return BAD, str(error)
    with connection:
        return _examined(connection, database)


def _examined(connection: Connection[Any], database: Database) -> tuple[str, str]:
    missing = missing_right(connection, database.schema)
    if missing:
        return BAD, f"{database.shown}: {missing}"
    version = connection.info.parameter_status("server_version") or ""
    worth = commit_guarantee(connection, database.durability)
    return GOOD, f"{database.shown} (version {version.split()[0]}): {worth}"
