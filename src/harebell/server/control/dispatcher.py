"""Runs the commands of the control socket, and answers when what they changed is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import msgspec

from harebell.admin.context import AdminContext, Command, Refused
from harebell.base.errors import Refusal
from harebell.base.limits import COMMAND_ENTRY_UNITS
from harebell.base.slices import Slices
from harebell.front.common.turns import Account
from harebell.model.events import TOOL_USER
from harebell.model.metadata import MetadataError


def _command(name: Any) -> Command | None:
    """The command of that name; None when there is none."""
    # Imported with the first request, as most brokers run for long before anybody asks: a hundred
    # structs with their decoders are a tenth of a start.
    from harebell.admin.registry import COMMANDS

    return COMMANDS.get(name) if isinstance(name, str) else None


class _Wait:
    """Waits for a commit, as a connection with held output does."""

    def __init__(self, context: AdminContext, ticket: int) -> None:
        self._context = context
        self._ticket = ticket
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def committed(self) -> None:
        """A commit is on disk, ours or an earlier one."""
        if self.done.done():
            return  # whoever asked has gone
        if self._context.broker.commit.done >= self._ticket:
            self.done.set_result(None)
        else:
            self._context.hub.waiting[self] = None


class _Running:
    """A command that is run, at once or in several turns.

    Args:
        context: what it works on.
        account: who pays for it.
        run: what it does.
        asked: its fields.
    """

    def __init__(
        self,
        context: AdminContext,
        account: Account,
        run: Callable[[AdminContext, Any], Any],
        asked: Any,
    ):
        self._context = context
        self._account = account
        self._run = run
        self._asked = asked
        self._slices: Slices[Any] | None = None
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[Any] = self._loop.create_future()

    def go_on(self) -> None:
        """Do what there is time for in this turn."""
        turns, events = self._context.hub.turns, self._context.broker.events
        begun = turns.current is None
        if begun:
            turns.begin_anyway(self._account)
        events.actor = TOOL_USER
        try:
            if not self._go_on():
                turns.wait(self._account, self)
        except Exception as error:  # for whoever waits for the answer, whatever it is
            if not self.done.done():
                self.done.set_exception(error)
        finally:
            if begun:
                turns.end()
        if events.waiting:
            events.tell()

    def _go_on(self) -> bool:
        """One slice; True when there is nothing to do in the next turn."""
        if self._slices is None:
            answer = self._run(self._context, self._asked)
            if not isinstance(answer, Generator):
                return self._answer(answer)
            self._slices = answer
        work = self._context.broker.work
        while True:
            try:
                wanted = next(self._slices)
            except StopIteration as end:
                return self._answer(end.value)
            if wanted is not None:
                wanted.add_done_callback(self._found)
                return True
            if work.charge(COMMAND_ENTRY_UNITS):
                return False

    def _found(self, _: Future[Any]) -> None:
        """A thread has found what the command waits for; called there."""
        with suppress(RuntimeError):  # the broker has stopped
            self._loop.call_soon_threadsafe(self.go_on)

    def _answer(self, answer: Any) -> bool:
        # Whoever asked may have gone; what they asked for is done nevertheless.
        if not self.done.done():
            self.done.set_result(answer)
        return True


class Dispatcher:
    """Takes requests for commands.

    Args:
        context: what they work on.
        flush: called when the disk or connections have something to do.
    """

    def __init__(self, context: AdminContext, flush: Callable[[], None]) -> None:
        self._context = context
        self._flush = flush
        # All who ask share what one user may do in a turn.
        self._account = context.hub.turns.account("tools")

    def knows(self, name: Any) -> bool:
        """Whether there is a command of that name."""
        return _command(name) is not None

    async def serve(self, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Run a command, and wait until it is durable.

        Args:
            name: of the command.
            fields: what it takes.
        """
        command = _command(name)
        assert command is not None, "whoever asks has made sure that it is known"
        changes = self._context.definitions
        try:
            asked = msgspec.convert(fields, command.fields)
            answer = await self._run(command, asked)
        except msgspec.ValidationError as error:
            return {"ok": False, "error": f"{name}: {error}"}
        except (Refused, Refusal, MetadataError) as error:
            return {"ok": False, "error": str(error)}
        events = self._context.broker.events
        if events.waiting:
            events.tell()
            self._flush()
        if changes.gathered or self._context.broker.commit.urgent:
            await self._durable()
        else:
            # Somebody may have been told something.
            self._flush()
        return {"ok": True, "answer": answer}

    def _run(self, command: Command, asked: Any) -> asyncio.Future[Any]:
        """Begin to run a command, and let others have their turn in between."""
        running = _Running(self._context, self._account, command.run, asked)
        running.go_on()
        return running.done

    async def _durable(self) -> None:
        commit = self._context.broker.commit
        waiting = _Wait(self._context, commit.ticket)
        commit.urgent = True
        self._context.hub.waiting[waiting] = None
        self._flush()
        await waiting.done
