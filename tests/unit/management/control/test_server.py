"""The broker's side of the control socket, asked by its real other side."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from harebell.management.control import server as status
from harebell.management.control.client import ControlError, NotRunning, ask_overview
from harebell.management.limits import CONTROL_CONNECTIONS, JSON_SLICE_TOKENS
from tests.patience import SECONDS
from tests.unit.management.control.test_dispatcher import MANY, World


class Figures:
    """Something with an overview that changes."""

    def __init__(self) -> None:
        self.asked = 0

    def overview(self) -> dict[str, Any]:
        self.asked += 1
        return {"asked": self.asked}


async def ask(data_dir: Path) -> dict[str, Any]:
    return await asyncio.to_thread(ask_overview, data_dir, SECONDS)


@pytest.mark.asyncio
async def test_every_question_is_answered_with_the_figures_of_now(tmp_path: Path) -> None:
    control = await status.start(Figures(), tmp_path / "made" / "for it")
    assert await ask(tmp_path / "made" / "for it") == {"asked": 1}
    assert await ask(tmp_path / "made" / "for it") == {"asked": 2}
    await control.close()


@pytest.mark.asyncio
async def test_one_connection_may_ask_more_than_once(tmp_path: Path) -> None:
    control = await status.start(Figures(), tmp_path)
    reader, writer = await asyncio.open_unix_connection(str(control.path))
    writer.write(b'{"ask": "overview"}\n{"ask": "else"}\n{"ask": "overview"}\n')
    lines = [await reader.readline() for _ in range(3)]
    assert lines[0] == b'{"ok":true,"overview":{"asked":1}}\n'
    assert lines[1].startswith(b'{"ok":false,')
    assert lines[2] == b'{"ok":true,"overview":{"asked":2}}\n'
    writer.close()
    await control.close()


@pytest.mark.asyncio
async def test_the_lag_of_the_event_loop_is_told_to_who_asks_for_it(tmp_path: Path) -> None:
    control = await status.start(Figures(), tmp_path)
    asked = asyncio.create_task(asyncio.to_thread(ask_overview, tmp_path, SECONDS, 0.05))
    while not asked.done():
        sum(range(2_000_000))  # the system may count CPU time in ticks of 10 ms
        await asyncio.sleep(0)
    found = await asked
    assert found["asked"] == 1
    assert found["event_loop_lag_seconds"] >= 0
    assert found["event_loop_busy_seconds"] > 0
    await control.close()


@pytest.mark.asyncio
async def test_a_silent_client_is_disconnected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "CONTROL_TIMEOUT_SECONDS", 0.05)
    control = await status.start(Figures(), tmp_path)
    reader, writer = await asyncio.open_unix_connection(str(control.path))
    assert await asyncio.wait_for(reader.read(), SECONDS) == b""
    writer.close()
    await control.close()


def test_a_broker_that_ends_while_a_client_waits_reports_no_fault(tmp_path: Path) -> None:
    reported: list[dict[str, Any]] = []

    async def end_early() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: reported.append(fault))
        control = await status.start(Figures(), tmp_path)
        reader, writer = await asyncio.open_unix_connection(str(control.path))
        writer.write(b'{"ask": "overview"}\n')
        assert await reader.readline() == b'{"ok":true,"overview":{"asked":1}}\n'
        await control.close()

    asyncio.run(end_early())
    assert reported == []


@pytest.mark.asyncio
async def test_clients_without_a_request_make_room_for_more(tmp_path: Path) -> None:
    control = await status.start(Figures(), tmp_path)
    links = [
        await asyncio.open_unix_connection(str(control.path))
        for _ in range(CONTROL_CONNECTIONS + 3)
    ]
    assert await ask(tmp_path) == {"asked": 1}
    for reader, _ in links[:3]:
        assert await reader.read() == b"", "the oldest were let go"
    links[-1][1].write(b'{"ask": "overview"}\n')
    assert await links[-1][0].readline() == b'{"ok":true,"overview":{"asked":2}}\n'
    for _, writer in links:
        writer.close()
    await control.close()


@pytest.mark.asyncio
async def test_a_line_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status, "CONTROL_LINE_BYTES", 4096)
    control = await status.start(Figures(), tmp_path)
    reader, writer = await asyncio.open_unix_connection(str(control.path))
    writer.write(b"x" * 5000 + b"\n")
    answer = await asyncio.wait_for(reader.readline(), SECONDS)
    assert answer == b'{"ok":false,"error":"a line has at most 4096 bytes"}\n'
    writer.close()
    await control.close()


@pytest.mark.asyncio
async def test_only_the_owner_may_open_it_and_other_files_keep_their_mode(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        control = await status.start(Figures(), tmp_path)
        assert stat.S_IMODE(control.path.stat().st_mode) == 0o600
        other = tmp_path / "other"
        other.touch()
        assert stat.S_IMODE(other.stat().st_mode) == 0o644
    finally:
        os.umask(mask)
    await control.close()


@pytest.mark.asyncio
async def test_after_closing_nobody_runs_there(tmp_path: Path) -> None:
    control = await status.start(Figures(), tmp_path)
    await control.close()
    await control.close()
    assert not control.path.exists()
    with pytest.raises(NotRunning):
        await ask(tmp_path)


@pytest.mark.asyncio
async def test_a_live_broker_keeps_its_directory_and_a_dead_one_loses_it(tmp_path: Path) -> None:
    first = await status.start(Figures(), tmp_path)
    with pytest.raises(ControlError, match="another broker runs on the data directory"):
        await status.start(Figures(), tmp_path)
    # A broker that was killed leaves its file and nobody listening.
    assert first._server is not None
    first._server.close()
    second = await status.start(Figures(), tmp_path)
    assert await ask(tmp_path) == {"asked": 1}
    await first.close()
    assert await ask(tmp_path) == {"asked": 2}
    await second.close()


@pytest.mark.asyncio
async def test_a_directory_that_cannot_be_used_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ControlError, match=r"cannot use the data directory .*; choose another"):
        await status.start(Figures(), tmp_path / "file" / "below")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("ends", "answer"), [("}", "cannot answer 'else'"), ("]", "not a JSON object")]
)
async def test_a_long_request_is_decoded_in_several_turns(
    tmp_path: Path, ends: str, answer: str
) -> None:
    world = World()
    control = await status.start(Figures(), tmp_path, world.dispatcher)
    reader, writer = await asyncio.open_unix_connection(str(control.path))
    many = ",".join("{}" for _ in range(JSON_SLICE_TOKENS * MANY))
    writer.write(f'{{"ask": "else", "definitions": [{many}]{ends}\n'.encode())
    asked = asyncio.ensure_future(reader.readline())
    turns = 0
    while not asked.done():
        await asyncio.sleep(0)
        if world.registry.turns.busy:
            turns += 1
            world.registry.turns.next_turn()
    assert turns >= 3
    assert answer in asked.result().decode()
    writer.close()
    await control.close()
