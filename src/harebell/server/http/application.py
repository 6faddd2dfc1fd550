"""The ASGI application of the HTTP API: one request, one command.

    request -> route -> user -> rights -> fields -> command, in slices -> rows -> answer

The answer is made in slices of the broker's turns, and sent in pieces with other work in between.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterator
from email.utils import formatdate
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.requests import Request

from harebell.admin.context import CommandRefused
from harebell.base.errors import HarebellError, Refusal
from harebell.base.limits import (
    HTTP_CHUNK_BYTES,
    HTTP_COMPRESS_BYTES,
    HTTP_COMPRESS_LEVEL,
    HTTP_PREPARE_SECONDS,
)
from harebell.base.slices import Slices
from harebell.model.settings.metadata import MetadataError
from harebell.server.backends.decided import decided
from harebell.server.control.client import AWAY_HEADER
from harebell.server.http.by_name import arguments_of, check_rights, command_of, is_by_name
from harebell.server.http.errors import HttpError, not_allowed, of_refusal, too_large
from harebell.server.http.fields import REASON_HEADER, fields_of, query_of
from harebell.server.http.forms import Upload, upload_of
from harebell.server.http.login import Logins
from harebell.server.http.open_paths import LOGIN, OPENAPI, Open, logged_in, open_answer
from harebell.server.http.rights import check_tags, check_vhost
from harebell.server.http.routes import Routes, segments_of
from harebell.server.http.rows import encoded, encoded_object, wanted_of
from harebell.server.http.web_page import WebPage
from harebell.server.json_rows import rows_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from harebell.admin.command import Command, Row
    from harebell.admin.context import AdminContext
    from harebell.auth.users import User
    from harebell.server.config import Config
    from harebell.server.control.dispatcher import Dispatcher
    from harebell.server.control.row_reader import Rows

_JSON = ("content-type", "application/json")
_ROWS = ("content-type", "application/x-ndjson")
_GZIP_WINDOW = 31
"""Makes zlib write the format of gzip."""
_READS = ("GET", "HEAD")
_DEFINITIONS = (["api", "definitions"], ["api", "all-configuration"])
"""The start of paths that web pages link to: the login may be in the query."""


class Answer(NamedTuple):
    """A response.

    Args:
        status: the status code.
        headers: names and values, as they are sent.
        pieces: its body.
        rows: the rows that are its body, a line of JSON each; None for none.
    """

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    pieces: tuple[bytes, ...] | list[bytes] = ()
    rows: Rows | None = None


class _CommandRequest(NamedTuple):
    """A command that a request asks for, and whose user may run commands of its kind.

    Args:
        request: what the client has sent.
        command: the one that the path names.
        user: on whose behalf it runs.
        path: the parameters in the path.
        query: those in the query.
        body: as it was sent; b"" for a request that reads.
        upload: what the body has if it is a form.
        by_name: whether the path has the name of the command.
        linked: whether web pages link to the path, for files that are up- and downloaded.
    """

    request: Request
    command: Command
    user: User
    path: dict[str, str]
    query: dict[str, str]
    body: bytes
    upload: Upload
    by_name: bool
    linked: bool

    @property
    def reads(self) -> bool:
        """Whether the request only reads."""
        return self.request.method in _READS

    @property
    def deletes(self) -> bool:
        """Whether the request deletes."""
        return bool(self.request.method == "DELETE")


class ManagementApp:
    """The ASGI application.

    Args:
        config: the configuration.
        context: the broker and its users.
        dispatcher: runs the commands.
    """

    def __init__(self, config: Config, context: AdminContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        only_tokens = config.management_oauth_enabled and config.management_oauth_disable_basic_auth
        self._logins = Logins(context, only_tokens=only_tokens)
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Use another configuration for requests from now on."""
        self._config = config
        policy = config.management_csp_policy
        own = None if policy == type(config)().management_csp_policy else policy
        self._page = WebPage(config.management_path_prefix, own)
        self._headers = [("vary", "accept-encoding, origin"), ("cache-control", "no-cache")]
        if config.management_csp_policy:
            self._headers.append(("content-security-policy", config.management_csp_policy))
        if config.management_hsts_policy:
            self._headers.append(("strict-transport-security", config.management_hsts_policy))

    @cached_property
    def routes(self) -> Routes:
        """The routes of all commands, whose files are imported here."""
        from harebell.admin.catalog import commands

        return Routes(commands())

    def prepare(self) -> None:
        """Import the files of the commands soon, one per turn.

        The first request would import them all in one turn of 60 ms. The start of the broker does
        not wait for them.
        """
        from harebell.admin.catalog import NOUNS

        loop = asyncio.get_running_loop()
        waiting = iter(NOUNS.values())

        def step() -> None:
            noun = next(waiting, None)
            if noun is None:
                self.routes.all  # noqa: B018 - builds the routes
            else:
                noun.commands  # noqa: B018 - imports a file
                loop.call_soon(step)

        loop.call_later(HTTP_PREPARE_SECONDS, step)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope, receive)
        try:
            answer = await self._answer(request)
        except HttpError as error:
            answer = Answer(error.status, (_JSON, *error.headers), (error.body,))
        except Exception as error:  # one request must not stop the broker; the client gets no trace
            self._context.log("error", f"HTTP {request.method} {scope['path']!r}: {error!r}")
            failure = HttpError(500, "internal_error", "the request failed: see the broker's log")
            answer = Answer(500, (_JSON,), (failure.body,))
        own = {name for name, _ in answer.headers}
        headers = [*(header for header in self._headers if header[0] not in own)]
        headers += self._cors(request)
        if answer.rows is None:
            await _send(answer, headers, request, send)
        else:
            await send_rows(answer.rows, [*headers, *answer.headers], receive, send)

    async def _answer(self, request: Request) -> Answer:
        raw = request.scope.get("raw_path") or request.scope["path"].encode()
        page = self._page.answer(request.method, raw, request.headers.get("if-none-match"))
        if page is not None:
            return Answer(page.status, page.headers, (page.body,))
        segments = segments_of(raw, self._config.management_path_prefix)
        answer = await self._answer_anybody(request, segments)
        if answer is not None:
            return answer
        call = await self._call_of(request, segments)
        away: list[int] = []
        return _finished(call, await self._run(call, away), away)

    async def _answer_anybody(self, request: Request, segments: list[str]) -> Answer | None:
        """Answer what is open to clients without a login; None for all else."""
        prefix = self._config.management_path_prefix
        if segments == OPENAPI and request.method in _READS:
            from harebell.server.http.openapi import document

            described = document(self.routes.all, prefix)
            return Answer(200, (_JSON,), (msgspec.json.encode(described),))
        opened = open_answer(request.method, segments, prefix)
        if opened is None and segments == LOGIN:
            opened = await self._logged_in(request)
        if opened is not None:
            return Answer(opened.status, opened.headers, (opened.body,))
        if request.method == "OPTIONS":
            return Answer(200, (("allow", ", ".join(self.routes.methods(segments))),))
        return None

    async def _call_of(self, request: Request, segments: list[str]) -> _CommandRequest:
        """Find the command and its user, and read the body once the user may send one.

        Raises:
            HttpError: there is no such route, or the user may not use it.
        """
        path: dict[str, str] = {}
        by_name = is_by_name(request.method, segments)
        if by_name:
            command = command_of(segments)
        else:
            command, path = self.routes.find(request.method, segments)
        query = query_of(request.scope["query_string"])
        authorization = request.headers.get("authorization")
        linked = segments[:2] in _DEFINITIONS
        if linked and authorization is None and "auth" in query:
            authorization = f"Basic {query['auth']}"
        user = await self._logins.user_of(authorization, _address_of(request))
        check_tags(user, command)
        reads = request.method in _READS
        if "vhost" in path:
            await self._check_vhost(user, command, path["vhost"], reads=reads)
        body = b"" if reads else await self._body(request)
        upload = upload_of(request.headers.get("content-type"), body) if linked else Upload(body)
        return _CommandRequest(request, command, user, path, query, body, upload, by_name, linked)

    async def _run(self, call: _CommandRequest, away: list[int]) -> Answer:
        """Run the command.

        Args:
            call: the command and its user.
            away: gets the numbers of the stores that are missing in the answer.

        Raises:
            HttpError: it is refused.
        """
        context = self._context.on_behalf_of(call.user)

        def run() -> Slices[Answer]:
            arguments = yield from self._arguments_of(call)
            away.clear()
            answer = yield from rows_of(
                self._dispatcher.answer(call.command, context, arguments, away, reads=call.reads)
            )
            rows = self._dispatcher.reader_of(answer)
            if rows is not None:
                return Answer(200, (_ROWS,), rows=rows)
            if call.by_name:
                return (yield from _whole(answer))
            return (yield from _made(call.request, call.command, answer, call.query))

        try:
            made: Answer = await decided(
                call.user,
                lambda: self._dispatcher.run(run, call.user.name, reads=call.command.reads),
            )
        except HttpError:
            raise
        except (CommandRefused, Refusal, MetadataError) as error:
            raise of_refusal(error, reads=call.reads or call.deletes) from None
        except HarebellError as error:
            raise of_refusal(error) from None
        return made

    def _arguments_of(self, call: _CommandRequest) -> Slices[dict[str, Any]]:
        """Return the arguments of a command, after a check of the rights that depend on them."""
        broker = self._context.broker
        if call.by_name:
            arguments = yield from arguments_of(call.command, call.body)
            check_rights(call.user, call.command, arguments, broker)
            return arguments
        reason = call.request.headers.get(REASON_HEADER)
        query = call.query if call.reads or call.deletes else {}
        arguments = yield from fields_of(call.command, call.path, query, call.upload.file, reason)
        named = arguments.get("vhost")
        if "vhost" not in call.path and isinstance(named, str):
            # It is in the query or in the body.
            check_vhost(call.user, call.command, named, broker, reads=call.reads)
        return arguments

    async def _check_vhost(self, user: User, command: Command, vhost: str, *, reads: bool) -> None:
        async def check() -> None:
            check_vhost(user, command, vhost, self._context.broker, reads=reads)

        await decided(user, check)

    async def _logged_in(self, request: Request) -> Open:
        """Answer the login of a web page."""
        if request.method != "POST":
            raise not_allowed(request.method, ["POST", "OPTIONS"])
        body = await self._body(request)
        tls = request.scope["scheme"] == "https"
        return await logged_in(body, self._logins, _address_of(request), tls=tls)

    async def _body(self, request: Request) -> bytes:
        """Read the body.

        Raises:
            HttpError: 413, it is too large.
        """
        limit = self._config.management_body_max_bytes
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > limit:
            raise too_large(limit)
        pieces, size = [], 0
        async for piece in request.stream():
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
        return b"".join(pieces)

    def _cors(self, request: Request) -> Iterator[tuple[str, str]]:
        """Yield the headers that let pages of allowed origins use the API."""
        origin = request.headers.get("origin")
        allowed = self._config.management_cors_allow_origins
        if origin is None or allowed is None or not {origin, "*"}.intersection(allowed):
            return
        yield ("access-control-allow-origin", origin)
        yield ("access-control-allow-credentials", "true")
        yield ("access-control-expose-headers", "location")
        if request.method == "OPTIONS":
            yield ("access-control-max-age", str(self._config.management_cors_max_age))
            yield ("access-control-allow-methods", "HEAD, GET, POST, PUT, DELETE, OPTIONS")
            yield ("access-control-allow-headers", "authorization, content-type, x-reason")


