"""The users of a cluster: the owner of store 1 writes them down, other owners take them over.

    {"alice": {...}, "bob": {...}}    JSON, sorted by name; the values are `user_fields`

Permissions are not among them: those live with their vhost.

There may be many users, so they are written down and read over several turns of the event loop. A
user may change meanwhile: then all are written down again.

A user who was removed must not stay with another owner, so a copy that failed is made again until
it succeeds, and none overtakes another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from harebell.admin.accounts import changing, remove_users, set_user_fields, user_fields
from harebell.auth.users import User, Users
from harebell.base.errors import HarebellError
from harebell.base.slices import Slices
from harebell.cluster.limits import CLUSTER_COPY_RETRY_SECONDS, CLUSTER_USERS_PER_TURN
from harebell.server.background_tasks import BackgroundTasks

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext


class UsersCopy:
    """Writes down the users for the other owners.

    Args:
        users: those of the owner of store 1.
        write: stores the users, as JSON.
    """

    def __init__(self, users: Users, write: Callable[[str], Awaitable[None]]) -> None:
        self._users = users
        self._write = write
        self._turn = asyncio.Lock()
        self._requested = 0
        self._copied = 0
        self._tasks = BackgroundTasks()
        self._repeating = False

    async def renew(self) -> None:
        """Store the users as they are now, or later; all callers that wait share a copy."""
        self._requested += 1
        # Shield: a cancelled caller's copy must not overtake a newer one.
        await asyncio.shield(self._spawn(self._copy(self._requested)))

    def close(self) -> None:
        """Make no more copies."""
        self._tasks.cancel()

    async def _copy(self, request: int) -> None:
        try:
            async with self._turn:
                if self._copied >= request:
                    return  # a copy that began after this change has it
                # Not counted after the copy: what changes meanwhile may be missing in it.
                newest = self._requested
                await self._write(await written(self._users))
                self._copied = newest
        except (OSError, HarebellError):
            if not self._repeating:
                self._repeating = True
                self._spawn(self._repeat())
            raise

    async def _repeat(self) -> None:
        """Copy again until all changes are copied."""
        while self._copied < self._requested:
            await asyncio.sleep(CLUSTER_COPY_RETRY_SECONDS)
            with suppress(OSError, HarebellError):
                await self._copy(self._requested)
        self._repeating = False

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._tasks.start(work)
        task.add_done_callback(_take_error)
        return task


def _take_error(task: asyncio.Task[None]) -> None:
    """Take the error of a copy from the event loop: callers that wait for the copy raise it."""
    if not task.cancelled():
        task.exception()


async def written(users: Users) -> str:
    """Return all users without their permissions, as JSON; always the same for the same users."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    parts = []
    for count, user in enumerate(sorted(users.all(), key=lambda user: user.name), start=1):
        parts.append(encode(user.name) + b":" + encode(user_fields(user)))
        if count % CLUSTER_USERS_PER_TURN == 0:
            await asyncio.sleep(0)
    return (b"{" + b",".join(parts) + b"}").decode()


def take_over(text: str, context: AdminContext) -> Slices[None]:
    """Replace the users by the stored ones; revoke removed users.

    Args:
        text: what `written` has returned in the owner of store 1; "" if it has not written yet.
        context: the broker.

    Raises:
        StoreError: the text is damaged.
    """
    if not text:
        return
    users, definitions = context.users, context.definitions
    stored = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    for user in users.all():
        if user.name not in stored:
            yield from remove_users(context, [user])
    for name, encoded in stored.items():
        yield None
        fields: dict[str, Any] = msgspec.json.decode(encoded)
        existing = users.get(name)
        if existing is not None and user_fields(existing) == fields:
            continue
        user = User(name, "") if existing is None else existing
        with changing(user, users, definitions):
            set_user_fields(user, fields)
