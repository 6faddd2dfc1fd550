"""Runs the commands that other brokers of the cluster send to the owner of a store.

The peer has proven that it belongs to the cluster. A user on whose behalf it asks has no more
rights than at the HTTP API of this broker: tags and permissions are looked up here.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.catalog import find
from harebell.admin.context import AdminContext, CommandRefused, Unavailable
from harebell.auth.authority import Authority, Question, RemoteUser
from harebell.auth.users import User
from harebell.base.errors import ErrorKind, HarebellError
from harebell.base.slices import Slices
from harebell.cluster.command_wire import (
    Actor,
    Allowed,
    Delivered,
    Request,
    refused,
)
from harebell.cluster.limits import CLUSTER_WORKING_SECONDS
from harebell.cluster.lines import Lines, LineService
from harebell.management.backends.asked import AskedAuthority
from harebell.management.backends.decided import decided
from harebell.management.backends.internal import InternalAuthority
from harebell.management.control.dispatcher import Dispatcher, encoded_answer
from harebell.management.control.row_reader import Rows
from harebell.management.control.server import pieces_of, send_rows
from harebell.management.http.rights import check_rights
from harebell.management.json_rows import held_of
from harebell.server.limits import CONTROL_COMMAND_SECONDS, CONTROL_TIMEOUT_SECONDS

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.cluster.commands import ClusterCommands
    from harebell.cluster.stores import StoreDirectory


class CommandService(LineService):
    """The service "command" of the cluster port.

    Args:
        context: the broker and its users.
        dispatcher: runs the commands.
        directory: knows the store of this process.
        commands: runs commands here.
        working_seconds: how often a caller hears that its command still runs.
    """

    def __init__(
        self,
        context: AdminContext,
        dispatcher: Dispatcher,
        directory: StoreDirectory,
        commands: ClusterCommands,
        working_seconds: float = CLUSTER_WORKING_SECONDS,
    ) -> None:
        super().__init__(context.log)
        self._working_seconds = working_seconds
        self._context = context
        self._dispatcher = dispatcher
        self._directory = directory
        self._commands = commands

    async def _talk(self, lines: Lines) -> None:
        has_asked = False
        # After a question the connection ends: a late answer would be taken for a command.
        while not has_asked:
            async with asyncio.timeout(CONTROL_TIMEOUT_SECONDS):
                line = await lines.next_bytes()
            questions = _Questions(lines)
            working = _Working(lines, self._working_seconds)
            try:
                answer = await self._answer(line, questions, working)
            finally:
                working.end()
            has_asked = questions.end()
            rows = answer.get("rows")
            if isinstance(rows, Rows):
                await send_rows(rows, lines.reader, lines.writer)
                return
            await self._send(answer, lines)

    async def _send(self, answer: dict[str, Any], lines: Lines) -> None:
        """Send an answer; what it holds is settled as the other broker says."""
        held, delivered = held_of(answer.get("answer")), False
        try:
            for piece in pieces_of(answer):
                lines.writer.write(piece)
                async with asyncio.timeout(CONTROL_TIMEOUT_SECONDS):
                    await lines.writer.drain()
            delivered = held is not None and await _delivered(lines)
        finally:
            if held is not None:
                self._dispatcher.settle(held, delivered=delivered)

    async def _answer(
        self, line: bytes, questions: _Questions, working: _Working
    ) -> dict[str, Any]:
        """Run the command of a request; returns the fields of the answer."""
        try:
            request = msgspec.json.decode(line, type=Request)
            if request.waits:
                working.begin()
            if request.store != self._directory.number:
                raise Unavailable(
                    f"store {request.store} has another owner now: try again in some seconds"
                )
            command = find(request.ask)
            if command is None:
                raise CommandRefused(
                    f"the owner of store {request.store} does not know the command "
                    f"'{request.ask}': run one version of Harebell in the whole cluster"
                )
            arguments = command.arguments_of(request.fields)
            if request.places and request.actor is None:
                away: list[int] = []
                answer = await self._place(command, arguments, away)
                return {**self._reply(answer), **({"away": away} if away else {})}
            user = self._user(request.actor, questions)
            answer = await self._run(command, arguments, user, reads=request.reads)
        except msgspec.MsgspecError as error:
            return {"ok": False, "error": str(error)}
        except HarebellError as error:
            return refused(error)
        return self._reply(answer)

    def _reply(self, answer: Any) -> dict[str, Any]:
        rows = self._dispatcher.reader_of(answer)
        return {"ok": True, "answer": answer} if rows is None else {"ok": True, "rows": rows}

    async def _place(self, command: Command, arguments: dict[str, Any], away: list[int]) -> Any:
        """Run a command as if it had come at the control socket of this broker."""
        return await self._dispatcher.run(
            lambda: encoded_answer(
                self._dispatcher.answer(command, self._context, arguments, away)
            ),
            reads=command.reads,
        )

    async def _run(
        self, command: Command, arguments: dict[str, Any], user: User | None, *, reads: bool
    ) -> Any:
        if user is None:
            return await self._dispatcher.run(
                lambda: encoded_answer(self._commands.run_here(command, self._context, arguments)),
                reads=command.reads,
            )
        context = self._context.on_behalf_of(user)

        def run() -> Slices[Any]:
            check_rights(user, command, arguments, self._context.broker, reads=reads)
            return (yield from encoded_answer(self._commands.run_here(command, context, arguments)))

        return await decided(
            user, lambda: self._dispatcher.run(run, user.name, reads=command.reads)
        )

    def _user(self, actor: Actor | None, questions: _Questions) -> User | None:
        """Return the user on whose behalf a command runs; None for the control socket.

        Raises:
            CommandRefused: there is no such user here.
        """
        if actor is None:
            return None
        users = self._context.users
        if not actor.remote:
            user = users.get(actor.name)
            if user is None:
                raise CommandRefused(
                    f"the owner of store {self._directory.number} knows no user '{actor.name}'",
                    ErrorKind.ACCESS_REFUSED,
                )
            return user
        authorities: list[Authority] = []
        if actor.internal:
            authorities.append(InternalAuthority(users, actor.name))
        if actor.asks or not actor.internal:
            authorities.append(AskedAuthority(questions.decide, self._context.clock))
        return RemoteUser(actor.name, actor.tags, tuple(authorities))


async def _delivered(lines: Lines) -> bool:
    """Return whether the client of the other broker has got what was held for it."""
    try:
        async with asyncio.timeout(CONTROL_COMMAND_SECONDS):
            return (await lines.next(Delivered)).delivered
    except msgspec.MsgspecError:
        return False


class _Working:
    """Says to the broker that has sent a command that it is still being run.

    Args:
        lines: the connection to it.
        seconds: the time between two such lines.
    """

    def __init__(self, lines: Lines, seconds: float) -> None:
        self._lines = lines
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Say it from time to time."""
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._say)

    def end(self) -> None:
        """Say it no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _say(self) -> None:
        self.begin()
        self._lines.write({"working": True})


class _Questions:
    """Asks the broker that has sent a command what its user may do.

    Args:
        lines: the connection to it.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._turn = asyncio.Lock()
        self._has_asked = False
        self._over = False

    def end(self) -> bool:
        """Ask nothing any more: the next command has another user. True if something was asked."""
        self._over = True
        return self._has_asked

    async def decide(self, question: Question) -> bool | None:
        """Ask; None if there is no answer, which is a refusal."""
        async with self._turn:
            if self._over:
                return None
            self._has_asked = True
            try:
                async with asyncio.timeout(CONTROL_TIMEOUT_SECONDS):
                    await self._lines.send({"question": question})
                    return (await self._lines.next(Allowed)).allowed
            except (OSError, TimeoutError, msgspec.MsgspecError):
                return None
