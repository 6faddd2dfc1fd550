"""The ASGI application of the HTTP API: one request, one command.

A request goes through these steps in this order:

    request     its head                                `request`
    origin      no page of another site changes things  `origin`
    open        what needs no login is answered         `web_page`, `open_paths`
    route       the command that the path names         `routes`
    login       the user, and a share of connections    `login`, `connections`
    rights      tags, and the vhost in the path         `rights`
    body        read now that its user may send one     `request`, `forms`
    room        for another answer that is not read     `unread_answers`
    command     its arguments, and rights on the vhost  `fields`, the dispatcher
    answer      rows are sorted, paged and encoded      `answer`, `rows`
    sending     compressed, and sent in pieces          `sending`

Command and answer are made in slices of the broker's turns, and sent with other work in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from harebell.admin.context import CommandRefused
from harebell.admin.streaming import HeldRows
from harebell.base.errors import HarebellError, Refusal
from harebell.base.slices import Slices
from harebell.management.backends.decided import decided
from harebell.management.control.client import AWAY_HEADER
from harebell.management.http.answer import (
    JSON,
    Answer,
    answer_of_route,
    answer_of_rows,
    answer_with_held,
    whole_answer,
)
from harebell.management.http.asgi import ClientDisconnect
from harebell.management.http.errors import (
    UNAUTHORISED,
    HttpError,
    of_refusal,
    too_many_connections,
)
from harebell.management.http.fields import REASON_HEADER, fields_by_name, fields_of, query_of
from harebell.management.http.forms import Upload, upload_of
from harebell.management.http.login import Logins
from harebell.management.http.open_paths import OpenPaths
from harebell.management.http.origin import check_origin, cors_headers
from harebell.management.http.request import HttpRequest
from harebell.management.http.rights import check_rights, check_tags, check_vhost
from harebell.management.http.routes import RouteMatch, Routes, segments_of
from harebell.management.http.sending import PackedBodies, send_answer, send_held, send_rows
from harebell.management.http.sign_in import SignIn
from harebell.management.http.unread_answers import UnreadAnswers
from harebell.management.http.web_page import WebPage
from harebell.management.json_rows import rows_of
from harebell.management.limits import HTTP_ARGUMENTS_BYTES
from harebell.model.settings.metadata import MetadataError

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.admin.context import AdminContext
    from harebell.auth.users import User
    from harebell.config import Config
    from harebell.management.control.dispatcher import Dispatcher
    from harebell.management.http.asgi import Receive, Scope, Send

_GET = "queues.get"
"""The command whose answer may be long although it does not only read."""
_ASK, _CANCEL = "sql.ask", "sql.cancel"
"""The command that ends with its client, because it may take long, and what ends it."""
_DEFINITIONS = (["api", "definitions"], ["api", "all-configuration"])
"""The start of paths that web pages link to: the login may be in the query."""


class _CommandRequest(NamedTuple):
    """A command that a request asks for, and whose user may run commands of its kind.

    Args:
        request: its head, and what reads its body.
        route: the command, and the arguments in the path.
        query: the arguments in the query.
        user: the user on whose behalf the command runs.
        body: the body as it was sent; b"" for a request that reads.
        upload: the file in the body if it is a form.
        linked: whether web pages link to the path, for files that are up- and downloaded.
    """

    request: HttpRequest
    route: RouteMatch
    query: dict[str, str]
    user: User
    body: bytes
    upload: Upload
    linked: bool


class ManagementApp:
    """The ASGI application.

    Args:
        config: the configuration.
        context: the broker and its users.
        dispatcher: runs the commands.
        count: called with how many bytes of answers more, or fewer, wait for their clients.
    """

    def __init__(
        self,
        config: Config,
        context: AdminContext,
        dispatcher: Dispatcher,
        count: Callable[[int], object],
    ) -> None:
        self._context = context
        self._dispatcher = dispatcher
        only_tokens = config.management_oauth_enabled and config.management_oauth_disable_basic_auth
        self._logins = Logins(context, only_tokens=only_tokens)
        self._unread = UnreadAnswers(count)
        self._packed = PackedBodies()
        self._imports: asyncio.Task[None] | None = None
        self.configure(config)

    def configure(self, config: Config) -> None:
        """Use another configuration for requests from now on."""
        self._config = config
        sign_in = SignIn(config)
        self._open = OpenPaths(config, self._logins, sign_in, lambda: self.routes)
        policy = config.management_csp_policy
        own = None if policy == type(config)().management_csp_policy else policy
        self._page = WebPage(config.management_path_prefix, sign_in, own)
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

    def _importing(self) -> asyncio.Task[None]:
        """Return what imports the files of the commands, for all requests that wait for it."""
        if self._imports is None:
            self._imports = asyncio.ensure_future(self._import())
        return self._imports

    async def _import(self) -> None:
        """Import one file per turn: all of them would take a turn of 60 ms."""
        from harebell.admin.catalog import NOUNS

        for noun in NOUNS.values():
            noun.commands  # noqa: B018 - imports a file
            await asyncio.sleep(0)
        self.routes.all  # noqa: B018 - builds the routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if "routes" not in self.__dict__:
            await asyncio.shield(self._importing())
        request = HttpRequest(scope, receive)
        try:
            answer = await self._answer(request)
        except HttpError as error:
            answer = Answer(error.status, (JSON, *error.headers), (error.body,))
        except ClientDisconnect:
            text = f"HTTP: {request.address} has closed its connection during {request}"
            self._context.log("info", text)
            return
        except Exception as error:  # one request must not stop the broker; the client gets no trace
            self._context.log("error", f"HTTP {request}: {error!r}")
            failure = HttpError(500, "internal_error", "the request failed: see the broker's log")
            answer = Answer(500, (JSON,), (failure.body,))
        try:
            await self._send(answer, request, send)
        finally:
            if answer.user:
                self._unread.read(answer.user, answer.size)

    async def _answer(self, request: HttpRequest) -> Answer:
        """Take a request through the steps, up to its answer.

        Raises:
            HttpError: a step has refused it.
            ClientDisconnect: the client has closed its connection.
        """
        config, method = self._config, request.method
        # Before the login: to a request of a foreign page the browser adds its stored login.
        check_origin(method, request.headers, config.management_cors_allow_origins)
        etags = request.headers.get("if-none-match")
        page = self._page.answer(method, request.raw_path, etags)
        if page is not None:
            return page
        segments = segments_of(request.raw_path, config.management_path_prefix)
        answer = await self._open.answer(request, segments)
        if answer is not None:
            return answer
        route = self.routes.find(method, segments)
        query = query_of(request.scope["query_string"])
        linked = segments[:2] in _DEFINITIONS
        user = await self._log_in(request, query, linked=linked)
        # Before the body: a user who may not run the command sends no megabytes first.
        try:
            await self._check_rights(user, route, reads=request.reads)
        except HttpError as error:
            refusal = partial(self._refused, request, user, route, error)
            await self._dispatcher.run(refusal, user.name, reads=True)
            raise
        body = b"" if request.reads else await request.read_body(self._body_limit(route.command))
        upload = upload_of(request.headers.get("content-type"), body) if linked else Upload(body)
        call = _CommandRequest(request, route, query, user, body, upload, linked)
        if request.reads or route.command.name == _GET:
            return await self._run_with_room(call)
        if route.command.name == _ASK:
            return await self._run_while_there(call)
        return await self._run(call)

    async def _log_in(self, request: HttpRequest, query: dict[str, str], *, linked: bool) -> User:
        """Return the user of a request, whose connection counts as the user's from now on.

        Raises:
            HttpError: 401, the login is missing or wrong; 503, the user has too many connections.
        """
        authorization = request.headers.get("authorization")
        # As in RabbitMQ: a link to a download cannot set headers, so its query has the login.
        if linked and authorization is None and "auth" in query:
            authorization = f"Basic {query['auth']}"
        user = await self._logins.user_of(authorization, request.address)
        if not request.connection.logged_in(user.name):
            raise too_many_connections(user.name)
        return user

    async def _check_rights(self, user: User, route: RouteMatch, *, reads: bool) -> None:
        """Check the rights that can be checked before the body is read.

        Raises:
            HttpError: 401.
        """
        check_tags(user, route.command)
        vhost = route.arguments.get("vhost")
        if vhost is None:
            return

        async def check() -> None:
            check_vhost(user, route.command, vhost, self._context.broker, reads=reads)

        await decided(user, check)

    def _context_of(self, request: HttpRequest, user: User) -> AdminContext:
        """Return the context of a user's command."""
        return self._context.on_behalf_of(user, "http", request.address)

    def _refused(
        self, request: HttpRequest, user: User, route: RouteMatch, error: HttpError
    ) -> None:
        """Have the audit trail say that a user may not run a command."""
        context, command = self._context_of(request, user), route.command
        if context.auditor is not None and command.acts and error.status == UNAUTHORISED:
            context.auditor().refused(command, context, route.arguments, error.reason)

    def _body_limit(self, command: Command) -> int:
        """Return the most bytes of the body for a command.

        Only messages and definitions may be large: arguments have to fit into a frame of AMQP.
        """
        limit = self._config.management_body_max_bytes
        large = any(each.argument.body or each.argument.long for each in command.parameters)
        return limit if large else min(limit, HTTP_ARGUMENTS_BYTES)

    async def _run_with_room(self, call: _CommandRequest) -> Answer:
        """Run a command whose answer may be long, when the user has room for another one."""
        user, size = call.user.name, 0
        await self._unread.begin(user)
        try:
            # The client may have gone while its request waited for room: then no answer is made.
            if call.request.connection.gone:
                raise ClientDisconnect
            answer = (await self._run(call))._replace(user=user)
            size = answer.size
        finally:
            self._unread.made(user, size)
        return answer

    async def _run_while_there(self, call: _CommandRequest) -> Answer:
        """Run a question, which is cancelled when its client has gone.

        Raises:
            HttpError: it is refused.
            ClientDisconnect: its client has gone.
        """
        run = asyncio.ensure_future(self._run(call))
        gone = asyncio.ensure_future(call.request.closed())
        try:
            await asyncio.wait((run, gone), return_when=asyncio.FIRST_COMPLETED)
            if run.done():
                return run.result()
            await self._cancel(call)
            await run
            raise ClientDisconnect
        finally:
            run.cancel()
            gone.cancel()

    async def _cancel(self, call: _CommandRequest) -> None:
        """Cancel the question of a request, if it is being answered."""
        from harebell.admin.catalog import find

        command, runner = find(_CANCEL), self._dispatcher
        assert command is not None
        context = self._context_of(call.request, call.user)
        fields = call.route.arguments or msgspec.json.decode(call.body)
        arguments = {"id_": fields["id"]}
        with suppress(HarebellError):
            await runner.run(
                lambda: runner.answer(command, context, arguments, []), call.user.name, reads=True
            )

    async def _run(self, call: _CommandRequest) -> Answer:
        """Run the command, and make its answer.

        Raises:
            HttpError: it is refused.
        """
        request, command = call.request, call.route.command
        missing_stores: list[int] = []
        try:
            answer: Answer = await decided(
                call.user,
                lambda: self._dispatcher.run(
                    lambda: self._slices_of(call, missing_stores),
                    call.user.name,
                    reads=command.reads,
                ),
            )
        except HttpError:
            raise
        except (CommandRefused, Refusal, MetadataError) as error:
            raise of_refusal(error, reads=request.reads or request.deletes) from None
        except HarebellError as error:
            raise of_refusal(error) from None
        # A form in a browser, which goes on to the page that it named, as in RabbitMQ.
        if call.upload.redirect:
            return Answer(303, (("location", call.upload.redirect),))
        if missing_stores:
            answer = answer.with_headers((AWAY_HEADER, ",".join(map(str, missing_stores))))
        if call.linked and request.reads and "download" in call.query:
            name = quote(call.query["download"], safe="")
            # With any letters, which the plain `filename` cannot have (RFC 6266 4.3).
            file = ("content-disposition", f"attachment; filename*=UTF-8''{name}")
            answer = answer.with_headers(file)
        return answer

    def _slices_of(self, call: _CommandRequest, missing_stores: list[int]) -> Slices[Answer]:
        """Return the slices that run the command and make its answer.

        Args:
            call: the command and its user.
            missing_stores: gets the numbers of the stores whose rows the answer has not.
        """
        request, route = call.request, call.route
        try:
            arguments = yield from self._arguments_of(call)
        except HttpError as error:
            self._refused(request, call.user, route, error)
            raise
        # An earlier run may have stopped for a decision about permissions.
        missing_stores.clear()
        context = self._context_of(request, call.user)
        result = yield from rows_of(
            self._dispatcher.answer(
                route.command, context, arguments, missing_stores, reads=request.reads
            )
        )
        if isinstance(result, HeldRows):
            return (yield from answer_with_held(result))
        rows = self._dispatcher.reader_of(result)
        if rows is not None:
            return answer_of_rows(rows)
        if route.by_name:
            return (yield from whole_answer(result))
        query = call.query if request.reads else {}
        return (yield from answer_of_route(request.method, route.command, result, query))

    def _arguments_of(self, call: _CommandRequest) -> Slices[dict[str, Any]]:
        """Return the arguments of a command, after a check of the rights that depend on them."""
        broker, request, route = self._context.broker, call.request, call.route
        if route.by_name:
            arguments = yield from fields_by_name(route.command, call.body)
            check_rights(call.user, route.command, arguments, broker)
            return arguments
        reason = request.headers.get(REASON_HEADER)
        query = call.query if request.reads or request.deletes else {}
        arguments = yield from fields_of(
            route.command, route.arguments, query, call.upload.file, reason
        )
        vhost = arguments.get("vhost")
        if "vhost" not in route.arguments and isinstance(vhost, str):
            # It is in the query or in the body.
            check_vhost(call.user, route.command, vhost, broker, reads=request.reads)
        return arguments

    async def _send(self, answer: Answer, request: HttpRequest, send: Send) -> None:
        """Send an answer with the headers that all answers have."""
        config = self._config
        own = {name for name, _ in answer.headers}
        headers = [header for header in self._headers if header[0] not in own]
        headers += cors_headers(
            request.method,
            request.headers,
            config.management_cors_allow_origins,
            config.management_cors_max_age,
        )
        if answer.rows is not None:
            await send_rows(answer.rows, [*headers, *answer.headers], request.closed(), send)
            return
        send_all = partial(send_answer, answer, headers, request, packed=self._packed)
        if answer.held is None:
            await send_all(send)
        else:
            await send_held(answer.held, request, send, send_all, self._dispatcher.settle)
