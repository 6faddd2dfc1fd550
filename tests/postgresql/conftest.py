"""A server that all tests of a process share, and a database of its own for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.postgresql.servers import PostgresServer, fresh_database

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """A primary without standbys; a test that stops or changes a server makes its own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def database(postgresql: PostgresServer) -> Iterator[str]:
    """The name of an empty database of that server."""
    with fresh_database(postgresql, f"test_{next(_numbers)}") as name:
        yield name
