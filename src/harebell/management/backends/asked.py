"""Decisions of a remote server about one user, which are asked for once and then known.

What is allowed stays known for `DECISION_SECONDS`. A refusal is forgotten when the operation that
needed it has ended, so that the next one asks again, as RabbitMQ does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from harebell.auth.authority import SOME, Question, Undecided
from harebell.auth.limits import PERMISSION_CACHE_ENTRIES
from harebell.management.backends.contract import Decide
from harebell.management.limits import DECISION_SECONDS


class AskedAuthority:
    """The decisions about one user.

    Args:
        decide: asks the server.
        clock: returns seconds, monotonic.
    """

    def __init__(self, decide: Decide, clock: Callable[[], float]) -> None:
        self._decide = decide
        self._clock = clock
        self._allowed: dict[Question, float] = {}
        self._refused: set[Question] = set()
        self._asking: dict[Question, asyncio.Task[None]] = {}

    def allows(self, question: Question) -> bool:
        """True if the server allows it.

        A server can be asked about a name only, so it allows something.

        Raises:
            Undecided: it was not asked yet.
        """
        if question.about == SOME:
            return True
        until = self._allowed.get(question)
        if until is not None and self._clock() < until:
            return True
        if question in self._refused:
            return False
        raise Undecided(partial(self._ask, question))

    def settled(self) -> None:
        """Forget refusals."""
        self._refused.clear()

    def _ask(self, question: Question, done: Callable[[], None]) -> None:
        task = self._asking.get(question)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._answer(question))
            self._asking[question] = task
        task.add_done_callback(lambda _: done())

    async def _answer(self, question: Question) -> None:
        try:
            allowed = await self._decide(question)
        finally:
            self._asking.pop(question, None)
        if not allowed:
            self._allowed.pop(question, None)
            self._refused.add(question)
            return
        if len(self._allowed) >= PERMISSION_CACHE_ENTRIES:
            self._allowed.clear()
        self._allowed[question] = self._clock() + DECISION_SECONDS
