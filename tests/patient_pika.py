"""pika waits as long for a broker as the tests do, where a test says nothing else.

Left alone, it gives up when a connection and its handshake take more than 15 seconds, as they do
now and then on a machine with other work.
"""

from __future__ import annotations

import sys

from tests.patience import SECONDS


# Modules that use it have imported it by then; no others wait for its import.
def pytest_collection_finish() -> None:
    """Change what its parameters begin with."""
    pika = sys.modules.get("pika")
    if pika is not None:
        pika.connection.Parameters.DEFAULT_SOCKET_TIMEOUT = SECONDS
        pika.connection.Parameters.DEFAULT_STACK_TIMEOUT = 1.5 * SECONDS
