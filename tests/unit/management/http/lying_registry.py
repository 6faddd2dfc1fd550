"""A schema registry for tests: it answers some ids as Confluent's does, and lies about others."""

from __future__ import annotations

import gzip
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from harebell.admin.limits import SCHEMA_BYTES

REGISTRY = "HAREBELL_MANAGEMENT_SCHEMA_REGISTRY"
"""The variable that names a registry: its address may have a password, so there is no flag."""
AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; }'
LIES: dict[int, tuple[int, bytes, str]] = {
    10: (404, b'{"error_code":40403,"message":"Schema not found"}', "it answered 404"),
    11: (500, b"<script>alert(1)</script>", "it answered 500"),
    12: (302, b"", "it answered 302"),
    13: (200, b"<html>Sign in</html>", "none of a schema registry"),
    14: (200, b'{"schema": 5}', "none of a schema registry"),
    15: (200, b'{"schema": "int", "schemaType": "XML"}', "a type that is not AVRO"),
    16: (200, b'{"schema": "' + b" " * SCHEMA_BYTES + b'"}', f"more than {SCHEMA_BYTES} bytes"),
    17: (200, b'{"schema": "' + b" " * 2_000_000 + b'"}', "more than 1048576 bytes"),
    18: (200, gzip.compress(b'{"schema": "int"}' * 1_000), "none of a schema registry"),
    19: (200, b'{"schema": "int", "more": ' + b"[" * 100_000, "none of a schema registry"),
    20: (200, b'{"schema": "\xff\xfe', "none of a schema registry"),
    21: (
        *(200, b'{"schema": "' + "\u00e9".encode() * (SCHEMA_BYTES // 2) + b'"}'),
        f"more than {SCHEMA_BYTES} bytes",
    ),
}
"""What the registry answers for some ids, and what is said about it."""
SLOW, SILENT = 30, 31


def _referring(schema: str, *names: str, kind: str = "AVRO") -> dict[str, Any]:
    """An answer with a schema that refers to others, each below a subject of its name."""
    references = [{"name": name, "subject": f"a {name}/é", "version": 2} for name in names]
    return {"schema": schema, "schemaType": kind, "references": references}


def _record(name: str, **fields: str) -> str:
    members = [{"name": each, "type": kind} for each, kind in fields.items()]
    return json.dumps({"type": "record", "name": name, "fields": members})


GOOD: dict[int, dict[str, Any]] = {
    1: {"schema": AVRO},
    2: {"schema": PROTO, "schemaType": "PROTOBUF", "references": []},
    3: _referring(_record("Sale", id="long", by="shop.Person"), "shop.Person"),
    4: _referring(
        'import "person.proto"; message Sale { int64 id = 1; shop.Person by = 2; }',
        "person.proto",
        kind="PROTOBUF",
    ),
    5: {"schema": "{}", "schemaType": "JSON"},
    6: {"schema": "<script>executed = 1</script>"},
    7: _referring(_record("Sale", by="shop.Missing"), "shop.Person", "shop.Missing"),
    8: _referring('"int"', "deep-0"),
    9: _referring('"int"', *(f"wide-{number}" for number in range(100))),
    22: _referring('"int"', *(f"large-{number}" for number in range(5))),
    23: {"schema": '"int"', "references": [{"name": "n", "subject": "..", "version": 1}]},
    24: {"schema": '"int"', "references": [{"name": "n", "subject": "s", "version": "x"}]},
}
"""What the registry answers for some ids."""
_DEEP, _WIDE, _LARGE = "deep-", "wide-", "large-"


def _referred(name: str) -> dict[str, Any] | None:
    """What the registry answers for a schema that another refers to."""
    if name.startswith(_DEEP):
        return _referring('"int"', f"{_DEEP}{int(name.removeprefix(_DEEP)) + 1}")
    if name.startswith(_WIDE):
        return {"schema": '"int"'}
    if name.startswith(_LARGE):
        return {"schema": '"int"' + " " * (SCHEMA_BYTES // 4)}
    return {
        # A circle ends: each is read once.
        "shop.Person": _referring(_record("shop.Person", at="shop.City"), "shop.City"),
        "shop.City": _referring(_record("shop.City", zip="int"), "shop.Person"),
        "person.proto": _referring(
            'package shop; import "city.proto"; message Person { City at = 1; }', "city.proto"
        ),
        "city.proto": {"schema": "package shop; enum City { NONE = 0; ROME = 1; }"},
    }.get(name)


class Registry(ThreadingHTTPServer):
    """A registry, good for ids below 10 only.

    Attributes:
        asked: the paths of the requests.
        logins: what they have in the header authorization; None for nothing.
        go: until it is set, slow answers do not end.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        self.go = threading.Event()

    @property
    def url(self) -> str:
        """Its address, with a path below it and a slash at the end."""
        return f"http://127.0.0.1:{self.server_address[1]}/api/"


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.logins.append(self.headers["authorization"])
        if "/subjects/" in self.path:
            self._send_referred()
            return
        number = int(self.path.rpartition("/")[2])
        if number == SILENT:
            self.server.go.wait(60)
            return
        status, body, _ = LIES.get(
            number, (200, json.dumps(GOOD.get(number, GOOD[1])).encode(), "")
        )
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if number == 12:
            self.send_header("location", "http://127.0.0.1:1/secret")
        if number == 18:
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        if number == SLOW:
            # A byte now and then keeps each wait short.
            while not self.server.go.wait(0.2):
                try:
                    self.wfile.write(b" ")
                except OSError:
                    return
        try:
            self.wfile.write(body)
        except OSError:
            return

    def _send_referred(self) -> None:
        found = re.fullmatch(r"/api/subjects/a%20(.+)%2F%C3%A9/versions/2", self.path)
        answer = None if found is None else _referred(found[1])
        body = json.dumps(answer).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry that answers."""
    with Registry() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.go.set()
            server.shutdown()
            thread.join()
