"""The users of a cluster are written down in turns, and once for all who wait."""

from __future__ import annotations

import asyncio
import os

import msgspec
import pytest

from harebell.auth.users import User, Users
from harebell.cluster import users_copy
from harebell.cluster.limits import CLUSTER_USERS_PER_TURN
from harebell.cluster.users_copy import UsersCopy, written
from tests.patience import reached

MANY = 5_000


def users_of(*names: str) -> Users:
    found = Users(os.urandom)
    for name in names:
        found.put(User(name, f"hash of {name}"))
    return found


def test_other_work_has_its_turns_while_many_users_are_written_down() -> None:
    users = users_of(*(f"user-{number}" for number in range(MANY)))
    turns = 0

    async def other_work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def run() -> str:
        working = asyncio.get_running_loop().create_task(other_work())
        text = await written(users)
        working.cancel()
        return text

    text = asyncio.run(run())
    assert turns >= MANY // CLUSTER_USERS_PER_TURN
    assert len(msgspec.json.decode(text)) == MANY


def test_the_same_users_are_written_down_alike_in_whatever_order_they_came() -> None:
    one, other = users_of("a", "b", 'c"\n'), users_of('c"\n', "b", "a")
    text = asyncio.run(written(one))
    assert text == asyncio.run(written(other))
    found = msgspec.json.decode(text)
    assert list(found) == ["a", "b", 'c"\n']
    assert found["b"]["password_hash"] == "hash of b"
    assert asyncio.run(written(users_of())) == "{}"


def test_changes_that_come_together_are_written_once_and_the_last_is_in_the_last() -> None:
    users = users_of("first")
    texts: list[str] = []

    async def write(text: str) -> None:
        texts.append(text)
        await asyncio.sleep(0.01)

    async def run() -> None:
        copy = UsersCopy(users, write)
        changes = [asyncio.create_task(copy.renew())]
        while not texts:
            await asyncio.sleep(0)
        # While the first copy is on its way.
        for number in range(20):
            users.put(User(f"later-{number}", ""))
            changes.append(asyncio.create_task(copy.renew()))
        await asyncio.gather(*changes)

    asyncio.run(run())
    assert [len(msgspec.json.decode(text)) for text in texts] == [1, 21]


def test_a_copy_that_fails_is_made_again_without_another_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(users_copy, "CLUSTER_COPY_RETRY_SECONDS", 0.01)
    texts: list[str] = []

    async def write(text: str) -> None:
        texts.append(text)
        if len(texts) < 4:
            raise OSError("the database is away")

    async def run() -> None:
        copy = UsersCopy(users_of("a"), write)
        with pytest.raises(OSError, match="away"):
            await copy.renew()
        await reached(lambda: len(texts) >= 4)
        await asyncio.sleep(0.1)
        copy.close()

    asyncio.run(run())
    assert len(texts) == 4


def test_a_copy_for_which_nobody_waits_any_more_is_not_overtaken() -> None:
    done: list[int] = []

    async def run() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def write(text: str) -> None:
            begun.set()
            count = len(msgspec.json.decode(text))
            if count == 1:
                await may_end.wait()
            done.append(count)

        users = users_of("a")
        copy = UsersCopy(users, write)
        waiting = asyncio.create_task(copy.renew())
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        users.put(User("b", ""))
        later = asyncio.create_task(copy.renew())
        for _ in range(10):
            await asyncio.sleep(0)
        assert done == []
        may_end.set()
        await later

    asyncio.run(run())
    assert done == [1, 2]


def test_a_copy_that_fails_is_made_again_by_the_next() -> None:
    texts: list[str] = []

    async def write(text: str) -> None:
        texts.append(text)
        if len(texts) == 1:
            raise OSError("the database is away")

    async def run() -> list[BaseException | None]:
        copy = UsersCopy(users_of("a"), write)
        return await asyncio.gather(copy.renew(), copy.renew(), return_exceptions=True)

    failed, done = asyncio.run(run())
    assert isinstance(failed, OSError)
    assert done is None
    assert len(texts) == 2
