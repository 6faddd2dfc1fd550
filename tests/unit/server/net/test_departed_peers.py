"""Clients that leave while they wait for the owner of their store."""

from __future__ import annotations

import asyncio
import socket

import pytest
import uvloop

from harebell.server.net.departed_peers import has_left

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_whose_connection_is_closed_here_has_left(loop: str) -> None:
    async def run() -> None:
        running = asyncio.get_running_loop()
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname()),
        ):
            link, _ = server.accept()
            transport, _ = await running.connect_accepted_socket(asyncio.Protocol, link)
            known = transport.get_extra_info("socket")
            assert not has_left(known)
            transport.abort()
            while known.fileno() >= 0:
                await asyncio.sleep(0)
            assert has_left(known)

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(run())
