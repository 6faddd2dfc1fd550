"""A small HTTP server for Prometheus beside running pipelines: `GET /metrics`."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.registry import PipelineState
from harebell.pipeline.run.metrics import CONTENT_TYPE, exposition

PATH = "/metrics"
LOCAL = "127.0.0.1"


def address_of(text: str) -> tuple[str, int] | None:
    """Parse `PORT` or `HOST:PORT`; None if invalid; a port alone is on the loopback address."""
    host, colon, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65_535 or (colon and not host):
        return None
    return (host.strip("[]") if colon else LOCAL), int(port)


@contextmanager
def serving(
    address: tuple[str, int], states: Callable[[], Iterable[PipelineState]]
) -> Iterator[str]:
    """Serve the states of pipelines; yield the address of the metrics.

    Args:
        address: host and port; port 0 for any free one.
        states: returns the present states.

    Raises:
        PipelineError: the address cannot be bound.
    """
    # http.server makes a handler per request and passes it nothing.
    handler = type("Metrics", (_Handler,), {"states": staticmethod(states)})
    host, port = address
    try:
        server = _Server((host, port), handler)
    except OSError as error:
        raise PipelineError(
            f"cannot serve metrics on {host}:{port}: {error.strerror or error}"
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        # In a URL an address of IPv6 stands in brackets (RFC 3986 3.2.2).
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{server.server_address[1]}{PATH}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    """A server that does not wait for clients when it stops, and does not log disconnects."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: Any) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind without a reverse DNS lookup of the own name."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Suppress the traceback for a client that has disconnected."""


class _Handler(BaseHTTPRequestHandler):
    """Handle one request."""

    states: ClassVar[Any]
    """Returns the states of the pipelines."""

    protocol_version = "HTTP/1.1"
    # Seconds. A client that sends nothing holds a thread for so long.
    timeout = 30

    def do_GET(self) -> None:
        """Send the metrics, or 404."""
        if self.path.partition("?")[0] == PATH:
            self._answer(200, CONTENT_TYPE, exposition(self.states()))
        else:
            self._answer(404, "text/plain; charset=utf-8", f"there is only {PATH}\n")

    do_HEAD = do_GET  # noqa: N815 - the server's name

    def _answer(self, code: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        # HTTP/1.1 keeps the connection: without its size the body would have no end (RFC 9112 6.3).
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # HEAD gets the same head, with the size of the body, and no body (RFC 9110 9.3.2).
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
        """Do not log requests."""
