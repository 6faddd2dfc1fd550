"""A standby passes connections on to the owner, and its port is open at every moment."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from harebell.client.blocking import connect
from harebell.cluster.postgresql.relay import Owner, Relay
from harebell.server.limits import EXIT_DISK
from harebell.server.net import relay_side
from harebell.server.net.acceptor import bound
from harebell.server.net.listen_address import ListenAddress
from tests.interop.client.certificates import make_certificates
from tests.patience import SECONDS, eventually, reached
from tests.ports import free_port
from tests.postgresql.cluster import Member
from tests.postgresql.servers import PostgresServer

MIB = 1_048_576


# --- the relay alone ------------------------------------------------------------------------------


@asynccontextmanager
async def _relay(
    owner: Owner | None,
    seconds: float = 5.0,
    limit: int = 100,
    host: str = "127.0.0.1",
    report: Callable[[str], object] = len,
) -> AsyncIterator[tuple[Relay, int]]:
    def reported(_level: str, line: str) -> None:
        report(line)

    relay = Relay(seconds, limit, reported)
    asked = ListenAddress("amqp", host, 0)
    relay.listen(asked, await bound(asyncio.get_running_loop(), host, 0))
    relay.pass_on_to(owner)
    try:
        yield relay, relay.addresses[0][2]
    finally:
        relay.close().close()


def _owner(server: asyncio.Server, epoch: int = 1) -> Owner:
    host, port = server.sockets[0].getsockname()[:2]
    return Owner(epoch, {"amqp": f"{host}:{port}"})


def test_octets_pass_both_ways_and_each_end_closes_on_its_own() -> None:
    async def reverse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Answers only when the client has sent everything.
        writer.write((await reader.read())[::-1])
        writer.close()

    async def play() -> bytes:
        async with (
            await asyncio.start_server(reverse, "127.0.0.1", 0) as server,
            _relay(_owner(server)) as (relay, port),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"PROXY UNKNOWN\r\nabc" * 50_000)
            writer.write_eof()
            found = await reader.read()
            writer.close()
            await reached(lambda: not relay.connections)
            return found

    assert asyncio.run(play()) == (b"PROXY UNKNOWN\r\nabc" * 50_000)[::-1]


def test_a_client_that_stays_after_the_end_of_its_owner_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay_side, "RELAY_END_SECONDS", 0.3)

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"no")
        writer.close()

    async def play() -> None:
        async with (
            await asyncio.start_server(refuse, "127.0.0.1", 0) as server,
            _relay(_owner(server)) as (relay, port),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b"no"
            await reached(lambda: not relay.connections)
            writer.close()

    asyncio.run(play())


def test_a_peer_that_does_not_read_stops_the_other_one() -> None:
    sent = 0

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < 256 * MIB:
            writer.write(bytes(MIB))
            await writer.drain()
            sent += MIB
        writer.close()

    async def play() -> tuple[int, int]:
        async with (
            await asyncio.start_server(flood, "127.0.0.1", 0) as server,
            _relay(_owner(server)) as (_, port),
        ):
            with closing(socket.create_connection(("127.0.0.1", port))) as link:
                known = -1
                while known != sent or not sent:
                    known = sent
                    await asyncio.sleep(0.3)
                link.setblocking(False)
                got = 0
                while got < known + 8 * MIB:
                    got += len(await asyncio.get_running_loop().sock_recv(link, MIB))
                return known, got

    stopped, got = asyncio.run(play())
    # What the kernel holds on the way, and little more.
    assert stopped < 64 * MIB < 256 * MIB
    assert got >= stopped


@pytest.mark.parametrize(
    ("owner", "why"),
    [
        (None, "no broker owns the store"),
        (Owner(1, {"amqps": "127.0.0.1:1"}), "has no port for amqp"),
        (Owner(1, {"amqp": "127.0.0.1:1"}), "does not answer at 127.0.0.1:1; set its storage_"),
    ],
)
def test_the_log_says_once_why_clients_are_closed(owner: Owner | None, why: str) -> None:
    said: list[str] = []

    async def play() -> None:
        async with _relay(owner, seconds=0.2, report=said.append) as (_, port):
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                assert await reader.read() == b""
                writer.close()

    asyncio.run(play())
    assert len(said) == 1
    assert why in said[0]


def test_a_connection_waits_for_an_owner_and_is_closed_in_the_end() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))

    async def play() -> None:
        async with _relay(None, seconds=0.5) as (_, port):
            began = time.monotonic()
            late, _ = await asyncio.open_connection("127.0.0.1", port)
            assert await late.read() == b""
            assert time.monotonic() - began > 0.4
        async with (
            await asyncio.start_server(echo, "127.0.0.1", 0) as server,
            _relay(None, seconds=SECONDS, limit=2) as (relay, port),
        ):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"hello")
            await reached(lambda: relay.waiting == 1)
            relay.pass_on_to(_owner(server))
            assert await reader.read(5) == b"hello"
            # Two connections are the limit here.
            await asyncio.open_connection("127.0.0.1", port)
            third, _ = await asyncio.open_connection("127.0.0.1", port)
            assert await third.read() == b""
            # Another owner: what is passed on to the one before is cut.
            relay.pass_on_to(_owner(server, epoch=2))
            assert await _rest(reader) == b""

    asyncio.run(play())


def test_clients_that_wait_count_as_those_that_have_not_logged_in() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(100))

    writers: list[asyncio.StreamWriter] = []

    async def connected(port: int, address: str) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        writer.write(address.encode())
        writers.append(writer)
        return reader

    async def play() -> None:
        lines: list[str] = []
        async with (
            await asyncio.start_server(echo, "127.0.0.1", 0) as server,
            _relay(None, seconds=30, report=lines.append) as (relay, port),
        ):
            relay.pending_logins.limit, relay.pending_logins.max_per_address = 4, 2
            one, two = "127.0.0.2", "127.0.0.3"
            waiting = [await connected(port, one), await connected(port, one)]
            for _ in range(2):
                assert await _rest(await connected(port, one)) == b""
            assert lines == [
                "2 connections from 127.0.0.2 have not logged in yet: more are turned away"
            ]
            waiting += [await connected(port, two), await connected(port, two)]
            assert await _rest(await connected(port, "127.0.0.4")) == b""
            assert lines[1:] == ["4 connections have not logged in yet: more are turned away"]
            relay.pass_on_to(_owner(server))
            for reader in waiting:
                assert await reader.read(9) in (one.encode(), two.encode())
            # The owner counts those now.
            assert len(relay.pending_logins) == 0
            assert await (await connected(port, one)).read(9) == one.encode()

    asyncio.run(play())


def test_a_client_that_leaves_while_it_waits_is_forgotten() -> None:
    async def play() -> None:
        async with _relay(None, seconds=60) as (relay, port):
            relay.pending_logins.max_per_address = 2
            stays = socket.create_connection(("127.0.0.1", port))
            for _ in range(3):
                with closing(socket.create_connection(("127.0.0.1", port))) as leaves:
                    # What it has sent does not hide that it has gone.
                    leaves.sendall(b"AMQP")
                    await reached(lambda: relay.waiting >= 2)
                await reached(lambda: relay.waiting <= 1 and len(relay.pending_logins) <= 1)
            stays.close()

    asyncio.run(play())


def test_a_port_that_is_opened_later_is_left_to_others_too() -> None:
    async def play() -> None:
        async with _relay(None, seconds=60) as (relay, _):
            relay.leave_to_others(others=True)
            relay.listen(
                ListenAddress("amqp", "127.0.0.1", 0),
                await bound(asyncio.get_running_loop(), "127.0.0.1", 0),
            )
            with closing(socket.create_connection(("127.0.0.1", relay.addresses[1][2]))):
                for _ in range(10):
                    await asyncio.sleep(0.01)
                    assert relay.waiting == 0
                relay.leave_to_others(others=False)
                await reached(lambda: relay.waiting)

    asyncio.run(play())


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """What still comes before the end, in good order or not."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