def _address_of(request: Request) -> str:
    """Return the address of the client."""
    client = request.scope.get("client")
    return client[0] if client else ""


def _finished(call: _CommandRequest, made: Answer, away: list[int]) -> Answer:
    """Return the response with what is the same for all commands."""
    if away:
        shown = ",".join(map(str, away))
        made = made._replace(headers=(*made.headers, (AWAY_HEADER, shown)))
    if call.upload.redirect:
        return Answer(303, (("location", call.upload.redirect),))
    if call.linked and call.reads and "download" in call.query:
        name = quote(call.query["download"], safe="")
        file = ("content-disposition", f"attachment; filename*=UTF-8''{name}")
        return made._replace(headers=(*made.headers, file))
    return made


def _whole(answer: Any) -> Slices[Answer]:
    """Make the response of a command by its name: its answer as it is."""
    if isinstance(answer, Iterator):
        return Answer(200, (_JSON,), (yield from encoded(answer, wanted_of({}))))
    return Answer(200, (_JSON,), (msgspec.json.encode(answer),))


def _made(request: Request, command: Command, answer: Any, query: dict[str, str]) -> Slices[Answer]:
    """Make the response of a command."""
    if request.method in _READS or command.status == 200:
        wanted = wanted_of(query if request.method in _READS else {})
        if isinstance(answer, Iterator):
            pieces = yield from encoded(answer, wanted)
        else:
            pieces = encoded_object(answer, wanted)
        return Answer(200, (_JSON,), pieces)
    if request.method == "PUT" and isinstance(answer, dict) and answer.get("made"):
        return Answer(201)
    if command.status:
        location = answer.get("location") if isinstance(answer, dict) else None
        return Answer(command.status, () if location is None else (("location", location),))
    return Answer(204)


