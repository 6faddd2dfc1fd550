"""What the HTTP API answers without a login: texts, redirects, its description, and the login.

OPTIONS, with which browsers ask what a page may do, needs none either.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from harebell.base.version import VERSION
from harebell.management.http.answer import JSON, Answer
from harebell.management.http.errors import HttpError, bad_request, not_allowed
from harebell.management.json_rows import encode
from harebell.management.limits import HTTP_EARLY_BODY_BYTES

if TYPE_CHECKING:
    from harebell.config import Config
    from harebell.management.http.login import Logins
    from harebell.management.http.request import HttpRequest
    from harebell.management.http.routes import Routes
    from harebell.management.http.sign_in import SignIn

OPENAPI = ["api", "openapi.json"]
"""The path of the OpenAPI document."""
LOGIN = ["api", "login"]
"""The path where a form with `username` and `password` is sent to."""
_READS = ("GET", "HEAD", "OPTIONS")
_TEXT = ("content-type", "text/plain; charset=utf-8")
_ADMIN_TEXT = """\
Harebell has RabbitMQ's command rabbitmqadmin as a Python package:

    pip install ./packaging/rabbitmq-compat      (in a clone of Harebell)
    rabbitmqadmin --host HOST --port PORT --username USER --password PASSWORD list queues

The script that RabbitMQ serves at /cli/rabbitmqadmin is a part of RabbitMQ. It is not served here,
and it works with this broker: use a copy of a RabbitMQ installation, or the package above.
"""
_ADMIN = Answer(200, (_TEXT,), (_ADMIN_TEXT.encode(),))
_PATHS: dict[tuple[str, ...], Answer] = {
    ("api",): Answer(301, (("location", "/api/openapi.json"),)),
    ("api", "version"): Answer(200, (JSON,), (encode(VERSION),)),
    ("cli",): _ADMIN,
    ("cli", "index.html"): _ADMIN,
    # 404, so that a script which downloads the file does not run this text.
    ("cli", "rabbitmqadmin"): _ADMIN._replace(status=404),
}


def open_answer(method: str, segments: list[str], prefix: str) -> Answer | None:
    """Return the answer of a path whose text never changes; None for all other paths.

    Args:
        method: the HTTP method.
        segments: the path.
        prefix: the start of all paths; "" for none.

    Raises:
        HttpError: 405.
    """
    answer = _PATHS.get(tuple(segments))
    if answer is None:
        return None
    if method not in _READS:
        raise not_allowed(method, ["GET", "HEAD", "OPTIONS"])
    if answer.status == 301:
        (name, path), *_ = answer.headers
        return answer._replace(headers=((name, prefix + path),))
    return answer


class OpenPaths:
    """Answers what needs no login.

    Args:
        config: the configuration.
        logins: authenticates requests.
        sign_in: where pages sign in elsewhere.
        routes: returns the routes of all commands.
    """

    def __init__(
        self, config: Config, logins: Logins, sign_in: SignIn, routes: Callable[[], Routes]
    ) -> None:
        self._prefix = config.management_path_prefix
        self._logins = logins
        self._sign_in = sign_in
        self._routes = routes
        self._document: asyncio.Task[tuple[bytes, str]] | None = None

    async def answer(self, request: HttpRequest, segments: list[str]) -> Answer | None:
        """Answer a request; None for a path that needs a login.

        Raises:
            HttpError: the path has no such method, or the login is wrong.
        """
        if segments == OPENAPI and request.reads:
            return await self._describe(request)
        answer = open_answer(request.method, segments, self._prefix)
        if answer is None and segments == LOGIN:
            answer = await self._log_in(request)
        if answer is None and request.reads:
            answer = self._sign_in.answer(segments, request.scope["query_string"])
        if answer is None and request.method == "OPTIONS":
            return Answer(200, (("allow", ", ".join(self._routes().methods(segments))),))
        return answer

    async def _describe(self, request: HttpRequest) -> Answer:
        """Answer with the OpenAPI document, which is made once."""
        if self._document is None:
            self._document = asyncio.ensure_future(self._make_document(request.turn))
        # Shield: a client that goes must not end the work for the others.
        body, tag = await asyncio.shield(self._document)
        if tag in request.headers.get("if-none-match", ""):
            return Answer(304, (("etag", tag),))
        return Answer(200, (JSON, ("etag", tag)), (body,), constant=True)

    async def _make_document(self, turn: Callable[[], Awaitable[None]]) -> tuple[bytes, str]:
        """Make the document, a slice in each turn."""
        # Imported here: few brokers are asked for it.
        from harebell.management.http.openapi import encoded_document

        slices = encoded_document(self._routes().all, self._prefix)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                document: tuple[bytes, str] = end.value
                return document
            await turn()

    async def _log_in(self, request: HttpRequest) -> Answer:
        """Answer a form with a user and a password.

        The cookie `auth` is for the web page, which sends its value in the header `authorization`.
        As on RabbitMQ, the cookie alone does not authenticate.

        Raises:
            HttpError: 400, it is no form; 401, the login is wrong; 405.
        """
        if request.method != "POST":
            raise not_allowed(request.method, ["POST", "OPTIONS"])
        body = await request.read_body(HTTP_EARLY_BODY_BYTES)
        try:
            form = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
        except ValueError as error:
            raise bad_request(f"the form cannot be read: {error}") from None
        name = form.get("username", "")
        if ":" in name:
            raise HttpError(400, "bad_request", "a user whose name has ':' cannot log in over HTTP")
        credentials = b64encode(f"{name}:{form.get('password', '')}".encode()).decode()
        await self._logins.user_of(f"Basic {credentials}", request.address)
        secure = "; Secure" if request.scope["scheme"] == "https" else ""
        cookie = f"auth={credentials}; Version=1; Path=/; SameSite=Strict{secure}"
        return Answer(200, (JSON, ("set-cookie", cookie)), (b'"ok"',))
