"""Run tests with brokers whose storage is PostgreSQL, on a server that is made for it.

    python -m tests.postgresql.over tests/conformance -k socket

Tests that look into the data directory do not apply.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest

from tests.postgresql.servers import PostgresServer, fresh_database
from tests.running import STORAGE

_CONNECTIONS = "200"


def main(arguments: Sequence[str]) -> int:
    """Run pytest with these arguments; its exit code."""
    with (
        PostgresServer(settings={"max_connections": _CONNECTIONS}) as server,
        fresh_database(server, "over") as database,
    ):
        os.environ[STORAGE] = server.url(database)
        return int(pytest.main(list(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
