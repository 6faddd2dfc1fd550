"""A client of one broker is served by the owner of its vhost, and does not notice."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import os
import re
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker, ProbableAccessDeniedError

from harebell.client.blocking import connect
from harebell.client.errors import AMQPError
from harebell.cluster.client_handover import header_of
from harebell.cluster.limits import HAND_OVER_BYTES
from harebell.cluster.link import open_link, streams
from harebell.cluster.stores import ClusterAddress
from harebell.front.common.peer import Peer
from harebell.management.control.client import ask_command
from harebell.wire.v010 import controls as k
from harebell.wire.v09 import methods as m
from tests.cluster.brokers import SECRET, Cluster, cluster, make_home, owner_of
from tests.cluster.certificates import make_certificate
from tests.conformance.sites import Site, SocketWire
from tests.conformance.v010.raw import Peer010
from tests.conformance.v010.test_login import proof
from tests.interop.matrix import SPOKEN
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker
from tests.unit.server.listening import HEADER, Talker, frame
from tests.unit.server.net.test_connection import resident_mib

MIB = 1_048_576
MECHANISMS = ("PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS", "SCRAM-SHA-1", "SCRAM-SHA-256")
FLAGS = (
    *("--listen", "amqp-0-10t://127.0.0.1:0", "--anonymous-login-user", "guest"),
    *("--auth-mechanisms", ",".join((*MECHANISMS, "CRAM-MD5"))),
)
BEAT = b"\x08\x00\x00\x00\x00\x00\x00\xce"
LOGIN = m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory that all brokers begin with."""
    return make_home(tmp_path_factory.mktemp("home"), *FLAGS)


