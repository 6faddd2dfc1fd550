"""Runs a command at the owner of another store; `command_wire` has the format.

A new connection costs its handshake, of TLS too. So some are kept for a moment, as long as the
same broker owns the store. One is kept only after a command and its one answer: after questions of
the owner, or an interruption, it is closed, so no answer can be taken for that of another command.

A broker that stands by sends its commands to an owner in the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.command import Command, Row
from harebell.admin.context import Unavailable, missing
from harebell.admin.streaming import HeldRows
from harebell.auth.authority import Question, RemoteUser
from harebell.auth.users import User
from harebell.base.errors import HarebellError
from harebell.base.slices import Slices
from harebell.cluster.command_wire import (
    Actor,
    Allowed,
    Delivered,
    Reply,
    Request,
    refusal_of,
)
from harebell.cluster.limits import (
    CLUSTER_IDLE_LINKS,
    CLUSTER_IDLE_SECONDS,
    CLUSTER_LIST_SECONDS,
    CLUSTER_REACH_SECONDS,
    CLUSTER_SILENT_SECONDS,
    CONTROL_IMPORT_SECONDS,
)
from harebell.cluster.lines import Lines
from harebell.cluster.link import open_link
from harebell.management.backends.decided import decided
from harebell.management.backends.internal import InternalAuthority
from harebell.management.control.client import AWAY
from harebell.management.json_rows import EncodedRows
from harebell.server.limits import CONTROL_COMMAND_SECONDS

if TYPE_CHECKING:
    from harebell.cluster.cluster_directory import ClusterDirectory
    from harebell.cluster.stores import ClusterAddress, StoreDirectory

SERVICE = "command"
"""The service at the cluster port that runs commands."""
_DEFINITIONS = "definitions"


class _IdleLines:
    """Connections that have run a command, and wait for the next one.

    Args:
        seconds: how long they wait.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._idle: dict[ClusterAddress, list[tuple[Lines, asyncio.TimerHandle]]] = {}

    def take(self, owner: ClusterAddress) -> Lines | None:
        """Return one to an owner; None if there is none."""
        idle = self._idle.get(owner, [])
        while idle:
            lines, timer = idle.pop()
            timer.cancel()
            if lines.is_open:
                return lines
            lines.close()
        return None

    def keep(self, owner: ClusterAddress, lines: Lines) -> None:
        """Keep one that has run its command, if there is room."""
        idle = self._idle.setdefault(owner, [])
        if len(idle) >= CLUSTER_IDLE_LINKS or not lines.is_open:
            lines.close()
            return
        timer = asyncio.get_running_loop().call_later(self._seconds, self._expire, owner)
        idle.append((lines, timer))

    def close(self) -> None:
        """End all that wait."""
        for idle in self._idle.values():
            for lines, timer in idle:
                timer.cancel()
                lines.close()
        self._idle = {}

    def _expire(self, owner: ClusterAddress) -> None:
        """End the one that waits longest; an owner of an earlier epoch is forgotten in the end."""
        idle = self._idle[owner]
        idle.pop(0)[0].close()
        if not idle:
            del self._idle[owner]


class RemoteRows:
    """The rows that another owner sends; has the methods of `RowReader`.

    Args:
        lines: the connection to it.
        first: the rows that have come already; None if these were all.
        owner: who sends them, for errors.
    """

    def __init__(self, lines: Lines, first: list[Row] | None, owner: str) -> None:
        self._lines = lines
        self._first = first
        self._owner = owner

    async def next(self) -> list[Row]:
        """Return the next rows; an empty list at the end.

        Raises:
            CommandRefused: the stream ends with an error.
        """
        rows = self._first
        self._first = []
        while rows is not None and not rows:
            try:
                async with asyncio.timeout(CONTROL_COMMAND_SECONDS):
                    reply = await self._lines.next(Reply)
            except (OSError, TimeoutError, msgspec.MsgspecError) as error:
                raise Unavailable(f"{self._owner} sends no more rows: {_reason(error)}") from None
            if not reply.ok:
                raise refusal_of(reply)
            rows = reply.rows
        return rows or []

    def close(self) -> None:
        """End the stream, read to its end or not."""
        self._lines.close()


class RemoteHeld:
    """An answer of another owner, which holds something until the client has it.

    Args:
        lines: the connection to it.
        answer: the rows, not decoded yet.
        done: called when the owner knows: keeps the connection for the next command, or ends it.
    """

    def __init__(self, lines: Lines, answer: msgspec.Raw, done: Callable[[], None]) -> None:
        self._lines = lines
        self.answer = answer
        self._done = done

    def end(self, delivered: bool) -> Slices[None]:
        """Say whether the client has got the answer."""
        yield from ()
        self._lines.write(Delivered(delivered))
        self._done()


