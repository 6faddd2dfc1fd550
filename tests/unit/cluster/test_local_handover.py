"""A client whose socket comes from another process of this machine."""

from __future__ import annotations

import array
import asyncio
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from harebell.cluster.client_handover import header_of
from harebell.cluster.local_handover import NAME, LocalHandover
from harebell.front.common.peer import Peer
from tests.patience import SECONDS, reached

_REST = bytes(range(256)) * 256


class _Reader(asyncio.BufferedProtocol):
    """Gathers what a client sends."""

    def __init__(self) -> None:
        self.input = b""
        self._buffer = bytearray(16_384)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.input += self._buffer[:nbytes]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_what_a_client_has_sent_before_it_is_taken_is_read(
    tmp_path: Path, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    reader = _Reader()
    peer = Peer("127.0.0.1", 5, False, "127.0.0.1", 6, "")
    reports: list[str] = []

    async def play() -> None:
        taking = LocalHandover(
            tmp_path / NAME, lambda _peer: reader, lambda _level, line: reports.append(line)
        )
        client, accepted = socket.socketpair()
        with client, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            with accepted:
                client.sendall(_REST)
                message = json.dumps(header_of(peer)).encode() + b"\nhead"
                numbers = array.array("i", [accepted.fileno()])
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)]
                out.sendmsg([message], rights, 0, os.fspath(tmp_path / NAME))
            async with asyncio.timeout(SECONDS):
                await reached(lambda: len(reader.input) >= len(b"head" + _REST) or bool(reports))
            client.sendall(b"tail")
            await reached(lambda: reader.input.endswith(b"tail"))
        taking.close()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play())
    assert reports == []
    assert reader.input == b"head" + _REST + b"tail"
