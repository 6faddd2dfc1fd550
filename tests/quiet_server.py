"""An HTTP server in the process of the tests that does not print when a client has gone.

Its threads may answer after the test that they belong to, and what they print on standard error
would be taken for the output of the test that runs then.
"""

from __future__ import annotations

import sys
from http.server import ThreadingHTTPServer
from typing import Any


class QuietServer(ThreadingHTTPServer):
    """The server; any other error of a handler is printed."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that waits for its answer no longer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