class CommandCaller:
    """Runs commands at the owners of other stores.

    Args:
        directory: knows where they are.
        idle_seconds: how long connections wait for the next command.
        silent_seconds: how long an owner that runs a command may send nothing.
    """

    def __init__(
        self,
        directory: StoreDirectory,
        idle_seconds: float = CLUSTER_IDLE_SECONDS,
        silent_seconds: float = CLUSTER_SILENT_SECONDS,
    ) -> None:
        self._directory = directory
        self._silent_seconds = silent_seconds
        self._idle = _IdleLines(idle_seconds)

    def close(self) -> None:
        """Close the connections that wait for the next command."""
        self._idle.close()

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
        """Run a command; returns its answer: `msgspec.Raw`, `RemoteRows` or `RemoteHeld`.

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
            named = f"vhost '{about}' is in store {store}, which" if about else f"store {store}"
            raise Unavailable(f"{named} has no owner now: try again in some seconds")
        request = Request(command.name, fields, store, actor_of(user), reads, places, True)
        patience = _patience(command, gathers=gathers)
        lines = self._idle.take(address)
        was_idle = lines is not None
        while True:
            if lines is None:
                lines = await self._open(address, f"{what}{owner}")
            try:
                async with asyncio.timeout(patience):
                    return await self._ask(lines, request, user, owner, command, address, away)
            except (OSError, TimeoutError, msgspec.MsgspecError) as error:
                if reads and was_idle and isinstance(error, ConnectionResetError):
                    # The owner may have ended it while it was idle, before the command came. What
                    # changes something is not sent twice, as it may have been done.
                    lines, was_idle = None, False
                    continue
                end = "" if reads else ": look whether it was done"
                raise Unavailable(f"{what}{owner} did not answer: {_reason(error)}{end}") from None

    async def _open(self, address: ClusterAddress, owner: str) -> Lines:
        """Return a new connection.

        Raises:
            Unavailable: the owner cannot be reached.
        """
        try:
            async with asyncio.timeout(CLUSTER_REACH_SECONDS):
                return Lines(await open_link(address, self._directory.secret, {"service": SERVICE}))
        except (OSError, TimeoutError, HarebellError) as error:
            raise Unavailable(
                f"{owner} cannot be reached at {address.address}: {_reason(error)}; try again in "
                "some seconds"
            ) from None

    async def _ask(
        self,
        lines: Lines,
        request: Request,
        user: User | None,
        owner: str,
        command: Command,
        address: ClusterAddress,
        away: list[int] | None,
    ) -> Any:
        """Send a command over a connection, and return its answer."""
        done: Callable[[], None] = lines.close
        is_over = True
        try:
            await lines.send(request)
            reply, asked = await self._reply(lines, user)
            if command.streams and reply.ok:
                is_over = False
                return RemoteRows(lines, reply.rows, owner)
            if not asked:
                # After a question, a late one could be taken for one about the next user.
                done = partial(self._idle.keep, address, lines)
            if command.holds and reply.ok:
                is_over = False
                return RemoteHeld(lines, reply.answer, done)
            if not reply.ok:
                raise refusal_of(reply)
            if away is not None:
                away += reply.away
            return reply.answer
        finally:
            if is_over:
                done()

    async def _reply(self, lines: Lines, user: User | None) -> tuple[Reply, bool]:
        """Return the line that is the answer, and whether lines with questions came before."""
        asked = False
        while True:
            reply = await lines.next(Reply, self._silent_seconds)
            if reply.working:
                continue
            if reply.question is None:
                return reply, asked
            asked = True
            await lines.send(Allowed(await _allowed(user, reply.question)))


class CommandsFromStandby:
    """Sends commands to an owner.

    Nothing is read from the database before the first command: most standbys get none.

    Args:
        make: returns the directory of the cluster, which is not started yet.
    """

    def __init__(self, make: Callable[[], ClusterDirectory]) -> None:
        self._make = make
        self._directory: ClusterDirectory | None = None
        self._caller: CommandCaller | None = None

    def close(self) -> None:
        """Read no more from the database."""
        if self._caller is not None:
            self._caller.close()
        if self._directory is not None:
            self._directory.close()

    async def serve(self, command: Command, fields: dict[str, Any]) -> dict[str, Any]:
        """Let an owner run a command; returns the fields of its answer."""
        try:
            store = await self._serving_store()
            if self._caller is None:
                self._caller = CommandCaller(await self._started_directory())
            away: list[int] = []
            answer = await self._caller.run(
                store, command, fields, None, reads=False, places=True, away=away
            )
        except HarebellError as error:
            return {"ok": False, "error": str(error)}
        if isinstance(answer, RemoteRows):
            return {"ok": True, "rows": answer}
        if isinstance(answer, RemoteHeld):
            answer = EncodedRows([bytes(answer.answer)], HeldRows([], answer.end))
        return {"ok": True, "answer": answer, **({AWAY: away} if away else {})}

    async def _started_directory(self) -> ClusterDirectory:
        if self._directory is None:
            directory = self._make()
            await directory.start()
            self._directory = directory
        return self._directory

    async def _serving_store(self) -> int:
        """Return a store whose owner serves, the first one if it does.

        Raises:
            CommandRefused: there is none.
        """
        directory = await self._started_directory()
        for store, owner in sorted(directory.view.owners.items()):
            if owner.serves:
                return store
        raise missing("this broker stands by, and no broker serves clients now")


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
    backends = [each for each in user.authorities if not isinstance(each, InternalAuthority)]

    async def check() -> bool:
        return all(each.allows(question) for each in backends)

    return bool(backends) and await decided(user, check)


def _patience(command: Command, *, gathers: bool) -> float:
    """Return how many seconds an answer may take."""
    if command.noun.name == _DEFINITIONS:
        return CONTROL_IMPORT_SECONDS
    return CLUSTER_LIST_SECONDS if gathers else CONTROL_COMMAND_SECONDS


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it takes too long"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
