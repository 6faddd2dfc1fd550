"""The class execution: synchronising, results, and exceptions of the peer (AMQP 0-10, class 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.wire.v010 import commands

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session


def sync(session: Session, command: commands.ExecutionSync) -> None:
    """execution.sync: nothing to do, for completions are sent in every turn."""


def result(session: Session, command: commands.ExecutionResult) -> None:
    """execution.result: of a command of ours; none of them has one that we need."""


def exception(session: Session, command: commands.ExecutionException) -> None:
    """execution.exception: the peer could not carry out a command of ours, and ends the session."""
    session.connection.settings.journal(
        "error",
        f"{session.connection.peer}: {session!r} ended by the client: "
        f"{command.error_code} {command.description or ''}",
    )
    session.ask_to_detach()


COMMANDS: dict[type, Callable[[Any, Any], None]] = {
    commands.ExecutionSync: sync,
    commands.ExecutionResult: result,
    commands.ExecutionException: exception,
}