async def _send(
    answer: Answer, headers: list[tuple[str, str]], request: Request, send: Send
) -> None:
    pieces = list(answer.pieces)
    size = sum(map(len, pieces))
    headers = [("date", formatdate(usegmt=True)), *headers, *answer.headers]
    if size >= HTTP_COMPRESS_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
        headers.append(("content-encoding", "gzip"))
        compressed = []
        for piece in _compressed(pieces):
            compressed.append(piece)
            await asyncio.sleep(0)
        pieces = compressed
        size = sum(map(len, pieces))
    if answer.status not in (204, 304):
        headers.append(("content-length", str(size)))
    await _begin(answer.status, headers, send)
    if request.method != "HEAD":
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def send_rows(
    rows: Rows, headers: list[tuple[str, str]], receive: Receive, send: Send
) -> None:
    """Send rows while they are made, until the client closes its connection.

    The next rows are made when the client has read these.
    """
    start = [("date", formatdate(usegmt=True)), *headers]
    gone = asyncio.ensure_future(_disconnected(receive))
    began = False
    try:
        found = await _next_rows(rows, gone)
        await _begin(200, start, send)
        began = True
        while found:
            lines = b"".join(msgspec.json.encode(row) + b"\n" for row in found)
            await send({"type": "http.response.body", "body": lines, "more_body": True})
            found = await _next_rows(rows, gone)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except (CommandRefused, Refusal) as error:
        failure = of_refusal(error)
        if not began:
            await _begin(failure.status, start, send)
        await send({"type": "http.response.body", "body": failure.body + b"\n"})
    finally:
        gone.cancel()
        rows.close()


async def _disconnected(receive: Receive) -> None:
    """Wait until the client has closed its connection."""
    while (await receive())["type"] != "http.disconnect":
        pass  # the end of the body of the request


async def _next_rows(rows: Rows, gone: asyncio.Future[None]) -> list[Row]:
    """Return the next rows; none at the end, or when the client has gone."""
    found = asyncio.ensure_future(rows.next())
    await asyncio.wait((found, gone), return_when=asyncio.FIRST_COMPLETED)
    if found.done():
        return found.result()
    found.cancel()
    return []


async def _begin(status: int, headers: list[tuple[str, str]], send: Send) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
        }
    )


def _compressed(pieces: list[bytes]) -> Iterator[bytes]:
    """Compress pieces of a body, each of at most HTTP_CHUNK_BYTES at a time."""
    compress = zlib.compressobj(HTTP_COMPRESS_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        for at in range(0, len(piece), HTTP_CHUNK_BYTES):
            yield compress.compress(piece[at : at + HTTP_CHUNK_BYTES])
    yield compress.flush()


def application(config: Config, context: AdminContext, dispatcher: Dispatcher) -> ManagementApp:
    """Return the ASGI application of a broker."""
    return ManagementApp(config, context, dispatcher)
