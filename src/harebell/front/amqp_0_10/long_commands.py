"""Commands that may take several turns: complete at their end, and refused late as if at once."""

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
    """Carry a command out.

    Args:
        session: where it came.
        step: does a slice, and at the end of the last one what is to follow.
        ticket: called then; the commit that has to be on disk before the command is complete.
        command: the codes of class and command.
    """
    held = 0

    def whole() -> bool:
        if not step():
            return False
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
