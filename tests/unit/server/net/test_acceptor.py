"""Sockets that are accepted here: on every address of a host, until nobody listens any more."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from harebell.server.net.acceptor import Acceptor, bound, cut


def test_sockets_are_accepted_until_it_is_closed() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        sockets = await bound(loop, "127.0.0.1", 0)
        came: asyncio.Queue[socket.socket] = asyncio.Queue()
        acceptor = Acceptor(loop, sockets, came.put_nowait)
        address = sockets[0].getsockname()
        with socket.create_connection(address) as peer:
            link = await came.get()
            cut(link)
            assert await asyncio.to_thread(peer.recv, 1) == b""
            link.close()
        acceptor.close()
        acceptor.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)

    asyncio.run(run())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_output_never_waits_until_the_peer_has_acknowledged_the_last(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def run() -> int:
        loop = asyncio.get_running_loop()
        sockets = await bound(loop, "127.0.0.1", 0)
        came: asyncio.Queue[socket.socket] = asyncio.Queue()
        acceptor = Acceptor(loop, sockets, came.put_nowait)
        with socket.create_connection(sockets[0].getsockname()):
            transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, await came.get())
            link = transport.get_extra_info("socket")
            set_there: int = link.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            transport.close()
        acceptor.close()
        return set_there

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(run()) != 0


def test_an_address_that_is_in_use_is_an_error() -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        taken = socket.create_server(("127.0.0.1", 0))
        with taken, pytest.raises(OSError, match="in use"):
            await bound(loop, "127.0.0.1", taken.getsockname()[1])

    asyncio.run(run())
