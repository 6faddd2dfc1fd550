"""Requests to the HTTP API of a broker, with paths as they are written."""

from __future__ import annotations

import http.client
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from tests.ports import free_port
from tests.running import running_broker

SECONDS = 60.0


class Response(NamedTuple):
    """A response.

    Args:
        status: the status code.
        headers: its headers, with small letters.
        body: its body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return msgspec.json.decode(self.body)


def segment(name: str) -> str:
    """A name as a segment of a path."""
    return quote(name, safe="")


class Api:
    """The HTTP API of a broker.

    Args:
        port: its port.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: str | None = "guest:guest",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Send a request; a body that is not bytes is sent as JSON."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        sent = dict(headers or {})
        if user is not None:
            sent["authorization"] = "Basic " + b64encode(user.encode()).decode()
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        link.request(method, path, data, sent)
        got = link.getresponse()
        answer = Response(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read())
        link.close()
        return answer

    def get(self, path: str, **options: Any) -> Any:
        """The body of a successful GET."""
        answer = self.ask("GET", path, **options)
        assert answer.status == 200, answer
        assert answer.headers["content-type"] == "application/json"
        return answer.json

    def done(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        """A request that has to succeed."""
        answer = self.ask(method, path, body, **options)
        assert answer.status in (200, 201, 204), answer
        return answer

    def user(self, name: str, *tags: str, vhost: str | None = None, pattern: str = ".*") -> str:
        """Make a user, with permissions in a vhost; returns the login."""
        self.done("PUT", f"/api/users/{name}", {"password": "p", "tags": ",".join(tags)})
        if vhost is not None:
            permissions = dict.fromkeys(("configure", "write", "read"), pattern)
            self.done("PUT", f"/api/permissions/{segment(vhost)}/{name}", permissions)
        return f"{name}:p"


@contextmanager
def running_api(*flags: str) -> Iterator[Api]:
    """The HTTP API of a broker for the length of a block."""
    port = free_port()
    with running_broker("--management-port", str(port), *flags):
        yield Api(port)
