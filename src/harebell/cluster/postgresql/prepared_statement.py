"""A statement that a connection has prepared, for what is done again and again.

The driver composes, converts and looks up its statements each time. A commit of one message takes
half as long again with that, so the statement of the log goes to libpq as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harebell.cluster.postgresql.database import driver

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.sql import Composed


class PreparedStatement:
    """A statement that changes rows.

    Args:
        connection: to the database; it has at most one statement of a name.
        name: of the statement.
        statement: with `$1` and so on for its parameters.

    Raises:
        psycopg.Error: the server is away or refuses.
    """

    def __init__(self, connection: Connection[Any], name: str, statement: Composed) -> None:
        psycopg = driver()
        self._pgconn = connection.pgconn
        self._name = name.encode()
        self._failed = psycopg.errors.error_from_result
        self._done = psycopg.pq.ExecStatus.COMMAND_OK
        self._lost = psycopg.OperationalError
        self._result: Any = None
        result = self._pgconn.prepare(self._name, statement.as_bytes(connection))
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
        result = self._pgconn.exec_prepared(self._name, *_encoded(values))
        return self._rows(result)

    def send(self, values: Sequence[int | bytes]) -> None:
        """Send it without waiting for anything.

        Args:
            values: of the parameters; so few bytes that they fit into the buffer of a socket.

        Raises:
            psycopg.Error: the server is away, or does not read.
        """
        self._pgconn.send_query_prepared(self._name, *_encoded(values))
        if self._pgconn.flush():
            raise self._lost("the server does not read")

    def received(self) -> int | None:
        """Return the number of rows of what was sent; None if the answer is not all there.

        Raises:
            psycopg.Error: the server is away or refuses.
        """
        # Twice: the first one stops at a last message, such as that of a server that ends, and
        # an event loop may report the end behind it only once.
        for _ in range(2):
            self._pgconn.consume_input()
            while not self._pgconn.is_busy():
                result = self._pgconn.get_result()
                if result is not None:
                    self._result = result
                    continue
                answer, self._result = self._result, None
                if answer is None:
                    raise self._lost("the connection is lost")
                return self._rows(answer)
        return None

    def forget(self) -> None:
        """Remove it from the server; the connection may be broken."""
        self._pgconn.exec_(b"DEALLOCATE " + self._name)

    def _rows(self, result: Any) -> int:
        if result.status != self._done:
            raise self._failed(result)
        return int(result.command_tuples or 0)


def _encoded(values: Sequence[int | bytes]) -> tuple[list[bytes], list[int]]:
    """Return values and their formats: numbers as text, bytes as they are."""
    return (
        [each if isinstance(each, bytes) else b"%d" % each for each in values],
        [int(isinstance(each, bytes)) for each in values],
    )