@pytest.fixture(scope="module", params=["asyncio", "uvloop", "uvloop by socket"])
def two(
    home: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    loop, _, by_socket = request.param.partition(" ")
    flags = (*FLAGS, "--loop", loop)
    place = tmp_path_factory.mktemp("two")
    with cluster(home, place, *flags, by_socket=bool(by_socket)) as found:
        yield found
        assert "Traceback" not in found.near.log + found.far.log


def dialled(two: Cluster) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", two.near.port), timeout=SECONDS)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return link


def tuned(link: socket.socket, heartbeat: int = 0) -> Talker:
    """A connection that has not opened its vhost yet."""
    talker = Talker(link)
    link.sendall(HEADER)
    assert isinstance(talker.next(), m.ConnectionStart)
    talker.send(LOGIN)
    assert isinstance(talker.next(), m.ConnectionTune)
    talker.send(m.ConnectionTuneOk(0, 0, heartbeat))
    return talker


def flood(link: socket.socket, data: bytes, limit: int) -> None:
    """Send the same again and again, up to so many bytes."""
    for _ in range(limit // len(data)):
        link.sendall(data)


def opened(two: Cluster, heartbeat: int = 0) -> Talker:
    talker = tuned(dialled(two), heartbeat)
    talker.send(m.ConnectionOpen("far"))
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    return talker


def only(two: Cluster) -> dict[str, Any]:
    """The one connection of the owner; those of tests before end in their time."""
    assert eventually(lambda: len(two.connections(two.far)) == 1)
    return two.connections(two.far)[0]


# --- who is served, and how -----------------------------------------------------------------------


@pytest.mark.parametrize("version", SPOKEN)
def test_a_client_of_every_version_is_served_by_the_owner(two: Cluster, version: str) -> None:
    with connect(two.url(version=version)) as connection, connection.channel() as channel:
        queue = f"of-{version}"
        channel.declare_queue(queue)
        body = os.urandom(3 * MIB)
        channel.publish(body, routing_key=queue)
        got = None
        while got is None:
            got = channel.get(queue)
        assert got.body == body
        got.ack()
        row = only(two)
        assert (row["vhost"], row["user"]) == ("far", "guest")
        # The client's own connection, at the port that it has connected to.
        assert (
            row["name"] == f"{row['peer_host']}:{row['peer_port']} -> {row['host']}:{row['port']}"
        )
        assert eventually(lambda: f"accepting AMQP connection {row['name']}" in two.near.log)
        assert two.connections(two.near) == []
    assert eventually(lambda: two.connections(two.far) == [])


def test_the_vhosts_of_the_broker_itself_stay_there(two: Cluster) -> None:
    with connect(two.url("%2F")) as connection:
        connection.channel().declare_queue("here", exclusive=True)
        assert [row["vhost"] for row in two.connections(two.near)] == ["/"]
        assert eventually(lambda: two.connections(two.far) == [])
    assert eventually(lambda: two.connections(two.near) == [])


def test_connections_are_counted_and_announced_by_the_owner_alone(two: Cluster) -> None:
    def created(broker: RunningBroker) -> int:
        overview = ask_command(broker.data_dir, "overview.show", {})
        count: int = overview["churn_rates"]["connection_created"]
        return count

    before = created(two.near), created(two.far)
    opened(two).sock.close()
    assert (created(two.near), created(two.far)) == (before[0], before[1] + 1)


def test_each_answer_comes_once_when_a_client_sends_everything_at_once(two: Cluster) -> None:
    link = dialled(two)
    link.sendall(
        HEADER
        + frame(LOGIN)
        + frame(m.ConnectionTuneOk(0, 0, 0))
        + frame(m.ConnectionOpen("far"))
        + frame(m.ChannelOpen(), 1)
        + frame(m.QueueDeclare("early", exclusive=True), 1)
    )
    talker = Talker(link)
    kinds = [type(talker.next()) for _ in range(5)]
    assert kinds == [
        *(m.ConnectionStart, m.ConnectionTune, m.ConnectionOpenOk),
        *(m.ChannelOpenOk, m.QueueDeclareOk),
    ]
    talker.send(m.ConnectionClose(200, "bye"))
    assert talker.next() == m.ConnectionCloseOk()
    link.close()


def test_a_handshake_in_single_octets_is_handed_over(two: Cluster) -> None:
    link = dialled(two)
    talker = Talker(link)
    for part in (HEADER, frame(LOGIN), frame(m.ConnectionTuneOk(0, 0, 0))):
        for octet in part:
            link.sendall(bytes((octet,)))
        if part is not HEADER and len(part) < 25:
            break
        assert talker.next() is not None
    for octet in frame(m.ConnectionOpen("far")):
        link.sendall(bytes((octet,)))
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    talker.open_channel()


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0guest\0guest"),
        ("AMQPLAIN", b"\x05LOGINS\x00\x00\x00\x05guest\x08PASSWORDS\x00\x00\x00\x05guest"),
        ("ANONYMOUS", b""),
    ],
)
def test_a_login_with_one_response_is_handed_over(
    two: Cluster, mechanism: str, response: bytes
) -> None:
    link = dialled(two)
    talker = Talker(link)
    link.sendall(HEADER)
    assert isinstance(talker.next(), m.ConnectionStart)
    talker.send(m.ConnectionStartOk({}, mechanism, response, "en_US"))
    assert isinstance(talker.next(), m.ConnectionTune)
    talker.send(m.ConnectionTuneOk(0, 0, 0))
    talker.send(m.ConnectionOpen("far"))
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    row = only(two)
    assert row["auth_mechanism"] == mechanism
    link.close()
    assert eventually(lambda: two.connections(two.far) == [])


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256", "CRAM-MD5"])
def test_a_login_with_a_challenge_is_handed_over(two: Cluster, mechanism: str) -> None:
    peer = Peer010(cast(Site, two), SocketWire(two.near.port))
    assert mechanism in peer.greet().mechanisms
    if mechanism == "CRAM-MD5":
        peer.send(k.ConnectionStartOk({}, mechanism, b"", "en_US"))
        challenge = peer.expect(k.ConnectionSecure).challenge
        digest = hmac.digest(b"guest", challenge, "md5").hex().encode()
        peer.send(k.ConnectionSecureOk(b"guest " + digest))
    else:
        bare = f"n=guest,r={base64.b64encode(os.urandom(9)).decode()}"
        peer.send(k.ConnectionStartOk({}, mechanism, f"n,,{bare}".encode(), "en_US"))
        text = peer.expect(k.ConnectionSecure).challenge.decode()
        kind = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        answer, outcome = proof(kind, "guest", bare, text)
        peer.send(k.ConnectionSecureOk(answer))
        assert peer.expect(k.ConnectionSecure).challenge == outcome
        peer.send(k.ConnectionSecureOk(b""))
    peer.expect(k.ConnectionTune)
    peer.send(k.ConnectionTuneOk(), k.ConnectionOpen("far"))
    peer.expect(k.ConnectionOpenOk)
    row = only(two)
    assert row["auth_mechanism"] == mechanism
    peer.opened = True
    peer.attach().close()
    assert eventually(lambda: two.connections(two.far) == [])


