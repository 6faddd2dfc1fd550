"""Answers that are being made, and those that their clients have not read yet.

Answers are kept in memory until they are read, and a list may have many MiB. So a user's requests
for more wait while the user has HTTP_UNREAD_BYTES unread, or HTTP_ANSWERS are being made for the
user. A client that reads nothing is cut off in the end, and then the requests go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable

from harebell.management.limits import HTTP_ANSWERS, HTTP_UNREAD_BYTES


class UnreadAnswers:
    """Counts the answers of a broker to its users over HTTP.

    Args:
        count: called with how many bytes more, or fewer, are kept.
    """

    def __init__(self, count: Callable[[int], object]) -> None:
        self._count = count
        self._making: Counter[str] = Counter()
        self._unread: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def begin(self, user: str) -> None:
        """Wait until another answer may be made for a user; `made` has to follow."""
        while self._making[user] >= HTTP_ANSWERS or self._unread[user] >= HTTP_UNREAD_BYTES:
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(user, deque()).append(room)
            await room
        self._making[user] += 1
        self._wake(user)

    def made(self, user: str, size: int) -> None:
        """Note that an answer was made; `read` has to follow if it has a size.

        Args:
            user: the name of the user who sent the request.
            size: bytes that are kept until they are read.
        """
        self._making[user] -= 1
        self._keep(user, size)
        self._wake(user)

    def read(self, user: str, size: int) -> None:
        """Note that an answer was read, or that its client has gone."""
        self._keep(user, -size)
        self._wake(user)

    def _keep(self, user: str, byte_count: int) -> None:
        self._unread[user] += byte_count
        self._count(byte_count)

    def _wake(self, user: str) -> None:
        """Let the oldest request that waits check for room; one that finds room wakes the next."""
        waiting = self._waiting.get(user, ())
        while waiting:
            room = waiting.popleft()
            if not room.done():
                room.set_result(None)
                return
        self._waiting.pop(user, None)
        for counts in (self._making, self._unread):
            if not counts[user]:
                del counts[user]
