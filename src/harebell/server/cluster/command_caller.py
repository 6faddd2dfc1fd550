"""Runs a command at the owner of another store; `command_wire` has the format."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.command import Command, Row
from harebell.admin.context import Unavailable
from harebell.auth.authority import Question, RemoteUser
from harebell.auth.users import User
from harebell.base.errors import HarebellError
from harebell.base.limits import (
    CLUSTER_LIST_SECONDS,
    CLUSTER_REACH_SECONDS,
    CONTROL_COMMAND_SECONDS,
    CONTROL_IMPORT_SECONDS,
)
from harebell.server.backends.decided import decided
from harebell.server.backends.internal import InternalAuthority
from harebell.server.cluster.command_wire import (
    Actor,
    Allowed,
    LineReader,
    Reply,
    Request,
    refusal_of,
)
from harebell.server.cluster.link import open_link, streams

if TYPE_CHECKING:
    from harebell.server.cluster.contract import StoreDirectory

SERVICE = "command"
"""The service at the cluster port that runs commands."""
_DEFINITIONS = "definitions"


class RemoteRows:
    """The rows that another owner sends; has the methods of `RowReader`.

    Args:
        lines: the connection to it.
        writer: the same connection.
        first: the rows that have come already; None if these were all.
        owner: who sends them, for errors.
    """

    def __init__(
        self, lines: LineReader, writer: asyncio.StreamWriter, first: list[Row] | None, owner: str
    ) -> None:
        self._lines = lines
        self._writer = writer
        self._first = first
        self._owner = owner

    async def next(self) -> list[Row]:
        """Return the next rows; an empty list at the end.

        Raises:
            CommandRefused: the stream ends with an error.
        """
        found = self._first
        self._first = []
        while found is not None and not found:
            try:
                async with asyncio.timeout(CONTROL_COMMAND_SECONDS):
                    reply = msgspec.json.decode(await self._lines.next(), type=Reply)
            except (OSError, TimeoutError, msgspec.MsgspecError) as error:
                raise Unavailable(f"{self._owner} sends no more rows: {_why(error)}") from None
            if not reply.ok:
                raise refusal_of(reply)
            found = reply.rows
        return found or []

    def close(self) -> None:
        """End the stream, read to its end or not."""
        self._writer.close()


class CommandCaller:
    """Runs commands at the owners of other stores.

    Args:
        directory: knows where they are.
    """

    def __init__(self, directory: StoreDirectory) -> None:
        self._directory = directory

    async def run(
        self,
        store: int,
        command: Command,
        fields: dict[str, Any],
        user: User | None,
        *,
        reads: bool,
        about: str = "",
        gathers: bool = False,
        places: bool = False,
    ) -> Any:
        """Run a command; returns its answer as `msgspec.Raw`, or `RemoteRows`.

        Args:
            store: where it runs.
            command: what is run there.
            fields: its arguments.
            user: on whose behalf; None for the control socket.
            reads: whether it only reads.
            about: the vhost, for errors; "" for none.
            gathers: whether other owners are asked, too.
            places: whether the owner looks where the command runs.

        Raises:
            Unavailable: the store has no owner now, or its owner does not answer.
            CommandRefused: the owner refuses it.
        """
        owner = f"the owner of store {store}"
        what = f"vhost '{about}' is in store {store}, and " if about else ""
        address = self._directory.address_of(store)
        if address is None:
            which = "which" if about else f"store {store}"
            before = f"vhost '{about}' is in store {store}, " if about else ""
            raise Unavailable(f"{before}{which} has no owner now: try again in some seconds")
        try:
            async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                transport = await open_link(address, self._directory.secret, {"service": SERVICE})
        except (OSError, TimeoutError, HarebellError) as error:
            raise Unavailable(
                f"{what}{owner} cannot be reached at {address.address}: {_why(error)}; try again "
                "in some seconds"
            ) from None
        reader, writer = streams(transport)
        streaming = False
        try:
            request = Request(command.name, fields, store, actor_of(user), reads, places)
            async with asyncio.timeout(_patience(command, gathers=gathers)):
                writer.write(msgspec.json.encode(request) + b"\n")
                await writer.drain()
                lines = LineReader(reader)
                reply = await self._reply(lines, writer, user)
            if not reply.ok:
                raise refusal_of(reply)
            if command.streams:
                streaming = True
                return RemoteRows(lines, writer, reply.rows, owner)
            return reply.answer
        except (OSError, TimeoutError, msgspec.MsgspecError) as error:
            end = "" if reads else ": look whether it was done"
            raise Unavailable(f"{what}{owner} did not answer: {_why(error)}{end}") from None
        finally:
            if not streaming:
                writer.close()

    async def _reply(
        self, lines: LineReader, writer: asyncio.StreamWriter, user: User | None
    ) -> Reply:
        """Return the line that is the answer; those with questions are answered."""
        while True:
            reply = msgspec.json.decode(await lines.next(), type=Reply)
            if reply.question is None:
                return reply
            allowed = await _allowed(user, reply.question)
            writer.write(msgspec.json.encode(Allowed(allowed)) + b"\n")
            await writer.drain()


def actor_of(user: User | None) -> Actor | None:
    """Return how another owner names a user."""
    if user is None:
        return None
    if not isinstance(user, RemoteUser):
        return Actor(user.name)
    internal = [isinstance(each, InternalAuthority) for each in user.authorities]
    return Actor(user.name, True, user.tags, asks=not all(internal), internal=any(internal))


async def _allowed(user: User | None, question: Question) -> bool:
    """Say what the backends of a user allow; the permissions of vhosts are with their owners."""
    if not isinstance(user, RemoteUser):
        return False
    asked = [each for each in user.authorities if not isinstance(each, InternalAuthority)]

    async def check() -> bool:
        return all(each.allows(question) for each in asked)

    return bool(asked) and await decided(user, check)


def _patience(command: Command, *, gathers: bool) -> float:
    """Return how many seconds an answer may take."""
    if command.noun.name == _DEFINITIONS:
        return CONTROL_IMPORT_SECONDS
    return CLUSTER_LIST_SECONDS if gathers else CONTROL_COMMAND_SECONDS


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it takes too long"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
