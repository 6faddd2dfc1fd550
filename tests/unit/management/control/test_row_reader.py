"""Streams of rows are made in turns, while their client reads, and end with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harebell.admin.command import Row
from harebell.admin.context import CommandRefused
from harebell.admin.streaming import RowStream
from harebell.management.control import server as control_server
from harebell.management.control.client import ControlError, ask_rows
from harebell.management.control.row_reader import RowReader
from harebell.management.limits import COMMAND_ENTRY_UNITS
from harebell.server.limits import WORK_USER_UNITS
from tests.patience import SECONDS, reached
from tests.unit.management.control.test_dispatcher import World


class Counting:
    """A stream that counts up, and notes what was asked of it."""

    def __init__(self, limit: int, *, pause: int = 0, error: str = "") -> None:
        self.made = 0
        self.closed = 0
        self._limit = limit
        self._pause = pause
        self._error = error
        self.stream = RowStream(self._batches(), self._close)

    def _batches(self) -> Iterator[list[Row]]:
        for number in range(self._limit):
            for _ in range(self._pause):
                yield []
            self.made += 1
            yield [{"number": number}]
        if self._error:
            raise CommandRefused(self._error)

    def _close(self) -> None:
        self.closed += 1


class OneStream:
    """Commands of which one has a stream of rows."""

    def __init__(self, world: World, counting: Counting) -> None:
        self._world = world
        self._counting = counting
        self.asked: dict[str, Any] = {}

    def knows(self, name: Any) -> bool:
        return name == "numbers.count"

    async def serve(self, name: str, fields: dict[str, Any], peer: str = "") -> dict[str, Any]:
        self.asked = fields
        return {"ok": True, "rows": self._world.dispatcher.reader_of(self._counting.stream)}

    def overview(self) -> dict[str, Any]:
        return {}


def turning(world: World) -> asyncio.Task[None]:
    """Serve the turns of a broker until the test ends."""

    async def turn() -> None:
        while True:
            await asyncio.sleep(0)
            world.registry.turns.next_turn()

    return asyncio.ensure_future(turn())


async def everything(reader: RowReader) -> list[int]:
    found: list[int] = []
    while rows := await reader.next():
        found += [row["number"] for row in rows]
    return found


@pytest.mark.asyncio
async def test_the_rows_come_in_their_order_and_the_end_is_an_empty_list() -> None:
    world, counting = World(), Counting(10, pause=3)
    reader = world.dispatcher.reader_of(counting.stream)
    assert await everything(reader) == list(range(10))
    reader.close()
    reader.close()
    assert counting.closed == 1


@pytest.mark.asyncio
async def test_nothing_is_made_before_the_client_asks_for_it() -> None:
    world, counting = World(), Counting(10)
    reader = world.dispatcher.reader_of(counting.stream)
    assert counting.made == 0
    await reader.next()
    await asyncio.sleep(0)
    world.registry.turns.next_turn()
    assert counting.made == 1


@pytest.mark.asyncio
async def test_a_long_search_takes_several_turns_of_the_work_budget() -> None:
    world = World()
    counting = Counting(1, pause=3 * WORK_USER_UNITS // COMMAND_ENTRY_UNITS)
    reader = world.dispatcher.reader_of(counting.stream)
    asked = asyncio.ensure_future(reader.next())
    turns = 0
    await asyncio.sleep(0)
    while not asked.done():
        turns += 1
        world.registry.turns.next_turn()
        await asyncio.sleep(0)
    assert turns >= 2
    assert asked.result() == [{"number": 0}]


@pytest.mark.asyncio
async def test_an_error_of_the_stream_is_raised_to_the_reader() -> None:
    world = World()
    reader = world.dispatcher.reader_of(Counting(1, error="the queue was deleted").stream)
    assert await reader.next() == [{"number": 0}]
    with pytest.raises(CommandRefused, match="the queue was deleted"):
        await reader.next()


@pytest.mark.asyncio
async def test_the_client_of_the_control_socket_gets_every_row(tmp_path: Path) -> None:
    world, counting = World(), Counting(1000, pause=1)
    commands = OneStream(world, counting)
    control = await control_server.start(commands, tmp_path, commands)
    turns = turning(world)

    def ask() -> list[int]:
        batches = ask_rows(tmp_path, "numbers.count", {"from": 3}, SECONDS)
        return [row["number"] for rows in batches for row in rows]

    assert await asyncio.to_thread(ask) == list(range(1000))
    assert commands.asked == {"from": 3}
    assert counting.closed == 1
    turns.cancel()
    await control.close()


@pytest.mark.asyncio
async def test_an_error_in_the_middle_reaches_the_client_after_the_rows(tmp_path: Path) -> None:
    world, counting = World(), Counting(2, error="the queue was deleted")
    commands = OneStream(world, counting)
    control = await control_server.start(commands, tmp_path, commands)
    found: list[Any] = []

    def ask() -> None:
        for rows in ask_rows(tmp_path, "numbers.count", {}, SECONDS):
            found.extend(rows)

    with pytest.raises(ControlError, match="the queue was deleted"):
        await asyncio.to_thread(ask)
    assert found == [{"number": 0}, {"number": 1}]
    assert counting.closed == 1
    await control.close()


@pytest.mark.asyncio
async def test_a_client_that_closes_ends_the_stream_early(tmp_path: Path) -> None:
    world, counting = World(), Counting(10**9)
    commands = OneStream(world, counting)
    control = await control_server.start(commands, tmp_path, commands)
    turns = turning(world)

    def ask() -> Any:
        with closing(ask_rows(tmp_path, "numbers.count", {}, SECONDS)) as batches:
            return next(iter(batches))

    assert await asyncio.to_thread(ask) == [{"number": 0}]
    await reached(lambda: counting.closed)
    turns.cancel()
    await control.close()


@pytest.mark.asyncio
async def test_a_client_that_does_not_read_makes_the_stream_wait(tmp_path: Path) -> None:
    world, counting = World(), Counting(10**9)
    commands = OneStream(world, counting)
    control = await control_server.start(commands, tmp_path, commands)
    turns = turning(world)
    _, writer = await asyncio.open_unix_connection(str(control.path), limit=1024)
    writer.write(b'{"ask": "numbers.count"}\n')
    before = -1
    async with asyncio.timeout(SECONDS):
        while counting.made != before or not before:
            before = counting.made
            await asyncio.sleep(0.05)
    assert 0 < counting.made < 10**6
    assert not counting.closed
    writer.close()
    await reached(lambda: counting.closed)
    turns.cancel()
    await control.close()


@pytest.mark.asyncio
async def test_a_client_that_waits_long_is_shown_that_the_broker_still_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_server, "CONTROL_IDLE_SECONDS", 0.01)
    world, counting = World(), Counting(1, pause=10**9)
    commands = OneStream(world, counting)
    control = await control_server.start(commands, tmp_path, commands)
    turns = turning(world)
    reader, writer = await asyncio.open_unix_connection(str(control.path))
    writer.write(b'{"ask": "numbers.count"}\n')
    line = await asyncio.wait_for(reader.readline(), SECONDS)
    assert json.loads(line) == {"ok": True, "rows": []}
    writer.close()
    turns.cancel()
    await control.close()
