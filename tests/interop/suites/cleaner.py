"""Deletes queues and exchanges over HTTP, for suites that tidy up through RabbitMQ's HTTP API.

AMQPStorm's tests do nothing else with that API, and Harebell does not have it. So this stands in
for it beside both brokers: `DELETE /api/queues/%2F/<name>` and the same for exchanges, carried out
over AMQP. Once Harebell has the API, this file can go.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import pika

from tests.interop.suites.catalogue import HTTP_PORT, URL


class _Cleaner(BaseHTTPRequestHandler):
    def do_DELETE(self) -> None:
        """Delete what the path names."""
        kind, vhost, name = (unquote(part) for part in self.path.split("/")[2:5])
        assert vhost == "/", self.path
        connection = pika.BlockingConnection(pika.URLParameters(URL))
        channel = connection.channel()
        if kind == "queues":
            channel.queue_delete(name)
        else:
            channel.exchange_delete(name)
        connection.close()
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base
        """Say nothing."""


@contextmanager
def cleaner() -> Iterator[None]:
    """The stand-in, for the length of a block."""
    server = ThreadingHTTPServer(("127.0.0.1", HTTP_PORT), _Cleaner)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
