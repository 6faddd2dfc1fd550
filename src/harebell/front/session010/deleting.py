"""exchange.delete and queue.delete of whatever has many bindings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.front.deletion import Deletion
from harebell.front.session010 import failure

if TYPE_CHECKING:
    from harebell.front.session010.session import Session
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.kind import Queue


def perform_deletion(
    session: Session,
    thing: Queue | Exchange,
    finish: Callable[[], int],
    command: tuple[int, int],
) -> None:
    """Delete it; the command is complete when that is on disk.

    Args:
        session: where it was asked for.
        thing: the queue or the exchange.
        finish: deletes it without bindings; returns the ticket of the commit to wait for.
        command: the codes of class and command.
    """
    held = 0

    def finished() -> None:
        ticket = finish()
        if held:
            session.let_complete(held, ticket)
        else:
            session.wait_for(ticket)

    def failed(refusal: Exception) -> None:
        failure.session_caught(session, refusal, *command)

    deletion = Deletion(session.vhost, thing, finished, failed)
    deletion.perform(session.connection)
    if deletion.late:
        held = session.hold()