def test_a_client_of_another_machine_does_not_become_one_of_this_machine() -> None:
    ours = _address_of_this_machine()
    seen: list[str] = []

    async def note(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer.get_extra_info("peername")[0])
        writer.close()

    async def play() -> None:
        async with (
            await asyncio.start_server(note, "127.0.0.1", 0) as server,
            _relay(_owner(server), host="0.0.0.0") as (_, port),
        ):
            for address in ("127.0.0.1", ours):
                reader, _ = await asyncio.open_connection(address, port)
                await reader.read()

    asyncio.run(play())
    assert seen == ["127.0.0.1", ours]


def _address_of_this_machine() -> str:
    """An address that is not of loopback; loopback's own where there is no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        try:
            link.connect(("192.0.2.1", 9))
        except OSError:
            return "127.0.0.1"
        return str(link.getsockname()[0])


def test_the_relay_is_handed_on_with_the_clients_that_wait() -> None:
    async def play() -> None:
        async with _relay(None) as (relay, port):
            with closing(socket.create_connection(("127.0.0.1", port))) as link:
                await reached(lambda: relay.waiting)
                handed = relay.close()
                (waiting,) = handed.take_clients("amqp")
                waiting.sendall(b"here")
                assert link.recv(4) == b"here"
                waiting.close()
                (listening,) = handed.take(ListenAddress("amqp", "127.0.0.1", 0)) or []
                with closing(socket.create_connection(("127.0.0.1", port))):
                    listening.close()

    asyncio.run(play())


# --- brokers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("relay"), "IP:127.0.0.1")


@pytest.fixture
def pair(
    postgresql: PostgresServer, database: str, certificates: Path
) -> Iterator[tuple[Member, Member]]:
    """An owner and a broker that stands by, both with ports for TLS and for the 0-10 of 2007."""
    with ExitStack() as stack:
        members = []
        for name in ("one", "two"):
            settings: dict[str, object] = {
                "tls_port": free_port(),
                "tls_cert": certificates / "server.pem",
                "tls_key": certificates / "server.key",
                "listen": f"amqp-0-10t://127.0.0.1:{free_port()}",
            }
            member = stack.enter_context(Member(postgresql.url(database), name, **settings))
            members.append(member.wait("running" if name == "one" else "standby"))
        yield members[0], members[1]


def _port(member: Member, scheme: str) -> int:
    for each in member.overview()["listeners"]:
        if each.startswith(f"{scheme}://"):
            return int(each.rpartition(":")[2])
    raise LookupError(scheme)


def test_clients_of_a_standby_are_served_by_the_owner(pair: tuple[Member, Member]) -> None:
    one, two = pair
    body = bytes(range(256)) * 20_000
    with connect(two.amqp) as connection, connection.channel(confirms=True) as channel:
        channel.declare_queue("jobs", durable=True)
        channel.publish(body, routing_key="jobs", delivery_mode=2)
        assert (one.overview()["connections"], two.overview()["connections"]) == (1, 1)
        found = channel.get("jobs", no_ack=True)
        assert found is not None
        assert bytes(found.body) == body
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", _port(two, "amqps")), 30) as plain,
        context.wrap_socket(plain) as link,
    ):
        link.sendall(b"AMQP\0\0\x09\x01")
        assert link.recv(1) == b"\x01", "connection.start"
    with socket.create_connection(("127.0.0.1", _port(two, "amqp-0-10t")), 30) as link:
        link.sendall(b"AMQP\x01\x01\x00\x0a")
        assert link.recv(1) != b"", "the transitional 0-10 begins"


def test_a_port_never_refuses_while_the_store_changes_hands(pair: tuple[Member, Member]) -> None:
    one, two = pair
    refused: list[str] = []
    made = 0
    over = threading.Event()

    def knock() -> None:
        nonlocal made
        while not over.wait(0.002):
            for each in (one, two):
                try:
                    socket.create_connection(("127.0.0.1", each.port), 30).close()
                    made += 1
                except ConnectionRefusedError as error:
                    refused.append(f"{each.name}: {error}")
                except OSError:
                    pass  # accepted, and closed with the relay

    knocking = threading.Thread(target=knock, daemon=True)
    knocking.start()
    try:
        assert eventually(lambda: len(one.ask("cluster.status")) == 2)
        one.ask("cluster.drain")
        two.wait("running")
        one.wait("standby")
        assert eventually(lambda: made > 10)
    finally:
        over.set()
        knocking.join()
    assert not refused


def test_a_client_that_comes_after_the_end_of_the_owner_is_served(
    pair: tuple[Member, Member],
) -> None:
    one, two = pair
    one.kill()
    # Its handshake takes until the lease is over and the other broker has read the store.
    url = f"{two.amqp}?connection_timeout={SECONDS * 1_000:.0f}"
    with connect(url) as connection, connection.channel() as channel:
        channel.declare_queue("jobs", durable=True)
        assert two.overview()["connections"] == 1
    assert two.state == "running"


def test_a_standby_serves_the_http_api_of_the_owner(
    postgresql: PostgresServer, database: str
) -> None:
    ports = {name: free_port() for name in ("one", "two")}
    with ExitStack() as stack:
        members = [
            stack.enter_context(
                Member(postgresql.url(database), name, management_port=port, metrics_port=0)
            ).wait(state)
            for (name, port), state in zip(ports.items(), ("running", "standby"), strict=True)
        ]
        _get_json(ports["one"], "/api/nodes")
        assert eventually(lambda: _names(ports["two"]) == ["one", "two"])
        members[0].ask("cluster.drain")
        members[1].wait("running")
        members[0].wait("standby")
        # Now through the other one, whose port has never closed.
        assert eventually(lambda: _names(ports["one"]) == ["one", "two"])


def test_an_owner_without_its_database_ends_without_a_traceback() -> None:
    with PostgresServer() as server:
        server.create_database("gone")
        with Member(
            server.url("gone"), "one", management_port=free_port(), metrics_port=0
        ) as member:
            member.wait("running")
            server.kill()
            # What was not committed is not confirmed either.
            assert member.stop() in (0, EXIT_DISK)
            assert "Traceback" not in member.log


def _names(port: int) -> list[str]:
    try:
        return sorted(row["name"] for row in _get_json(port, "/api/nodes"))
    except OSError:
        return []


def _get_json(port: int, path: str) -> list[dict[str, str]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: list[dict[str, str]] = json.load(answer)
        return found
