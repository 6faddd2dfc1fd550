"""Commands that may take several turns; a late refusal is sent like an immediate one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.base.work import Step
from harebell.front.common.long_operation import LongOperation

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session


def perform(
    session: Session, step: Step, ticket: Callable[[], int], command: tuple[int, int]
) -> None:
    """Execute a command in slices.

    Args:
        session: the session of the command.
        step: does a slice; the last one also does what follows.
        ticket: called afterwards; returns the commit that completes the command when it is on disk.
        command: the codes of class and command.
    """
    held = 0

    def whole() -> bool:
        if not step():
            return False
        # Held if it took several turns: by now `current` may be another command.
        if held:
            session.let_complete(held, ticket())
        else:
            session.wait_for(ticket())
        return True

    def failed(error: Exception) -> None:
        session.caught(error, *command)

    operation = LongOperation(whole, failed)
    operation.perform(session.connection)
    if operation.late:
        held = session.hold()
