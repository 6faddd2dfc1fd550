"""Runs the commands of the control socket, and answers when what they changed is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from harebell.base.errors import Refusal
from harebell.model.events import TOOL_USER
from harebell.model.metadata import MetadataError
from harebell.server.manage.site import Command, Refused, Site


def _command(name: Any) -> Command | None:
    """The command of that name; None when there is none."""
    # Imported with the first request, as most brokers run for long before anybody asks: a hundred
    # structs with their decoders are a tenth of a start.
    from harebell.server.manage.commands import COMMANDS

    return COMMANDS.get(name) if isinstance(name, str) else None


class _Wait:
    """Waits for a commit, as a connection with held output does."""

    def __init__(self, site: Site, ticket: int) -> None:
        self._site = site
        self._ticket = ticket
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def committed(self) -> None:
        """A commit is on disk, ours or an earlier one."""
        if self.done.done():
            return  # whoever asked has gone
        if self._site.broker.commit.done >= self._ticket:
            self.done.set_result(None)
        else:
            self._site.hub.waiting[self] = None


class Desk:
    """Takes requests for commands.

    Args:
        site: what they work on.
        flush: called when the disk or connections have something to do.
    """

    def __init__(self, site: Site, flush: Callable[[], None]) -> None:
        self._site = site
        self._flush = flush

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
        changes = self._site.definitions
        try:
            asked = msgspec.convert(fields, command.fields)
            self._site.broker.events.actor = TOOL_USER
            answer = command.run(self._site, asked)
        except msgspec.ValidationError as error:
            return {"ok": False, "error": f"{name}: {error}"}
        except (Refused, Refusal, MetadataError) as error:
            return {"ok": False, "error": str(error)}
        events = self._site.broker.events
        if events.waiting:
            events.tell()
            self._flush()
        if changes.gathered or self._site.broker.commit.urgent:
            await self._durable()
        else:
            # Somebody may have been told something.
            self._flush()
        return {"ok": True, "answer": answer}

    async def _durable(self) -> None:
        commit = self._site.broker.commit
        waiting = _Wait(self._site, commit.ticket)
        commit.urgent = True
        self._site.hub.waiting[waiting] = None
        self._flush()
        await waiting.done
