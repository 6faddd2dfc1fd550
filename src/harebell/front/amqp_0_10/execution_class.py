"""The class execution: synchronising, results, and exceptions of the peer (AMQP 0-10, class 3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.wire.v010 import commands

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session


def sync(session: Session, command: commands.ExecutionSync) -> None:
    """execution.sync: no-op, because completions are sent in every turn."""


def result(session: Session, command: commands.ExecutionResult) -> None:
    """execution.result: ignored, no command of the broker needs a result."""


def exception(session: Session, command: commands.ExecutionException) -> None:
    """execution.exception: the peer failed to execute a command of the broker; end the session."""
    session.connection.log(
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
