"""A real HTTP server in a thread of the test."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.quiet_server import QuietServer


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that answers with texts and logs nothing."""

    def answer(self, status: int, text: str) -> None:
        """Answer the request."""
        body = text.encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class LocalServer:
    """A server on a free port, until it is closed; use it with `with`.

    Args:
        handler: answers the requests.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = QuietServer(("127.0.0.1", 0), handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
