"""A statement that a connection has prepared, for what is done again and again.

The driver composes, converts and looks up its statements each time. A commit of one message takes
half as long again with that, so the statement of the log goes to libpq as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harebell.server.postgresql.database import driver

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed


class Prepared:
    """A statement that changes rows.

    Args:
        link: the connection; it has at most one statement of a name.
        name: of the statement.
        statement: with `$1` and so on for its parameters.

    Raises:
        psycopg.Error: the server is away or refuses.
    """

    def __init__(self, link: Connection[Any], name: str, statement: Composed) -> None:
        psycopg = driver()
        self._connection = link.pgconn
        self._name = name.encode()
        self._failed = psycopg.errors.error_from_result
        self._done = psycopg.pq.ExecStatus.COMMAND_OK
        result = self._connection.prepare(self._name, statement.as_bytes(link))
        if result.status != self._done:
            raise self._failed(result)

    def run(self, values: Sequence[int | bytes]) -> int:
        """Run it; other threads go on meanwhile.

        Args:
            values: of the parameters; bytes go as they are.

        Returns:
            The number of rows.

        Raises:
            psycopg.Error: the server is away or refuses.
        """
        parameters = [each if isinstance(each, bytes) else b"%d" % each for each in values]
        formats = [int(isinstance(each, bytes)) for each in values]
        result = self._connection.exec_prepared(self._name, parameters, formats)
        if result.status != self._done:
            raise self._failed(result)
        return int(result.command_tuples or 0)

    def forget(self) -> None:
        """Remove it from the server; the connection may be broken."""
        self._connection.exec_(b"DEALLOCATE " + self._name)
