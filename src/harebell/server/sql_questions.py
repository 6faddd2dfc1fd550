"""Answer SQL of users, each question in a process of its own.

The process is a client of this broker by a pair of sockets: its connection is that of the user who
asks, so it reads what the user may read, and its work has the budget of any connection of the user.
It is limited in time, processor time and memory, and ends with its answer.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.context import CommandRefused
from harebell.admin.limits import (
    SQL_ANSWER_BYTES,
    SQL_PROCESS_BYTES,
    SQL_QUESTION_MEMORY_BYTES,
    SQL_QUESTIONS,
    SQL_SECONDS,
    SQL_USER_QUESTIONS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from harebell.auth.users import User

    Serve = Callable[[User, socket.socket], Awaitable[None]]

_PROGRAM = "harebell.pipeline.sql.embedded.answering"
_KEPT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "HAREBELL_IMPL")
"""Variables that the process needs to find its modules."""


class SqlQuestions:
    """The questions that are being answered.

    Args:
        loop: the event loop.
        serve: serves a socket as the connection of a user.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, serve: Serve) -> None:
        self._loop = loop
        self._serve = serve
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}

    def ask(self, user: User, vhost: str, question: dict[str, Any]) -> Future[bytes]:
        """Begin to answer a question; return its answer, as JSON.

        Raises:
            CommandRefused: too many are being answered.
        """
        own = sum(name == user.name for name, _ in self._running)
        if own >= SQL_USER_QUESTIONS:
            raise CommandRefused("your last question is still being answered: cancel it, or wait")
        if len(self._running) >= SQL_QUESTIONS:
            raise CommandRefused(
                f"{SQL_QUESTIONS} questions of others are being answered: ask again in a moment"
            )
        answer: Future[bytes] = Future()
        key = user.name, str(question["id"])
        task = self._loop.create_task(self._answer(user, vhost, question, answer))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))
        return answer

    def cancel(self, user: str, number: str) -> bool:
        """End a question of a user; False if there is none of that id."""
        task = self._running.get((user, number))
        return task is not None and task.cancel()

    async def stop(self) -> None:
        """End all questions."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(
        self, user: User, vhost: str, question: dict[str, Any], answer: Future[bytes]
    ) -> None:
        try:
            async with asyncio.timeout(SQL_SECONDS):
                made = await self._asked(user, vhost, question)
        except TimeoutError:
            made = _problem(f"the question took more than {SQL_SECONDS:g} seconds, and was ended")
        except asyncio.CancelledError:
            made = _problem("the question was cancelled")
        except OSError as error:
            made = _problem(f"no process can be started for it: {error.strerror}")
        if not answer.cancelled():
            answer.set_result(made)

    async def _asked(self, user: User, vhost: str, question: dict[str, Any]) -> bytes:
        ours, theirs = socket.socketpair()
        process = None
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", _PROGRAM, str(theirs.fileno())),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={name: os.environ[name] for name in _KEPT if name in os.environ},
                    cwd="/",
                    start_new_session=True,
                )
            ours.setblocking(False)
            await self._serve(user, ours)
            return await _conversation(process, user, vhost, question)
        except BaseException:
            ours.close()
            raise
        finally:
            if process is not None and process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                # Its end is waited for by the event loop's watcher.


async def _conversation(
    process: asyncio.subprocess.Process, user: User, vhost: str, question: dict[str, Any]
) -> bytes:
    """Send the question, and return the answer."""
    asked = {
        **question,
        "vhost": vhost,
        "user": user.name,
        "seconds": SQL_SECONDS,
        "memory": SQL_QUESTION_MEMORY_BYTES,
        "process_bytes": SQL_PROCESS_BYTES,
        "answer_bytes": SQL_ANSWER_BYTES,
    }
    assert process.stdin is not None, "a pipe"
    assert process.stdout is not None, "a pipe"
    process.stdin.write(msgspec.json.encode(asked))
    process.stdin.close()
    parts: list[bytes] = []
    while part := await process.stdout.read(65_536):
        parts.append(part)
        if sum(map(len, parts)) > SQL_ANSWER_BYTES:
            return _problem("the answer is too long")
    return b"".join(parts) or _problem(
        "the question needs more memory than a question may have: let it read or keep less"
    )


def _problem(text: str) -> bytes:
    return msgspec.json.encode({"problem": text})
