"""What clients of the HTTP API do: large and costly requests, many of them, and none at all."""

from __future__ import annotations

import base64
import http.client
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from bench.hostile.side import Side, load

_PATIENCE = 120.0
_LOGIN = "Basic " + base64.b64encode(b"guest:guest").decode()
_WRONG = "Basic " + base64.b64encode(b"guest:wrong").decode()
_PATTERNS = (
    "a" * 1_000_000,
    "(a*)*" + "".join(f"[{chr(0x100 + each)}-\uffff]" for each in range(800)),
    "(x{0,1000}){0,1000}y",
    "(.*a){50}b",
    ".*" * 2_000 + "y",
    "|".join(f"(queue{each}.*)" for each in range(300)),
)


def ask(side: Side, method: str, path: str, body: object = None, login: str = _LOGIN) -> None:
    """Ask once; whatever is answered, or a connection that is closed, is dropped."""
    link = http.client.HTTPConnection("127.0.0.1", side.task.http_port, timeout=_PATIENCE)
    data = None if body is None else msgspec.json.encode(body)
    with suppress(OSError, http.client.HTTPException):
        link.request(method, path, data, {"authorization": login})
        link.getresponse().read()
    link.close()
    side.done += 1


def _opened(side: Side) -> socket.socket | None:
    with suppress(OSError):
        link = socket.create_connection(("127.0.0.1", side.task.http_port), timeout=_PATIENCE)
        link.setblocking(False)
        return link
    return None


def _kept_open(side: Side, count: int, piece: bytes, seconds: float = 0.0) -> None:
    """Keep so many connections open, each of which gets a piece again and again, unread."""
    links: list[socket.socket | None] = [None] * count
    while not side.over:
        for at, link in enumerate(links):
            if side.over:
                break
            if link is None:
                links[at] = _opened(side)
                continue
            try:
                if piece:
                    link.send(piece)
                if link.recv(65_536) == b"":
                    raise ConnectionResetError
            except BlockingIOError:
                side.done += 1
            except OSError:
                link.close()
                links[at] = None
        time.sleep(seconds)


def _large(side: Side, count: int) -> dict[str, object]:
    return {f"k{each}": each for each in range(side.many(count))}


@load(everywhere=False)
def http_arguments(side: Side) -> Iterator[None]:
    """Declare, bind and publish over HTTP with 1,000,000 arguments or headers."""
    large = _large(side, 1_000_000)
    yield
    while not side.over:
        ask(side, "PUT", "/api/queues/%2F/hostile", {"arguments": large})
        path = "/api/bindings/%2F/e/amq.headers/q/hostile"
        ask(side, "POST", path, {"arguments": large})
        sent = {"properties": {"headers": large}, "routing_key": "hostile", "payload": "x"}
        path = "/api/exchanges/%2F/amq.default/publish"
        ask(side, "POST", path, {**sent, "payload_encoding": "string"})


@load(everywhere=False)
def http_patterns(side: Side) -> Iterator[None]:
    """Permissions and policies over HTTP with patterns that are large or never end."""
    yield
    while not side.over:
        for pattern in _PATTERNS:
            permissions = dict.fromkeys(("configure", "write", "read"), pattern)
            ask(side, "PUT", "/api/users/hostile-pattern", {"password": "p", "tags": ""})
            ask(side, "PUT", "/api/permissions/%2F/hostile-pattern", permissions)
            policy = {"pattern": pattern, "definition": {"max-length": 9}, "priority": 1}
            ask(side, "PUT", "/api/policies/%2F/hostile", policy)
            ask(side, "PUT", "/api/queues/%2F/" + "a" * 250, {})


@load(everywhere=False)
def http_explain(side: Side) -> Iterator[None]:
    """Explain over HTTP with as many headers as a body may have, and with 500,000."""
    headers = [_large(side, count) for count in (60_000, 500_000)]
    yield
    while not side.over:
        for each in headers:
            path = "/api/exchanges/%2F/amq.headers/explain"
            ask(side, "POST", path, {"properties": {"headers": each}})


@load(everywhere=False)
def http_openapi(side: Side) -> Iterator[None]:
    """200 connections that ask for the OpenAPI document without end, without a login."""
    yield
    _kept_open(side, side.many(200), b"GET /api/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n")


@load(everywhere=False)
def http_pipelining(side: Side) -> Iterator[None]:
    """200 connections that each write 100 requests at once, again and again."""
    yield
    asked = b"GET /api/version HTTP/1.1\r\nhost: a\r\n\r\n" * 100
    _kept_open(side, side.many(200), asked)


@load(everywhere=False)
def http_slow(side: Side) -> Iterator[None]:
    """1,500 connections whose requests come byte by byte and never end."""
    yield
    _kept_open(side, side.many(1_500), b"a", 0.5)


@load(everywhere=False)
def http_idle(side: Side) -> Iterator[None]:
    """Connections that are opened as fast as possible and say nothing."""
    yield
    held: list[socket.socket] = []
    while not side.over:
        link = _opened(side)
        if link is not None:
            held.append(link)
        if len(held) > side.many(900):
            held.pop(0).close()
        side.done += 1


@load(everywhere=False)
def http_logins(side: Side) -> Iterator[None]:
    """Logins over HTTP with a wrong password, one after the other."""
    yield
    while not side.over:
        ask(side, "GET", "/api/whoami", login=_WRONG)


@load(everywhere=False)
def http_tokens(side: Side) -> Iterator[None]:
    """Logins over HTTP with a token of 7 kB that nobody has signed, one after the other."""
    parts = (b'{"alg":"RS256"}', b'{"scope":"' + b"a" * 5_000 + b'"}', b"s" * 256)
    token = ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts)
    yield
    while not side.over:
        ask(side, "GET", "/api/whoami", login=f"Bearer {token}")
