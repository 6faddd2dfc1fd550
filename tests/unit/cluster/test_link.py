"""Connections at the cluster port: both sides prove themselves, and strangers get nowhere."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop

from harebell.cluster import limits, link
from harebell.cluster.link import (
    ClusterListener,
    Header,
    LinkError,
    LinkTls,
    fingerprint_of,
    open_link,
    streams,
)
from harebell.cluster.stores import ClusterAddress
from harebell.config import Config
from harebell.server.net.tls import ServerTls
from tests.interop.client.certificates import make_certificates
from tests.patience import reached

SECRET = b"of the cluster"
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("tls"))


class Port:
    """A cluster port with one service, "echo", which tells what its header was, and echoes.

    Args:
        tls: a certificate; None for plain TCP.
    """

    def __init__(self, tls: LinkTls | None = None) -> None:
        self.lines: list[str] = []
        self.headers: list[Header] = []
        self._serving: set[asyncio.Task[None]] = set()
        self.listener = ClusterListener({"echo": self._echo}, SECRET, tls, self._report)

    @property
    def address(self) -> ClusterAddress:
        here = f"127.0.0.1:{self.listener.port}"
        return ClusterAddress(1, here, self.listener.fingerprint)

    async def logged(self, text: str) -> None:
        """Wait for a line in the log."""
        await reached(lambda: any(text in line for line in self.lines))

    def _report(self, level: str, line: str) -> None:
        self.lines.append(f"{level} {line}")

    def _echo(self, header: Header, transport: asyncio.Transport) -> None:
        self.headers.append(header)

        async def serve() -> None:
            reader, writer = streams(transport)
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
            writer.close()

        task = asyncio.get_running_loop().create_task(serve())
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)


@asynccontextmanager
async def port(certificates: Path | None = None, **settings: Any) -> AsyncIterator[Port]:
    tls = None
    if certificates is not None:
        config = Config(
            tls_cert=str(certificates / "server.pem"),
            tls_key=str(certificates / "server.key"),
            **settings,
        )
        tls = LinkTls(ServerTls(config, lambda _level, _line: None))
    made = Port(tls)
    await made.listener.listen("127.0.0.1", 0)
    try:
        yield made
    finally:
        made.listener.close()


def run(play: Coroutine[Any, Any, None], loop: Loop = uvloop.new_event_loop) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(play)


async def talk(address: ClusterAddress, data: bytes = b"hello") -> bytes:
    """What comes back."""
    transport = await open_link(address, SECRET, {"service": "echo", "data": "ä\n"})
    reader, writer = streams(transport)
    writer.write(data)
    found = await reader.readexactly(len(data))
    writer.close()
    return found


@LOOPS
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_a_broker_with_the_secret_reaches_the_service_that_it_asks_for(
    certificates: Path, encrypted: bool, loop: Loop
) -> None:
    async def play() -> None:
        async with port(certificates if encrypted else None) as there:
            assert bool(there.address.fingerprint) is encrypted
            data = bytes(range(256)) * 4_000
            assert await talk(there.address, data) == data
            assert there.headers == [{"service": "echo", "data": "ä\n"}]
            assert there.lines == []

    run(play(), loop)


def test_no_client_certificate_is_asked_for_at_the_cluster_port(certificates: Path) -> None:
    async def play() -> None:
        wanted = {"tls_ca": str(certificates / "ca.pem"), "tls_fail_if_no_peer_cert": True}
        async with port(certificates, **wanted, tls_verify="verify_peer") as there:
            assert await talk(there.address) == b"hello"

    run(play())


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_a_caller_with_another_secret_is_turned_away(certificates: Path, encrypted: bool) -> None:
    async def play() -> None:
        async with port(certificates if encrypted else None) as there:
            with pytest.raises(LinkError, match="has ended the connection: its log says why"):
                await open_link(there.address, b"another", {"service": "echo"})
            await there.logged("does not belong to the cluster: it does not know the secret")
            assert there.headers == []

    run(play())


def test_a_listener_with_another_secret_gets_nothing_of_the_service() -> None:
    got = bytearray()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"harebell-cluster 1 " + b"0" * 32 + b"\n")
        got.extend(await reader.readline())
        # It has no secret, so it can only send back what it has been sent.
        writer.write(got.split(b" ")[1] + b"\n")
        got.extend(await reader.read())
        writer.close()

    async def play() -> None:
        async with await asyncio.start_server(pretend, "127.0.0.1", 0) as server:
            here = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            with pytest.raises(LinkError, match="does not know the secret of the cluster"):
                await open_link(ClusterAddress(1, here, ""), SECRET, {"service": "echo"})
            await reached(lambda: b"\n" in got)
        assert got.count(b"\n") == 1
        assert got.endswith(b"\n")

    run(play())


@LOOPS
def test_a_broker_with_another_certificate_is_not_trusted(certificates: Path, loop: Loop) -> None:
    async def play() -> None:
        async with port(certificates) as there:
            stranger = ssl.PEM_cert_to_DER_cert((certificates / "stranger.pem").read_text())
            wrong = there.address._replace(fingerprint=fingerprint_of(stranger))
            with pytest.raises(LinkError, match="and the database says") as found:
                await open_link(wrong, SECRET, {"service": "echo"})
            assert there.address.fingerprint in str(found.value)
            assert await talk(there.address) == b"hello"
            assert len(there.headers) == 1

    run(play(), loop)


def test_a_certificate_that_is_replaced_has_its_fingerprint_at_once(
    certificates: Path, tmp_path: Path
) -> None:
    for name in ("server.pem", "server.key"):
        (tmp_path / name).write_bytes((certificates / name).read_bytes())
    config = Config(tls_cert=str(tmp_path / "server.pem"), tls_key=str(tmp_path / "server.key"))
    tls = ServerTls(config, lambda _level, _line: None)
    here = LinkTls(tls)
    before = here.fingerprint
    make_certificates(tmp_path)
    assert here.fingerprint == before
    tls.look()
    assert here.fingerprint != before
    made = ssl.PEM_cert_to_DER_cert((tmp_path / "server.pem").read_text())
    assert here.fingerprint == fingerprint_of(made)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"AMQP\x00\x00\x09\x01\n", "does not belong to the cluster: it sends something else"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "does not belong to the cluster"),
        (b"\x16\x03\x01\x00\xa5" + b"\x00" * 80_000, "sends a line of more than 65536 bytes"),
        (b"x" * 70_000 + b"\n", "sends a line of more than 65536 bytes"),
        (b"0" * 32 + b" " + b"0" * 64 + b" {}\n", "it does not know the secret"),
        (b"0" * 32 + b" " + b"\xff" * 64 + b" {}\n", "it does not know the secret"),
        (b"", "has ended the connection"),
        (b"\n\n\n", "it sends something else"),
    ],
    ids=["amqp", "http", "no line", "a long line", "a guess", "no digits", "a scan", "empty lines"],
)
def test_strangers_are_turned_away_with_a_line_in_the_log(data: bytes, why: str) -> None:
    async def play() -> None:
        async with port() as there:
            reader, writer = await asyncio.open_connection("127.0.0.1", there.listener.port)
            writer.write(data)
            if not data:
                writer.write_eof()
            greeting = await rest(reader)
            assert greeting == b"" or re.fullmatch(rb"harebell-cluster 1 [0-9a-f]{32}\n", greeting)
            writer.close()
            await there.logged(why)
            assert there.lines[0].startswith("warning cluster port: 127.0.0.1:")
            assert await talk(there.address) == b"hello"

    run(play())


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What comes until the end, in good order or not."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@LOOPS
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"], ids=["silence", "a beginning"])
def test_a_peer_that_does_not_finish_the_handshake_is_cut_in_time(
    certificates: Path, encrypted: bool, sent: bytes, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> None:
        async with port(certificates if encrypted else None) as there:
            with monkeypatch.context() as patch:
                patch.setattr(link, "LINK_SECONDS", 0.3)
                reader, writer = await asyncio.open_connection("127.0.0.1", there.listener.port)
                writer.write(sent)
                async with asyncio.timeout(60):
                    await rest(reader)
            writer.close()
            await there.logged("handshake")
            assert await talk(there.address) == b"hello"

    run(play(), loop)


def test_a_plain_caller_gets_nothing_from_a_port_with_tls(certificates: Path) -> None:
    async def play() -> None:
        async with port(certificates) as there:
            plain = there.address._replace(fingerprint="")
            with pytest.raises((LinkError, TimeoutError)):
                async with asyncio.timeout(0.5):
                    await open_link(plain, SECRET, {"service": "echo"})
            assert there.headers == []

    run(play())


def test_strangers_in_their_handshakes_keep_no_broker_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "LINK_HANDSHAKES", 3)
    monkeypatch.setattr(link, "LINK_SECONDS", 600.0)
    monkeypatch.setattr(link, "LINK_YOUNG_SECONDS", 600.0)

    async def play() -> None:
        async with port() as there:
            silent = []
            for _ in range(3):
                silent.append(socket.create_connection(("127.0.0.1", there.listener.port)))
                silent[-1].settimeout(60)
                assert await asyncio.to_thread(silent[-1].recv, 100)
            with pytest.raises(LinkError):
                await talk(there.address)
            monkeypatch.setattr(link, "LINK_YOUNG_SECONDS", 0.0)
            # Brokers are let in now, and one line says what strangers do.
            for number in range(3):
                assert await talk(there.address) == b"hello"
                assert await asyncio.to_thread(silent[number].recv, 100) == b""
                silent.append(socket.create_connection(("127.0.0.1", there.listener.port)))
                assert await asyncio.to_thread(silent[-1].recv, 100)
            lines = [each for each in there.lines if "have not proven" in each]
            assert lines[0].endswith("3 of them from 127.0.0.1: the oldest of these are cut")
            for each in silent:
                each.close()

    run(play())


def test_a_service_that_is_not_there_has_its_line_in_the_log() -> None:
    async def play() -> None:
        async with port() as there:
            with pytest.raises(LinkError):
                await open_link(there.address, SECRET, {"service": "x"})
            await there.logged("asks for the service 'x', which is not here")

    run(play())


def test_a_header_that_is_too_long_is_not_sent() -> None:
    async def play() -> None:
        async with port() as there:
            header = {"service": "echo", "data": "x" * limits.LINK_LINE_BYTES}
            with pytest.raises(LinkError, match="too long"):
                await open_link(there.address, SECRET, header)

    run(play())
