"""Runs a command where its subject lives: here, at the owner of another store, or everywhere.

`harebell.admin.place` says where each command runs. What runs elsewhere is sent there over the
cluster port with the user on whose behalf it runs, and the owner checks the user's rights.

A list of all stores answers with what there is: stores without an owner are left out, and the
answer says which. What makes no sense without all of them is refused instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from harebell.admin.context import CheckFailed, CommandRefused, Unavailable, checked_name
from harebell.admin.limits import VHOST_NAME_BYTES
from harebell.admin.merging import NEEDS_ALL, merged, merged_failure
from harebell.admin.place import (
    ANYWHERE,
    CHECK_OF_ALL,
    END_OF_VHOST,
    EVERYWHERE,
    FIRST,
    IN_PARTS,
    NEW_VHOST,
    SHARED,
    STORE,
    WORKERS,
)
from harebell.admin.streaming import HeldRows
from harebell.base.errors import ErrorKind, HarebellError
from harebell.base.slices import Slices, consumed, gathered
from harebell.cluster.command_caller import CommandCaller, RemoteHeld, RemoteRows
from harebell.cluster.command_wire import Call
from harebell.cluster.definitions_import import import_parts
from harebell.cluster.limits import CLUSTER_COPY_SECONDS
from harebell.cluster.stores import FIRST_STORE
from harebell.management.json_rows import rows_of
from harebell.management.sliced_json import decoded
from harebell.model.events import TOOL_USER
from harebell.server.limits import STORAGE_STORES

if TYPE_CHECKING:
    from harebell.admin.command import Command
    from harebell.admin.context import AdminContext
    from harebell.cluster.stores import StoreDirectory
    from harebell.management.control.dispatcher import Dispatcher

_T = TypeVar("_T")


class ClusterCommands:
    """Runs commands in a cluster with several stores.

    Args:
        dispatcher: runs commands in this process.
        directory: knows the stores and their owners.
        context: the broker of this process.
        copy: copies the users of this process, which owns store 1, to the other owners;
            returns when those that are there have them.
        workers: whether all owners are workers of one broker.

    Attributes:
        changes: counts commands here that changed what `copy` copies.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        directory: StoreDirectory,
        context: AdminContext,
        copy: Callable[[], Awaitable[None]],
        *,
        workers: bool = False,
    ) -> None:
        self.changes = 0
        self._workers = workers
        self._dispatcher = dispatcher
        self._directory = directory
        self._log = context.log
        self._copy = copy
        self._caller = CommandCaller(directory)
        self._away: set[int] = set()
        # Jobs are named by their numbers alone, so those of different stores have to differ.
        context.broker.jobs.number_by(directory.number, STORAGE_STORES)

    def close(self) -> None:
        """Close the connections to the other owners that wait for the next command."""
        self._caller.close()

    def run(
        self,
        command: Command,
        context: AdminContext,
        arguments: dict[str, Any],
        away: list[int],
        *,
        reads: bool,
    ) -> Slices[Any]:
        """Run a command where its subject lives; returns its answer.

        Args:
            command: what is asked for.
            context: the broker, and the user on whose behalf the command runs.
            arguments: those of the command's function.
            away: gets the numbers of the stores that are missing in the answer.
            reads: whether it came to a route that only reads.

        Raises:
            Unavailable: the store in question has no owner now.
            CommandRefused: the command is refused.
        """
        call = Call(command, context, arguments, reads)
        place, vhost = command.place, command.vhost_of(arguments)
        own = self._directory.number
        if place == NEW_VHOST:
            return (yield from self._new(call, vhost))
        if place == END_OF_VHOST:
            return (yield from self._end(call, vhost))
        if vhost:
            # A vhost that does not exist is refused by this broker.
            return (yield from self.run_at(self._directory.store_of(vhost) or own, call, vhost))
        if place in (FIRST, SHARED):
            return (yield from self.run_at(FIRST_STORE, call))
        if place == STORE:
            return (yield from self.run_at(self._checked(arguments["store"]), call))
        if place == EVERYWHERE or (place == WORKERS and self._workers):
            return (yield from self._everywhere(call, away))
        if place == ANYWHERE:
            return (yield from self._anywhere(call))
        if place == IN_PARTS:
            return (yield from import_parts(self, self._directory, call))
        return (yield from self.run_here(command, context, arguments))

    def _checked(self, store: int) -> int:
        """Return the number of a store.

        Raises:
            CommandRefused: there is no such store.
        """
        if not FIRST_STORE <= store < FIRST_STORE + self._directory.stores:
            raise CommandRefused(
                f"there is no store {store}: the cluster has {self._directory.stores}",
                ErrorKind.NOT_FOUND,
            )
        return store

    def run_here(
        self, command: Command, context: AdminContext, arguments: dict[str, Any]
    ) -> Slices[Any]:
        """Run a command in this process."""
        shared = command.place in (SHARED, IN_PARTS) and not command.vhost_of(arguments)
        if shared and self._directory.number == FIRST_STORE:
            self.changes += 1
        return (yield from rows_of(command.run(context, **arguments)))

    async def copy_users(self) -> None:
        """Copy the users to the other owners, after a change at the owner of store 1.

        The next command of the client may go to another one.
        """
        try:
            async with asyncio.timeout(CLUSTER_COPY_SECONDS):
                await self._copy()
        except (TimeoutError, HarebellError) as error:
            why = str(error) or "they take too long"
            self._log("warning", f"the other owners do not know a change of users yet: {why}")

    def run_at(self, store: int, call: Call, vhost: str = "") -> Slices[Any]:
        """Run a command at the owner of a store.

        Args:
            store: its number.
            call: the command.
            vhost: what it is about, for errors; "" for no vhost.
        """
        if store == self._directory.number:
            return (yield from self.run_here(call.command, call.context, call.arguments))
        return (yield from _decoded((yield from _waited(self._sent(store, call, vhost)))))

    def durably(self, store: int, call: Call, vhost: str = "") -> Slices[Any]:
        """Run a command at the owner of a store, and wait until its changes are on disk."""
        if store != self._directory.number:
            return (yield from self.run_at(store, call, vhost))
        actor = TOOL_USER if call.actor is None else call.actor.name
        return (
            yield from _waited(
                self._dispatcher.run(
                    lambda: self.run_here(call.command, call.context, call.arguments), actor
                )
            )
        )

    def _sent(
        self, store: int, call: Call, vhost: str = "", *, gathers: bool = False
    ) -> Coroutine[Any, Any, Any]:
        return self._caller.run(
            store,
            call.command,
            call.command.fields_of(call.arguments),
            call.actor,
            reads=call.reads,
            about=vhost,
            gathers=gathers,
        )

    def placed(self, vhost: str, store: int | None = None) -> Slices[int]:
        """Return the store of a vhost, which is chosen if the vhost is a new one.

        Args:
            vhost: its name.
            store: for a new one; None for that whose owner has the least to do.
        """
        chosen = self._directory.store_of(vhost)
        if chosen is not None:
            return chosen
        return (yield from _waited(self._directory.place(vhost, store)))

    def forget(self, vhost: str) -> Slices[None]:
        """Remove a vhost from the directory of the cluster."""
        yield from _waited(self._directory.forget(vhost))

    def _new(self, call: Call, vhost: str) -> Slices[Any]:
        """Make a vhost in the store that is chosen for it, or change one."""
        is_new = self._directory.store_of(vhost) is None
        if is_new:
            # Refuse what no owner would do before a store is chosen.
            checked_name(vhost, "vhost", VHOST_NAME_BYTES)
        requested = call.arguments.get("store")
        if requested is not None:
            self._checked(requested)
        store = yield from self.placed(vhost, requested)
        try:
            return (yield from self.durably(store, call, vhost))
        except (Unavailable, TimeoutError):
            # The owner may have made it: to forget it would leave a vhost that no owner finds.
            raise
        except HarebellError:
            if is_new:
                yield from self.forget(vhost)
            raise

    def _end(self, call: Call, vhost: str) -> Slices[Any]:
        """Delete a vhost.

        The store comes first: a vhost that is forgotten too early could be made again in another
        store, and the messages of the old one would be left.
        """
        store = self._directory.store_of(vhost)
        try:
            answer = yield from self.durably(store or self._directory.number, call, vhost)
        except CommandRefused as error:
            if store is not None and error.kind is ErrorKind.NOT_FOUND:
                # An earlier deletion has ended between the two steps.
                yield from self.forget(vhost)
            raise
        yield from self.forget(vhost)
        return answer

    def _others(self) -> Iterator[int]:
        for store in range(FIRST_STORE, FIRST_STORE + self._directory.stores):
            if store != self._directory.number:
                yield store

    def _anywhere(self, call: Call) -> Slices[Any]:
        """Ask each owner until one has what the command is about."""
        try:
            return (yield from self.run_at(self._directory.number, call))
        except HarebellError as error:
            missing = _if_missing(error)
        away: list[int] = []
        for store in self._others():
            try:
                return (yield from self.run_at(store, call))
            except Unavailable:
                away.append(store)
            except HarebellError as error:
                _if_missing(error)
        if away:
            raise Unavailable(f"{missing}; or it is in {_named(away)}")
        raise missing

    def _everywhere(self, call: Call, away: list[int]) -> Slices[Any]:
        """Ask all owners at the same time, and make one answer of theirs."""
        loop = asyncio.get_running_loop()
        tasks = {
            store: loop.create_task(self._sent(store, call, gathers=True))
            for store in self._others()
        }
        stores = (self._directory.number, *tasks)
        if call.command.place == WORKERS:
            # The first one has the names of log files as they were given.
            stores = tuple(sorted(stores))
        answers: list[Any] = []
        failures: list[CheckFailed] = []
        missing: HarebellError | None = None
        try:
            for store in stores:
                task = tasks.get(store)
                try:
                    if task is None:
                        answers.append((yield from self.run_at(store, call)))
                    else:
                        answer = yield from _result_of(task)
                        answers.append((yield from _decoded(answer)))
                except Unavailable:
                    away.append(store)
                except CheckFailed as failed:
                    failures.append(failed)
                except HarebellError as error:
                    missing = missing or _if_missing(error)
        finally:
            # None is left running, and no error unread, when this owner's answer is a refusal.
            for task in tasks.values():
                task.cancel()
                task.add_done_callback(_take_error)
        self._note(away)
        command = call.command
        if failures:
            raise merged_failure(failures)
        if away and command.merge == CHECK_OF_ALL:
            raise CheckFailed(f"not available: {_named(away)}", stores=[*away])
        if away and (command.merge in NEEDS_ALL or not answers):
            raise Unavailable(f"this needs all stores; try again in some seconds: {_named(away)}")
        if not answers:
            assert missing is not None, "each owner has answered or refused"
            raise missing
        return merged(command, answers, call.arguments.get("limit", 0))

    def _note(self, away: list[int]) -> None:
        """Write to the log which stores are missing in lists, and when they are back."""
        for store in away:
            if store not in self._away:
                self._away.add(store)
                self._log("warning", f"lists have no rows of {_named([store])}")
        for store in self._away.difference(away):
            self._away.discard(store)
            self._log("info", f"lists have the rows of store {store} again")


