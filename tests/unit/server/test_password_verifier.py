"""Passwords with slow hashes: compared in a thread, in turns, and once per user."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable

from harebell.auth import password_hashes
from harebell.auth.users import Doubt, User, Users
from harebell.server.password_verifier import PasswordVerifier
from tests.patience import reached


class Dispatcher:
    """PasswordVerifier over a loop, and what was answered, in order."""

    def __init__(self) -> None:
        self.users = Users(os.urandom)
        self.comparisons: list[str] = []
        loop = asyncio.get_running_loop()
        self.verifying = PasswordVerifier(loop, self.users, lambda: None, self._compare)
        self.answers: list[tuple[str, bool]] = []
        self.asked = 0

    def _compare(self, password: str, stored: str, algorithm: str) -> bool:
        self.comparisons.append(password)
        self.niceness = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        return password_hashes.matches(password, stored, algorithm)

    def ask(
        self, name: str, user: User, password: str, address: str = "a", *, want: bool = True
    ) -> None:
        self.asked += want
        doubt = Doubt(user, password)
        self.verifying(
            doubt, address, lambda right: self.answers.append((name, right)), lambda: want
        )

    async def done(self) -> list[tuple[str, bool]]:
        await reached(lambda: len(self.answers) == self.asked)
        return self.answers


def run(test: Callable[[Dispatcher], Awaitable[None]]) -> None:
    async def begin() -> None:
        dispatcher = Dispatcher()
        try:
            await asyncio.wait_for(test(dispatcher), 60)
        finally:
            dispatcher.verifying.close()

    asyncio.run(begin())


def test_the_right_password_is_found_and_known_from_then_on() -> None:
    async def test(dispatcher: Dispatcher) -> None:
        ann = dispatcher.users.add("ann", "secret")
        assert not dispatcher.users.proven(ann, "secret")
        dispatcher.ask("wrong", ann, "guess")
        dispatcher.ask("first", ann, "secret")
        dispatcher.ask("second", ann, "secret")
        dispatcher.ask("late", ann, "another guess")
        assert dict(await dispatcher.done()) == {
            "wrong": False,
            "first": True,
            "second": True,
            "late": False,
        }
        assert dispatcher.comparisons == ["guess", "secret", "another guess"]
        assert dispatcher.users.judge("ann", "secret") is ann
        assert isinstance(dispatcher.users.judge("ann", "guess"), Doubt)
        dispatcher.users.give(ann, dispatcher.users.derived("new"))
        assert isinstance(dispatcher.users.judge("ann", "secret"), Doubt)

    run(test)


def test_on_a_busy_machine_a_comparison_gets_as_much_time_as_the_event_loop() -> None:
    """Else it would also be held back with the interpreter's lock, and the event loop with it."""

    async def test(dispatcher: Dispatcher) -> None:
        dispatcher.ask("ann", dispatcher.users.add("ann", "secret"), "secret")
        await dispatcher.done()
        assert dispatcher.niceness == os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    run(test)


def test_one_address_does_not_keep_the_others_waiting() -> None:
    async def test(dispatcher: Dispatcher) -> None:
        ann, bob = dispatcher.users.add("ann", "secret"), dispatcher.users.add("bob", "secret")
        for number in range(5):
            dispatcher.ask(f"guess {number}", ann, f"guess {number}", "hostile")
        dispatcher.ask("bob", bob, "secret", "10.0.0.1")
        names = [name for name, _ in await dispatcher.done()]
        assert names.index("bob") <= 2

    run(test)


def test_nothing_is_compared_for_a_peer_that_is_gone() -> None:
    async def test(dispatcher: Dispatcher) -> None:
        ann = dispatcher.users.add("ann", "secret")
        dispatcher.ask("gone", ann, "guess", want=False)
        dispatcher.ask("there", ann, "secret")
        assert await dispatcher.done() == [("there", True)]
        assert dispatcher.comparisons == ["secret"]

    run(test)
