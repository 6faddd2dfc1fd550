"""Input that waits for an answer from outside: a permission, a new secret.

Backends of users answer later. The input that needs the answer becomes the first long operation of
its connection, so further input of the peer waits behind it, and other connections are served.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.auth.authority import Undecided
from harebell.base.work import Step

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection


def decide(connection: BaseConnection, undecided: Undecided, again: Callable[[], object]) -> None:
    """Ask for a decision about a permission, and repeat the input that needs it.

    Args:
        connection: the connection of the input.
        undecided: what the check of the permission raised.
        again: repeats the input, and handles every other error.
    """
    user = connection.user

    def step() -> bool:
        try:
            if not connection.closing:
                again()
        except Undecided as another:
            # One input may need several decisions: the next one was not known before.
            another.ask(connection.wake)
            connection.suspend()
            return False
        connection.deciding = False
        user.settled()
        return True

    connection.deciding = True
    _hold_input(connection, step)
    undecided.ask(connection.wake)


def when_decided(connection: BaseConnection, then: Callable[[], object]) -> None:
    """Call `then` now, or after the input that waits for a decision about a permission."""
    if not connection.deciding:
        then()
        return

    def step() -> bool:
        then()
        return True

    # The first operation is the input that waits.
    connection.tasks.insert(1, step)


def await_answer(
    connection: BaseConnection,
    ask: Callable[[Callable[[], None]], None],
    then: Callable[[], object],
) -> None:
    """Wait for an answer from elsewhere.

    Args:
        connection: the connection whose input waits.
        ask: starts the request; calls its argument on arrival, never re-entrantly.
        then: continues after the answer, unless the connection has ended.
    """

    def step() -> bool:
        if not connection.closing:
            then()
        return True

    _hold_input(connection, step)
    ask(connection.wake)


def _hold_input(connection: BaseConnection, step: Step) -> None:
    """Hold the input of a connection until a step that `wake` continues is done."""
    # Before other long operations: those wait for this input.
    connection.tasks.insert(0, step)
    connection.scanner.hold = True
    connection.suspend()
