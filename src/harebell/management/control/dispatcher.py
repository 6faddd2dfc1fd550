"""Run commands for the control socket, HTTP and other owners, and wait until they are on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from harebell.admin.context import AdminContext, WrongArgument
from harebell.admin.streaming import HeldRows, RowStream
from harebell.base.errors import HarebellError
from harebell.base.slices import Slices, ended
from harebell.front.common.turns import Account
from harebell.management.control.client import AWAY, WRONG
from harebell.management.control.row_reader import RowReader, Rows
from harebell.management.json_rows import (
    EncodedRows,
    encoded_members,
    encoded_rows,
    held_of,
    rows_of,
)
from harebell.management.limits import COMMAND_ENTRY_UNITS, LIST_AT_ONCE
from harebell.model.events import TOOL_USER

if TYPE_CHECKING:
    from harebell.admin.command import Command


def _find(name: Any) -> Command | None:
    """Return the command of that name; None if there is none."""
    # Imported at the first request, because most brokers do not get one for a long time.
    from harebell.admin.catalog import find

    return find(name) if isinstance(name, str) else None


class _CommitWaiter:
    """Waits for a commit, as a connection with held output does."""

    def __init__(self, context: AdminContext, ticket: int) -> None:
        self._context = context
        self._ticket = ticket
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def committed(self) -> None:
        """Finish if the awaited commit is on disk; else wait for the next one."""
        if self.done.done():
            return  # the client has closed the socket
        if self._context.broker.commit.done >= self._ticket:
            self.done.set_result(None)
        else:
            self._context.registry.waiting[self] = None


class _Execution:
    """One execution of a command, in one turn of the loop or in several.

    Args:
        context: the broker and its users.
        account: the account that the work is charged to.
        run: the command, with its arguments.
        actor: the user that events name.
    """

    def __init__(
        self, context: AdminContext, account: Account, run: Callable[[], Any], actor: str
    ) -> None:
        self._context = context
        self._actor = actor
        self._account = account
        self._run = run
        self._slices: Slices[Any] | None = None
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Any] = self._loop.create_future()

    def go_on(self) -> None:
        """Run the command within the work budget of this turn."""
        turns, events = self._context.registry.turns, self._context.broker.events
        begun = turns.current is None
        if begun:
            turns.begin_anyway(self._account)
        events.actor = self._actor
        try:
            if not self._go_on():
                turns.wait(self._account, self)
        except Exception as error:  # raised to the task that waits for the answer
            if not self.done.done():
                self.done.set_exception(error)
        finally:
            if begun:
                turns.end()
        if events.waiting:
            events.publish()

    def _go_on(self) -> bool:
        """Run slices until the turn is over; True if nothing is left for the next turn."""
        if self._slices is None:
            answer = self._run()
            if not isinstance(answer, Generator):
                return self._answer(answer)
            self._slices = answer
        work = self._context.broker.work
        while True:
            try:
                future = next(self._slices)
            except StopIteration as end:
                return self._answer(end.value)
            if future is not None:
                future.add_done_callback(self._resume)
                return True
            if work.charge(COMMAND_ENTRY_UNITS):
                return False

    def _resume(self, _: Future[Any]) -> None:
        """Schedule the next slice; called in the thread that has completed the awaited future."""
        with suppress(RuntimeError):  # the broker has stopped
            self._loop.call_soon_threadsafe(self.go_on)

    def _answer(self, answer: Any) -> bool:
        # A command runs to its end even if the client has closed the socket.
        if not self.done.done():
            self.done.set_result(answer)
        elif (held := held_of(answer)) is not None:
            ended(held.end(False))
        return True


def encoded_answer(answer: Any) -> Slices[Any]:
    """Encode the rows of an answer that is a list."""
    answer = yield from rows_of(answer)
    if isinstance(answer, HeldRows):
        try:
            encoded = yield from encoded_rows(answer.rows)
        except BaseException:
            ended(answer.end(False))
            raise
        encoded.held = answer
        return encoded
    if isinstance(answer, Iterator):
        answer = yield from encoded_rows(answer)
    return answer


def _encoded_object(answer: Any) -> Slices[Any]:
    """Encode an answer that is an object with long lists, such as definitions, in slices."""
    answer = yield from encoded_answer(answer)
    if isinstance(answer, dict) and any(
        isinstance(each, list) and len(each) > LIST_AT_ONCE for each in answer.values()
    ):
        return EncodedRows((yield from encoded_members(answer)))
    return answer


class Elsewhere(Protocol):
    """The part of `harebell.cluster.commands` that the dispatcher uses.

    Attributes:
        changes: counts commands here that may have changed users of the whole cluster.
    """

    changes: int

    def run(
        self,
        command: Command,
        context: AdminContext,
        arguments: dict[str, Any],
        away: list[int],
        *,
        reads: bool,
    ) -> Slices[Any]:
        """Run a command where its subject lives; returns its answer."""

    async def copy_users(self) -> None:
        """Copy the users to the other owners."""


class Dispatcher:
    """Runs commands by name.

    Args:
        context: the broker and its users.
        flush: called when there is a commit to start or output to write.

    Attributes:
        context: as given.
        cluster: runs commands at the owners of other stores; None if there is one store.
    """

    def __init__(self, context: AdminContext, flush: Callable[[], None]) -> None:
        self.context = context
        self._flush = flush
        # All commands together have the work budget of one user.
        self._account = context.registry.turns.account("tools")
        self.cluster: Elsewhere | None = None

    def knows(self, name: Any) -> bool:
        """True if there is a command of that name."""
        return _find(name) is not None

    async def serve(self, name: str, fields: dict[str, Any], peer: str = "") -> dict[str, Any]:
        """Run a command, and wait until its changes are durable.

        Args:
            name: the name of the command.
            fields: its arguments.
            peer: who asks for it.

        Returns:
            The answer, with `EncodedRows` for a list, and for an object with a long one; `Rows` in
            the field "rows" if the command has a stream of rows. The caller has to close them. The
            field "away" has the stores of a cluster that are missing in the answer.
        """
        command = _find(name)
        assert command is not None, "`knows` was asked before"
        away: list[int] = []
        try:
            arguments = command.arguments_of(fields)
            context = self.context.on_behalf_of(None, peer=peer)
            answer = await self.run(
                lambda: _encoded_object(self.answer(command, context, arguments, away)),
                reads=command.reads,
            )
        except msgspec.ValidationError as error:
            return {"ok": False, "error": f"{name}: {error}", WRONG: True}
        except WrongArgument as error:
            return {"ok": False, "error": str(error), WRONG: True}
        except HarebellError as error:
            return {"ok": False, "error": str(error)}
        rows = self.reader_of(answer)
        if rows is not None:
            return {"ok": True, "rows": rows}
        return {"ok": True, "answer": answer, **({AWAY: away} if away else {})}

    def answer(
        self,
        command: Command,
        context: AdminContext,
        arguments: dict[str, Any],
        away: list[int],
        *,
        reads: bool = False,
    ) -> Any:
        """Run a command where its subject is; called in a turn of the broker.

        Args:
            command: what is asked for.
            context: the broker, and the user on whose behalf the command runs.
            arguments: those of the command's function.
            away: gets the numbers of the stores that are missing in the answer.
            reads: whether it only reads.

        Returns:
            Its answer, or slices of it.
        """
        if context.auditor is not None and command.acts:
            return context.auditor().recorded(self._placed, command, context, arguments, away)
        return self._placed(command, context, arguments, away, reads=reads)

    def _placed(
        self,
        command: Command,
        context: AdminContext,
        arguments: dict[str, Any],
        away: list[int],
        *,
        reads: bool = False,
    ) -> Any:
        if self.cluster is None:
            return command.run(context, **arguments)
        return self.cluster.run(command, context, arguments, away, reads=reads)

    async def run(
        self, run: Callable[[], Any], actor: str = TOOL_USER, *, reads: bool = False
    ) -> Any:
        """Run a command, and wait until its changes are durable.

        Args:
            run: the command with its arguments; it may return `Slices`, which have other work in
                between.
            actor: the user that events name.
            reads: whether it only reads: then it does not wait for the commits of others, and is
                answered while a disk or a database is not.

        Raises:
            CommandRefused, Refusal, MetadataError: the command is refused.
        """
        changes_before = 0 if self.cluster is None else self.cluster.changes
        execution = _Execution(self.context, self._account, run, actor)
        execution.go_on()
        answer = await execution.done
        try:
            await self._finish(changes_before, reads=reads)
        except BaseException:
            if (held := held_of(answer)) is not None:
                self.settle(held, delivered=False)
            raise
        return answer

    async def _finish(self, changes_before: int, *, reads: bool) -> None:
        """Wait until the changes of a command are durable, and known to the cluster.

        Args:
            changes_before: the number of changes that the cluster knew before.
            reads: whether the command only reads.
        """
        changes, cluster = self.context.definitions, self.cluster
        events = self.context.broker.events
        if events.waiting:
            events.publish()
            self._flush()
        if not reads and (changes.gathered or self.context.broker.commit.urgent):
            await self._durable()
        else:
            # A command may have caused output of connections, such as connection.close.
            self._flush()
        if cluster is not None and cluster.changes != changes_before:
            await cluster.copy_users()

    def settle(self, held: HeldRows, *, delivered: bool) -> None:
        """Settle what an answer held, in this turn and, if it is much, in the next ones.

        Args:
            held: the rows of the answer.
            delivered: whether the whole answer was handed to the connection of the client.
        """
        settling = _Execution(self.context, self._account, lambda: held.end(delivered), TOOL_USER)
        settling.go_on()
        self._flush()

    def reader_of(self, answer: Any) -> Rows | None:
        """Return a reader of the rows of a command; None if its answer is no stream of rows."""
        if isinstance(answer, RowStream):
            return RowReader(self.context, self._account, answer)
        return answer if isinstance(answer, Rows) else None

    async def _durable(self) -> None:
        commit = self.context.broker.commit
        waiter = _CommitWaiter(self.context, commit.ticket)
        commit.urgent = True
        self.context.registry.waiting[waiter] = None
        self._flush()
        await waiter.done