# --- errors ---------------------------------------------------------------------------------------


def test_a_wrong_password_is_refused_as_usual(two: Cluster) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError, match="403"):
        pika.BlockingConnection(pika.URLParameters(two.url(user="guest:wrong")))


@pytest.mark.parametrize("version", SPOKEN)
def test_a_user_without_permission_is_refused_by_the_owner(two: Cluster, version: str) -> None:
    with pytest.raises(AMQPError, match="access to vhost 'far' refused for user 'visitor'"):
        connect(two.url(user="visitor:visitor", version=version))
    why = "access to vhost 'far' refused for user 'visitor'"
    assert eventually(lambda: why in two.far.log)


@pytest.mark.parametrize("version", SPOKEN)
@pytest.mark.parametrize("vhost", ["nowhere", "gone"])
def test_a_vhost_that_is_not_there_is_refused_as_usual(
    two: Cluster, version: str, vhost: str
) -> None:
    # "gone" is in the directory still, and its owner does not have it any more.
    refusal = f"vhost {vhost} not found"
    if version == "1-0":
        refusal = f"virtual host '{vhost}' does not exist"
    with pytest.raises(AMQPError, match=refusal):
        connect(two.url(vhost, version=version))


def test_pika_gets_the_refusal_of_the_owner(two: Cluster) -> None:
    with pytest.raises((ProbableAccessDeniedError, ConnectionClosedByBroker), match="530"):
        pika.BlockingConnection(pika.URLParameters(two.url(user="visitor:visitor")))


def test_a_client_that_sends_too_much_before_the_vhost_is_opened_is_closed(two: Cluster) -> None:
    talker = tuned(dialled(two))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        flood(talker.sock, BEAT * 1_000, 2 * HAND_OVER_BYTES)
    assert at_end(talker.sock)
    assert eventually(lambda: f"more than {HAND_OVER_BYTES} bytes before" in two.near.log)


def test_a_user_for_loopback_only_is_refused_for_the_address_of_the_client(two: Cluster) -> None:
    async def ask(address: str, expected: Callable[[bytes], bool]) -> None:
        where = ClusterAddress(*owner_of(two.far))
        header = header_of(Peer(address, 4711, host="192.0.2.2", host_port=5672))
        reader, writer = streams(await open_link(where, SECRET.encode(), header))
        writer.write(HEADER + frame(LOGIN))
        writer.write(frame(m.ConnectionTuneOk(0, 0, 0)) + frame(m.ConnectionOpen("far")))
        found = bytearray()
        async with asyncio.timeout(SECONDS):
            while not expected(found):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.05):
                        found += await reader.read(100)
        writer.close()

    asyncio.run(ask("127.0.0.1", lambda found: found == frame(m.ConnectionOpenOk())))
    refusal = (
        "192.0.2.1:4711 -> 192.0.2.2:5672, state: starting): PLAIN login refused: user 'guest'"
    )
    asyncio.run(ask("192.0.2.1", lambda found: not found and refusal in two.far.log))
    assert eventually(lambda: "user 'guest' can only connect via localhost" in two.far.log)


# --- before a login, and limits -------------------------------------------------------------------


