"""Connections to the server, with leases of any length that the configuration allows."""

from __future__ import annotations

import socket
import threading

import psycopg
import pytest

from harebell.cluster.postgresql.database import Database
from harebell.config.limits import STORAGE_LEASE_MAX_MS, STORAGE_LEASE_MIN_MS


@pytest.mark.parametrize("lease_ms", [STORAGE_LEASE_MIN_MS, STORAGE_LEASE_MAX_MS])
def test_the_server_is_reached_with_the_shortest_and_the_longest_lease(lease_ms: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def end_one() -> None:
            link, _ = server.accept()
            with link:
                link.recv(8)

        ending = threading.Thread(target=end_one, daemon=True)
        ending.start()
        url = f"postgresql://127.0.0.1:{server.getsockname()[1]}/none"
        # It is reached, and ends the connection; the system refuses no setting of the socket.
        with pytest.raises(psycopg.OperationalError, match="server closed the connection"):
            Database(url, "harebell", lease_ms, "one", "fsync").connect()
        ending.join()