def _if_missing(error: HarebellError) -> HarebellError:
    """Return the refusal for what is not in a store; any other one is raised."""
    if getattr(error, "kind", None) is not ErrorKind.NOT_FOUND:
        raise error
    return error


def _named(away: list[int]) -> str:
    stores = ", ".join(f"store {each}" for each in away)
    have = "has no owner that answers" if len(away) == 1 else "have no owners that answer"
    return f"{stores}, which {have}"


def _waited(work: Coroutine[Any, Any, _T]) -> Slices[_T]:
    """Wait for something in slices, and return its result."""
    return (yield from _result_of(asyncio.get_running_loop().create_task(work)))


def _result_of(task: asyncio.Task[_T]) -> Slices[_T]:
    while not task.done():
        yield task
    return task.result()


def _take_error(task: asyncio.Task[Any]) -> None:
    """Take the error of a task whose answer is not needed."""
    if not task.cancelled():
        task.exception()


def _decoded(answer: Any) -> Slices[Any]:
    """Decode an answer in slices: a list row by row, when its rows are taken."""
    if isinstance(answer, RemoteRows):
        return answer
    if isinstance(answer, RemoteHeld):
        raw = msgspec.json.decode(answer.answer, type=list[msgspec.Raw])
        return HeldRows((yield from gathered(_rows(raw))), answer.end)
    text = bytes(answer)
    if text[:1] == b"[":
        return _rows(msgspec.json.decode(text, type=list[msgspec.Raw]))
    return (yield from decoded(text))


def _rows(rows: list[msgspec.Raw]) -> Iterator[Any]:
    for each in consumed(rows):
        yield msgspec.json.decode(each)
