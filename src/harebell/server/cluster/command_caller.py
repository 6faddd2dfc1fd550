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
    CLUSTER_IDLE_SECONDS,
    CLUSTER_LIST_SECONDS,
    CLUSTER_REACH_SECONDS,
    CONTROL_COMMAND_SECONDS,
    CONTROL_IMPORT_SECONDS,
)
from harebell.server.backends.decided import decided
from harebell.server.backends.internal import InternalAuthority
from harebell.server.cluster.command_links import CommandLink, CommandLinks
from harebell.server.cluster.command_wire import Actor, Allowed, Reply, Request, refusal_of

if TYPE_CHECKING:
    from harebell.server.cluster.store_directory import StoreDirectory
    from harebell.server.cluster.stores import ClusterAddress

_DEFINITIONS = "definitions"


class RemoteRows:
    """The rows that another owner sends; has the methods of `RowReader`.

    Args:
        link: the connection to it.
        first: the rows that have come already; None if these were all.
        owner: who sends them, for errors.
    """

    def __init__(self, link: CommandLink, first: list[Row] | None, owner: str) -> None:
        self._link = link
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
                    reply = msgspec.json.decode(await self._link.lines.next(), type=Reply)
            except (OSError, TimeoutError, msgspec.MsgspecError) as error:
                raise Unavailable(f"{self._owner} sends no more rows: {_why(error)}") from None
            if not reply.ok:
                raise refusal_of(reply)
            found = reply.rows
        return found or []

    def close(self) -> None:
        """End the stream, read to its end or not."""
        self._link.close()


class CommandCaller:
    """Runs commands at the owners of other stores.

    Args:
        directory: knows where they are.
        idle_seconds: how long connections wait for the next command.
    """

    def __init__(
        self, directory: StoreDirectory, idle_seconds: float = CLUSTER_IDLE_SECONDS
    ) -> None:
        self._directory = directory
        self._links = CommandLinks(idle_seconds)

    def close(self) -> None:
        """Close the connections that wait for the next command."""
        self._links.close()

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
        away: list[int] | None = None,
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
            away: gets the numbers of the stores that are missing in the answer then.

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
        request = Request(command.name, fields, store, actor_of(user), reads, places)
        patience = _patience(command, gathers=gathers)
        link = self._links.take(store, address)
        while True:
            if link is None:
                link = await self._open(address, f"{what}{owner}")
            try:
                async with asyncio.timeout(patience):
                    return await self._ask(
                        link, request, user, owner, streams=command.streams, away=away
                    )
            except (OSError, TimeoutError, msgspec.MsgspecError) as error:
                if reads and link.used and isinstance(error, ConnectionResetError):
                    # It may have been closed before the command was there. A new one is not used.
                    link = None
                    continue
                end = "" if reads else ": look whether it was done"
                raise Unavailable(f"{what}{owner} did not answer: {_why(error)}{end}") from None

    async def _open(self, address: ClusterAddress, owner: str) -> CommandLink:
        """Return a new connection.

        Raises:
            Unavailable: the owner cannot be reached.
        """
        try:
            async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                return await self._links.open(address, self._directory.secret)
        except (OSError, TimeoutError, HarebellError) as error:
            raise Unavailable(
                f"{owner} cannot be reached at {address.address}: {_why(error)}; try again in some "
                "seconds"
            ) from None

    async def _ask(
        self,
        link: CommandLink,
        request: Request,
        user: User | None,
        owner: str,
        *,
        streams: bool,
        away: list[int] | None,
    ) -> Any:
        """Send a command over a connection, and return its answer."""
        kept = False
        try:
            link.writer.write(msgspec.json.encode(request) + b"\n")
            await link.writer.drain()
            reply, asked = await self._reply(link, user)
            if streams and reply.ok:
                kept = True
                return RemoteRows(link, reply.rows, owner)
            if not asked:
                kept = True
                self._links.keep(request.store, link)
            if not reply.ok:
                raise refusal_of(reply)
            if away is not None:
                away += reply.away
            return reply.answer
        finally:
            if not kept:
                link.close()

    async def _reply(self, link: CommandLink, user: User | None) -> tuple[Reply, bool]:
        """Return the line that is the answer, and whether lines with questions came before."""
        asked = False
        while True:
            reply = msgspec.json.decode(await link.lines.next(), type=Reply)
            if reply.question is None:
                return reply, asked
            asked = True
            allowed = await _allowed(user, reply.question)
            link.writer.write(msgspec.json.encode(Allowed(allowed)) + b"\n")
            await link.writer.drain()


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