@pytest.fixture(scope="module")
def strict(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Brokers that wait for a client's handshake for two seconds."""
    flags = (*FLAGS, "--handshake-timeout-seconds", "2")
    place = tmp_path_factory.mktemp("strict")
    with cluster(home, place, *flags, by_socket=True) as found:
        yield found


@pytest.fixture(scope="module")
def guarded(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Brokers that let three clients of an address wait, for as long as a test may take."""
    flags = (
        *(*FLAGS, "--handshake-timeout-seconds", "600"),
        *("--unauthenticated-connection-max-per-address", "3"),
    )
    place = tmp_path_factory.mktemp("guarded")
    with cluster(home, place, *flags, by_socket=True) as found:
        yield found


def handed(two: Cluster, address: str, sent: bytes = b"") -> socket.socket:
    """A connection to the cluster port of the owner, as for a client of that address."""

    async def link() -> socket.socket:
        header = header_of(Peer(address, 4711, host="192.0.2.2", host_port=5672))
        transport = await open_link(ClusterAddress(*owner_of(two.far)), SECRET.encode(), header)
        transport.write(sent)
        found: socket.socket = transport.get_extra_info("socket").dup()
        return found

    found = asyncio.run(link())
    found.settimeout(SECONDS)
    return found


def test_a_client_with_a_slow_handshake_is_closed_in_time(strict: Cluster) -> None:
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        dawdle(dialled(strict))
    assert eventually(lambda: "handshake_timeout" in strict.near.log)
    assert not strict.connections(strict.far)


def dawdle(link: socket.socket) -> None:
    """Log in, and then send five octets per second for a minute."""
    link.sendall(HEADER + frame(LOGIN) + frame(m.ConnectionTuneOk(0, 0, 0)))
    for octet in BEAT * 40:
        link.sendall(bytes([octet]))
        time.sleep(0.2)


def test_the_owner_waits_as_long_for_a_client_that_was_handed_over(strict: Cluster) -> None:
    began = time.monotonic()
    links = [handed(strict, "192.0.2.5", sent) for sent in (b"", HEADER, HEADER + frame(LOGIN))]
    for link in links:
        assert at_end(link)
        link.close()
    assert time.monotonic() - began > 1.5


def test_a_client_that_was_handed_over_counts_for_its_own_address(guarded: Cluster) -> None:
    links = [handed(guarded, "192.0.2.6") for _ in range(3)]
    more = handed(guarded, "192.0.2.6", HEADER)
    assert at_end(more)
    assert eventually(
        lambda: "3 connections from 192.0.2.6 have not logged in yet" in guarded.far.log
    )
    # It is not the address of the broker that hands it over.
    opened(guarded).sock.close()
    more.close()
    for link in links:
        # The event loop of its beginning has it open, too.
        link.shutdown(socket.SHUT_RDWR)
        link.close()
    assert eventually(lambda: not guarded.connections(guarded.far))


def test_clients_that_have_not_logged_in_keep_none_out_once_they_have(guarded: Cluster) -> None:
    ready = [tuned(dialled(guarded)) for _ in range(3)]
    assert at_end(dialled(guarded))
    for talker in ready:
        talker.send(m.ConnectionOpen("far"))
        assert isinstance(talker.next(), m.ConnectionOpenOk)
    more = [opened(guarded) for _ in range(4)]
    for talker in (*ready, *more):
        talker.sock.close()


# --- flow, ends -----------------------------------------------------------------------------------


def test_a_consumer_that_does_not_read_fills_no_broker(two: Cluster) -> None:
    with connect(two.url()) as connection, connection.channel() as channel:
        channel.declare_queue("deep")
        for _ in range(64):
            channel.publish(bytes(MIB), routing_key="deep")
        before = resident_mib(two.near.pid)
        talker = opened(two).open_channel()
        talker.send(m.BasicConsume("deep", "c", no_ack=True), 1)
        assert talker.next() == m.BasicConsumeOk("c")
        sizes = [0]
        assert eventually(lambda: settled(lambda: int(resident_mib(two.near.pid)), sizes))
        assert resident_mib(two.near.pid) - before < 16
        for _ in range(64):
            assert isinstance(talker.next(), m.BasicDeliver)
            assert len(talker.body()) == MIB
        talker.sock.close()
        channel.delete_queue("deep")


def settled(measure: Any, seen: list[int]) -> bool:
    """Whether a measure is what it was three looks ago."""
    time.sleep(0.1)
    seen.append(measure())
    return len(seen) > 4 and len(set(seen[-3:])) == 1


def test_an_owner_that_stands_still_stops_its_clients(two: Cluster) -> None:
    talker = opened(two).open_channel()
    talker.send(m.QueueDeclare("q"), 1)
    assert isinstance(talker.next(), m.QueueDeclareOk)
    before = resident_mib(two.near.pid)
    body = b"\x03\x00\x01" + (100_000).to_bytes(4) + bytes(100_000) + b"\xce"
    head = b"\x02\x00\x01" + (14).to_bytes(4) + b"\x00\x3c\x00\x00" + (100_000).to_bytes(8)
    message = frame(m.BasicPublish(routing_key="q"), 1) + head + b"\x00\x00\xce" + body
    os.kill(two.far.pid, signal.SIGSTOP)
    try:
        talker.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            flood(talker.sock, message, 256 * MIB)
        assert resident_mib(two.near.pid) - before < 16
    finally:
        os.kill(two.far.pid, signal.SIGCONT)


def test_a_client_sees_that_the_owner_is_killed(home: Path, tmp_path: Path) -> None:
    with cluster(home, tmp_path) as two:
        talker = opened(two)
        assert passed_on(two) == 1
        two.far.kill()
        assert at_end(talker.sock)
        assert eventually(lambda: passed_on(two) == 0)


def at_end(link: socket.socket) -> bool:
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


def passed_on(two: Cluster) -> int:
    """The sockets of the near broker's process to the owner."""
    port = int(owner_of(two.far)[1].rpartition(":")[2])
    found = Path(f"/proc/{two.near.pid}/net/tcp").read_text()
    return len(re.findall(rf"0100007F:{port:04X} 01 ", found))


def test_the_owner_sees_that_a_client_is_gone(two: Cluster) -> None:
    talker = opened(two).open_channel()
    assert only(two)["channels"] == 1
    talker.sock.close()
    assert eventually(lambda: two.connections(two.far) == [])
    assert eventually(lambda: passed_on(two) == 0)


def test_a_client_that_ends_its_side_gets_its_answers(two: Cluster) -> None:
    talker = opened(two)
    talker.send(m.ConnectionClose(200, "bye"))
    talker.sock.shutdown(socket.SHUT_WR)
    assert talker.next() == m.ConnectionCloseOk()
    assert talker.next() is None


def test_an_error_reaches_a_client_that_goes_on_sending(two: Cluster) -> None:
    talker = opened(two)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        talker.sock.sendall(b"\x01\x00\x01\x00\x00\x00\x04abcd\x00" + b"y" * 2_000_000)
    close = talker.next()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 501
    assert talker.next() is None


def test_heartbeats_pass_both_ways(two: Cluster) -> None:
    silent = opened(two, heartbeat=1)
    assert silent.frame() == (8, b"")
    while silent.frame() is not None:
        pass
    assert eventually(lambda: "missed heartbeats from client" in two.far.log)
    # The owner counts what comes: whoever beats too late on a busy machine is rightly closed.
    lively = opened(two, heartbeat=600)
    before = only(two)["recv_oct"]
    lively.sock.sendall(3 * BEAT)
    assert eventually(lambda: only(two)["recv_oct"] == before + 3 * len(BEAT))
    lively.send(m.ConnectionClose(200, "bye"))
    assert lively.next() == m.ConnectionCloseOk()


# --- owners come and go ---------------------------------------------------------------------------


def test_a_client_waits_for_an_owner(two: Cluster) -> None:
    with two.directory(owners={}):
        talker = tuned(dialled(two))
        talker.send(m.ConnectionOpen("far"))
        time.sleep(0.3)
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    talker.sock.close()


def test_a_client_that_waits_too_long_for_an_owner_is_closed(home: Path, tmp_path: Path) -> None:
    with cluster(home, tmp_path, waits=1.0) as hasty, hasty.directory(owners={}):
        late = tuned(dialled(hasty))
        late.send(m.ConnectionOpen("far"))
        assert late.next() is None
        assert eventually(lambda: "vhost 'far': it has no owner now" in hasty.near.log)


def _held(port: int, clients: set[int]) -> int:
    """How many connections from these ports the process that listens on a port has open."""
    # Linux may list a connection twice if others come and go meanwhile.
    held = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        own, other = (int(each.partition(":")[2], 16) for each in fields[1:3])
        # A socket that no process has open any more has no inode.
        if own == port and other in clients and fields[9] != "0":
            held.add(other)
    return len(held)


def test_a_client_that_leaves_while_it_waits_for_an_owner_is_forgotten(two: Cluster) -> None:
    with two.directory(owners={}):
        leaving = [tuned(dialled(two)) for _ in range(20)]
        ports = {talker.sock.getsockname()[1] for talker in leaving}
        for talker in leaving:
            talker.send(m.ConnectionOpen("far"))
        assert _held(two.near.port, ports) == 20
        for talker in leaving:
            talker.sock.close()
        # Those that stay would wait for longer.
        assert eventually(lambda: _held(two.near.port, ports) == 0)


def test_another_owner_ends_what_was_passed_on_to_the_one_before(two: Cluster) -> None:
    with two.directory():
        talker = opened(two)
    epoch, *rest = owner_of(two.far)
    with two.directory(owners={"2": [epoch + 1, *rest]}):
        assert at_end(talker.sock)
        opened(two).open_channel()


def test_an_owner_with_another_secret_gets_nobody(home: Path, tmp_path: Path) -> None:
    with cluster(home, tmp_path, waits=5.0) as hasty, hasty.directory(secret="another"):
        talker = tuned(dialled(hasty))
        talker.send(m.ConnectionOpen("far"))
        assert talker.next() is None
        told = "cannot be passed on to the owner of vhost 'far'"
        assert eventually(lambda: told in hasty.near.log)
        assert eventually(lambda: "it does not know the secret" in hasty.far.log)


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of the user guest with its key, which is the one of the brokers too."""
    return make_certificate(tmp_path_factory.mktemp("tls") / "guest.pem")


def tls_flags(certificate: Path) -> tuple[str, ...]:
    return (
        *("--tls-port", "0", "--tls-cert", str(certificate), "--tls-key", str(certificate)),
        *("--tls-ca", str(certificate), "--tls-login-from", "common_name"),
    )


@pytest.fixture(scope="module", params=["asyncio", "uvloop"])
def encrypted(
    home: Path,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    certificate: Path,
) -> Iterator[Cluster]:
    flags = (*FLAGS, *tls_flags(certificate), "--loop", request.param)
    with cluster(home, tmp_path_factory.mktemp("tls"), *flags) as found:
        yield found
        assert "Traceback" not in found.near.log + found.far.log


def secured(two: Cluster, certificate: Path | None = None) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate)
    port = int(two.near.address("amqps").rpartition(":")[2])
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))


@pytest.mark.parametrize("version", [each for each in SPOKEN if each != "0-10t"])
def test_a_client_of_tls_is_passed_on_over_tls(
    encrypted: Cluster, certificate: Path, version: str
) -> None:
    scheme = "amqps" if version == "0-9-1" else f"amqps+{version}"
    address = encrypted.near.address("amqps").rpartition("/")[2]
    url = f"{scheme}://guest:guest@{address}/far?verify=verify_none&insecure=true"
    with connect(url) as connection, connection.channel() as channel:
        queue = f"tls-{version}"
        channel.declare_queue(queue)
        body = os.urandom(3 * MIB)
        channel.publish(body, routing_key=queue)
        got = None
        while got is None:
            got = channel.get(queue, no_ack=True)
        assert got.body == body
        row = only(encrypted)
        assert (row["ssl"], row["ssl_protocol"]) == (True, "tlsv1.3")
        assert row["ssl_cipher"]
    assert eventually(lambda: encrypted.connections(encrypted.far) == [])


def test_a_certificate_is_known_to_the_owner(encrypted: Cluster, certificate: Path) -> None:
    talker = Talker(secured(encrypted, certificate))
    talker.sock.sendall(HEADER)
    assert isinstance(talker.next(), m.ConnectionStart)
    talker.send(m.ConnectionStartOk({}, "EXTERNAL", b"", "en_US"))
    assert isinstance(talker.next(), m.ConnectionTune)
    talker.send(m.ConnectionTuneOk(0, 0, 0))
    talker.send(m.ConnectionOpen("far"))
    assert isinstance(talker.next(), m.ConnectionOpenOk)
    row = only(encrypted)
    assert (row["user"], row["auth_mechanism"]) == ("guest", "EXTERNAL")
    assert row["peer_cert_subject"] == "CN=guest,O=Test"
    talker.sock.close()
    assert eventually(lambda: encrypted.connections(encrypted.far) == [])


def test_a_plain_client_is_passed_on_over_tls_and_gets_its_last_frames(encrypted: Cluster) -> None:
    talker = opened(encrypted)
    assert only(encrypted)["ssl"] is False
    talker.send(m.ConnectionClose(200, "bye"))
    assert talker.next() == m.ConnectionCloseOk()
    talker.sock.close()
    half = opened(encrypted)
    half.send(m.ConnectionClose(200, "bye"))
    half.sock.shutdown(socket.SHUT_WR)
    assert half.next() == m.ConnectionCloseOk()
    assert half.next() is None
    assert eventually(lambda: encrypted.connections(encrypted.far) == [])
    assert eventually(lambda: passed_on(encrypted) == 0)


def test_a_client_of_tls_is_not_passed_on_in_plain_text(
    home: Path, tmp_path: Path, certificate: Path
) -> None:
    with cluster(home, tmp_path, near=tls_flags(certificate)) as two:
        talker = tuned(secured(two))
        talker.send(m.ConnectionOpen("far"))
        assert talker.next() is None
        assert eventually(lambda: "has no TLS at its cluster port" in two.near.log)
        assert two.connections(two.far) == []
        opened(two).open_channel()
