"""A real web service that decides about users, as an owner of a broker would write it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit

from tests.unit.management.backends.local_server import LocalServer, QuietHandler

Fields = dict[str, str]


class WebService(LocalServer):
    """Answers questions about users, and remembers them.

    Attributes:
        passwords: passwords of users, and the tags that they have.
        rule: decides about all else: called with the path and the parameters.
        asked: the questions: method, path, parameters.
        answer: what is answered to everything, with its status code; None to decide.
        delay: seconds before an answer.
        may_answer: while it is not set, questions stay without an answer.
    """

    def __init__(self) -> None:
        self.passwords: dict[str, tuple[str, str]] = {"ada": ("lovelace", "management")}
        self.rule: Callable[[str, Fields], bool] = lambda path, fields: True
        self.asked: list[tuple[str, str, Fields]] = []
        self.answer: tuple[int, str] | None = None
        self.delay = 0.0
        self.may_answer = threading.Event()
        self.may_answer.set()
        service = self

        class Handler(QuietHandler, BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                self._reply(parts.path, parts.query)

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                self._reply(self.path, self.rfile.read(length).decode())

            def _reply(self, path: str, query: str) -> None:
                fields = dict(parse_qsl(query, keep_blank_values=True))
                service.asked.append((self.command, path, fields))
                time.sleep(service.delay)
                service.may_answer.wait()
                status, text = service.answer or (200, service.decided(path, fields))
                self.answer(status, text)

        super().__init__(Handler)

    def decided(self, path: str, fields: Fields) -> str:
        """The answer to one question."""
        if path == "/auth/user":
            password, tags = self.passwords.get(fields["username"], ("", ""))
            right = fields["username"] in self.passwords and fields.get("password") == password
            return f"allow {tags}".strip() if right else "deny"
        return "allow" if self.rule(path, fields) else "deny"

    def about(self, path: str) -> list[Fields]:
        """The questions of one path."""
        return [fields for _, where, fields in self.asked if where == f"/auth/{path}"]

    def settings(self, *, method: str = "get") -> list[str]:
        """The lines of `rabbitmq.conf` with its addresses."""
        base = f"http://127.0.0.1:{self.port}/auth"
        paths = ("user", "vhost", "resource", "topic")
        return [
            f"auth_http.http_method = {method}",
            *(f"auth_http.{path}_path = {base}/{path}" for path in paths),
        ]
