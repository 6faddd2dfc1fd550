"""TLS handshakes begin a few at a time, and only when the first record of the client is whole."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harebell.server.limits import TLS_HELLOS_PER_TURN
from harebell.server.net.hellos import Hellos
from tests.patience import SECONDS

RECORD = b"\x16\x03\x01\x01\x00" + bytes(256)
"""A record of the handshake."""


class Pairs:
    """Connections over TCP: sockets of unread ends, and of their clients."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def make(self, sent: bytes) -> tuple[socket.socket, socket.socket]:
        """The broker's end and the client's, which has sent something."""
        client = self._stack.enter_context(socket.create_connection(self._listening.getsockname()))
        link = self._stack.enter_context(self._listening.accept()[0])
        link.setblocking(False)
        client.sendall(sent)
        return link, client


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    """Connections that are closed at the end."""
    with ExitStack() as stack:
        yield Pairs(stack)


@pytest.mark.asyncio
@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, len(RECORD) - 1])
async def test_a_handshake_begins_when_its_first_record_is_whole(pairs: Pairs, count: int) -> None:
    link, client = pairs.make(RECORD[:count])
    turn = asyncio.create_task(Hellos().turn(link, "a"))
    for _ in range(20):
        await asyncio.sleep(0.001)
        assert not turn.done()
    client.sendall(RECORD[count:])
    await asyncio.wait_for(turn, SECONDS)
    # Nothing was read, and the rest of the handshake may be short.
    assert link.recv(len(RECORD)) == RECORD
    assert link.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1


@pytest.mark.asyncio
@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\n\r\n", RECORD[:9]])
async def test_a_client_without_a_handshake_or_at_its_end_does_not_wait_for_more(
    pairs: Pairs, sent: bytes
) -> None:
    link, client = pairs.make(sent)
    client.shutdown(socket.SHUT_WR)
    await asyncio.wait_for(Hellos().turn(link, "a"), SECONDS)


@pytest.mark.asyncio
async def test_of_handshakes_that_come_together_few_begin_in_a_turn(pairs: Pairs) -> None:
    hellos = Hellos()
    begun: list[str] = []

    async def begin(link: socket.socket, address: str) -> None:
        await hellos.turn(link, address)
        begun.append(address)

    links = [(pairs.make(RECORD)[0], "a") for _ in range(20)] + [(pairs.make(RECORD)[0], "b")]
    tasks = [asyncio.create_task(begin(*each)) for each in links]
    most = 0
    while len(begun) < len(links):
        before = len(begun)
        await asyncio.sleep(0)
        most = max(most, len(begun) - before)
    assert most == TLS_HELLOS_PER_TURN
    # The addresses take turns, so the one with few does not wait for all of the other.
    assert "b" in begun[: len(links) // 2]
    await asyncio.gather(*tasks)
