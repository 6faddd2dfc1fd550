"""TLS of a real broker: deadlines, who is let in, versions and ciphers, files that change."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from harebell.management.control.client import ask_command
from harebell.wire.v09 import methods as m
from tests.interop.client.certificates import make_certificates
from tests.patience import eventually
from tests.running import DidNotStart, RunningBroker, asked, running_broker
from tests.unit.server.listening import SECONDS, Talker, talk


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates: ca.pem, server.pem and .key, another pair, and a client's."""
    where = make_certificates(tmp_path_factory.mktemp("tls"))
    _signed(where, "other")
    _signed(where, "client")
    _openssl(
        where,
        *["rsa", "-aes256", "-in", "server.key", "-out", "locked.key", "-passout", "pass:secret"],
    )
    return where


def _openssl(where: Path, *arguments: str) -> None:
    subprocess.run(
        ["openssl", *arguments], cwd=where, check=True, capture_output=True, timeout=SECONDS
    )


def _signed(where: Path, name: str) -> None:
    request = f"req -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.csr -subj /CN={name}"
    _openssl(where, *request.split())
    sign = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
    _openssl(where, *sign.split(), "-out", f"{name}.pem")


def flags(made: Path, *more: str) -> tuple[str, ...]:
    cert, key = str(made / "server.pem"), str(made / "server.key")
    return ("--tls-port", "0", "--tls-cert", cert, "--tls-key", key, *more)


def tls_port(broker: RunningBroker) -> int:
    return int(broker.address("amqps").rpartition(":")[2])


def plain_socket(broker: RunningBroker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", tls_port(broker)), timeout=SECONDS)


def client_context(cert: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if cert is not None:
        context.load_cert_chain(cert, cert.with_suffix(".key"))
    return context


def encrypted(broker: RunningBroker, context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
    return (context or client_context()).wrap_socket(plain_socket(broker))


def subject_of(link: ssl.SSLSocket) -> bytes:
    found = link.getpeercert(binary_form=True)
    assert found is not None
    return found


def half_hello() -> bytes:
    """The first half of what a client begins TLS with."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = outgoing.read()
    return hello[: len(hello) // 2]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("beginning", [b"", half_hello()], ids=["nothing", "half a hello"])
def test_a_handshake_that_is_not_finished_is_cut_in_time(
    made: Path, loop: str, beginning: bytes, tmp_path: Path
) -> None:
    config = tmp_path / "harebell.toml"
    config.write_text("handshake_timeout_seconds = 1\n")
    wanted = flags(made, "--config", str(config), "--loop", loop)
    with running_broker(*wanted) as broker, plain_socket(broker) as slow:
        slow.sendall(beginning)
        assert slow.recv(1) == b""
        assert eventually(lambda: "{handshake_timeout,header}" in broker.log), broker.log
        # Our own handshake may take longer.
        config.write_text("handshake_timeout_seconds = 600\n")
        assert asked(broker, "config", "reload").returncode == 0
        Talker(encrypted(broker)).log_in()
        assert "Traceback" not in broker.log


def test_half_a_handshake_counts_as_a_connection(made: Path) -> None:
    with running_broker(*flags(made, "--connection-max", "1")) as broker:
        with plain_socket(broker) as slow:
            slow.sendall(half_hello())
            early = Talker(socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS))
            # Its end is a reset if the broker has not read what came before.
            with pytest.raises((AssertionError, ConnectionError)):
                early.log_in()
        assert eventually(lambda: "node connection limit (1) is reached" in broker.log)
        assert eventually(lambda: "the TLS handshake failed" in broker.log), broker.log
        talk(broker.port)


def ends(link: socket.socket) -> bool:
    try:
        return link.recv(1) == b""
    except (ConnectionResetError, ssl.SSLError):
        return True


def test_only_so_many_connections_of_an_address_may_be_without_a_login(made: Path) -> None:
    limit = ("--unauthenticated-connection-max-per-address", "2")
    with running_broker(*flags(made, *limit)) as broker:
        first = plain_socket(broker)
        second = plain_socket(broker)
        second.sendall(half_hello())
        for _ in range(3):
            assert ends(plain_socket(broker))
        line = "2 connections from 127.0.0.1 have not logged in yet: more are turned away"
        assert eventually(lambda: line in broker.log), broker.log
        assert broker.log.count(line) == 1
        first.close()
        assert eventually(lambda: "the TLS handshake failed" in broker.log), broker.log
        opened = [talk(broker.port) for _ in range(3)]
        second.close()
        for each in opened:
            each.open_channel()


def test_only_so_many_connections_in_all_may_be_without_a_login() -> None:
    with running_broker("--unauthenticated-connection-max", "1") as broker:
        opened = talk(broker.port)
        slow = socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS)
        slow.sendall(b"A")
        assert ends(socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS))
        line = "1 connections have not logged in yet: more are turned away"
        assert eventually(lambda: line in broker.log), broker.log
        opened.open_channel()
        slow.close()


@pytest.mark.parametrize("word", ["none", "off"])
def test_a_broker_can_serve_tls_only(made: Path, word: str) -> None:
    with running_broker(*flags(made, "--port", word)) as broker:
        Talker(encrypted(broker)).log_in().open_channel()
        assert "listening on amqp://" not in broker.log


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_client_certificate_can_be_required(made: Path, loop: str) -> None:
    asked = ("--tls-ca", str(made / "ca.pem"), "--tls-fail-if-no-peer-cert", "true")
    with running_broker(*flags(made, *asked, "--loop", loop)) as broker:
        Talker(encrypted(broker, client_context(made / "client.pem"))).log_in()
        # With TLS 1.3 a client learns it with its first read only.
        assert ends(encrypted(broker))
        assert eventually(lambda: "the TLS handshake failed: " in broker.log)
        assert "certificate" in broker.log.lower().rpartition("handshake failed: ")[2]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_connection_shows_its_cipher_and_its_certificate(made: Path, loop: str) -> None:
    context = client_context(made / "client.pem")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-RSA-AES256-SHA")
    asked = ("--tls-ca", str(made / "ca.pem"), "--tls-login-from", "common_name")
    asked += ("--tls-min-version", "tlsv1.2", "--tls-ciphers", "ECDHE-RSA-AES256-SHA")
    with running_broker(*flags(made, *asked, "--loop", loop)) as broker:
        old, new = Talker(encrypted(broker, context)), Talker(encrypted(broker))
        plain = Talker(socket.create_connection(("127.0.0.1", broker.port), timeout=SECONDS))
        for each in (old, new, plain):
            each.log_in()
        rows = ask_command(broker.data_dir, "connections.list", {})
    found = {row["ssl_protocol"]: row for row in rows}
    assert set(found) == {"tlsv1.2", "tlsv1.3", None}
    names = ("ssl_key_exchange", "ssl_cipher", "ssl_hash", "peer_cert_subject", "peer_cert_issuer")
    assert [found["tlsv1.2"][name] for name in names[:4]] == [
        *("ecdhe_rsa", "aes_256_cbc", "sha"),
        "CN=client",
    ]
    assert found["tlsv1.2"]["peer_cert_issuer"].startswith("CN=")
    start, end = found["tlsv1.2"]["peer_cert_validity"].split(" - ")
    assert datetime.fromisoformat(end) - datetime.fromisoformat(start) == timedelta(days=2)
    assert [found["tlsv1.3"][name] for name in names] == [
        *("any", "aes_256_gcm", "aead"),
        *(None, None),
    ]
    assert [found[None][name] for name in (*names, "peer_cert_validity")] == [None] * 6


def test_certificates_can_be_left_unchecked(made: Path) -> None:
    asked = ("--tls-ca", str(made / "ca.pem"), "--tls-verify", "verify_none")
    with running_broker(*flags(made, *asked)) as broker:
        Talker(encrypted(broker, client_context(made / "stranger.pem"))).log_in()


def test_an_older_version_than_the_least_is_refused(made: Path) -> None:
    old = client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with running_broker(*flags(made, "--tls-min-version", "tlsv1.3")) as broker:
        with pytest.raises(ssl.SSLError):
            encrypted(broker, old)
        assert encrypted(broker).version() == "TLSv1.3"


def test_ciphers_can_be_chosen(made: Path) -> None:
    old = client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    cipher = "ECDHE-RSA-AES256-GCM-SHA384"
    with running_broker(*flags(made, "--tls-ciphers", cipher)) as broker:
        found = encrypted(broker, old).cipher()
        assert found is not None
        assert found[0] == cipher
        old.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
        with pytest.raises(ssl.SSLError):
            encrypted(broker, old)


def locked(made: Path) -> tuple[str, ...]:
    cert, key = str(made / "server.pem"), str(made / "locked.key")
    return ("--tls-port", "0", "--tls-cert", cert, "--tls-key", key)


def test_the_passphrase_of_a_key_comes_from_the_environment_or_a_file(
    made: Path, tmp_path: Path
) -> None:
    with running_broker(*locked(made), env={"HAREBELL_TLS_KEY_PASSWORD": "secret"}) as broker:
        Talker(encrypted(broker)).log_in()
    written = tmp_path / "passphrase"
    written.write_text("secret\n")
    with running_broker(*locked(made), "--tls-key-password-file", str(written)) as broker:
        Talker(encrypted(broker)).log_in()


def test_a_key_without_its_passphrase_is_a_sentence(made: Path) -> None:
    with pytest.raises(DidNotStart, match=r"locked\.key is encrypted: give its passphrase"):
        RunningBroker(*locked(made))
    with pytest.raises(DidNotStart, match="cannot use the TLS files"):
        RunningBroker(*locked(made), env={"HAREBELL_TLS_KEY_PASSWORD": "wrong"})


@pytest.fixture
def changing(made: Path, tmp_path: Path) -> Iterator[tuple[RunningBroker, Path]]:
    """A broker whose certificate can be replaced, and the directory with it."""
    directory = tmp_path / "tls"
    shutil.copytree(made, directory)
    with running_broker(*flags(directory)) as broker:
        yield broker, directory


def test_a_certificate_that_is_replaced_is_served_to_new_connections(
    changing: tuple[RunningBroker, Path],
) -> None:
    broker, directory = changing
    before = encrypted(broker)
    old = Talker(before).log_in()
    os.replace(directory / "other.key", directory / "server.key")
    os.replace(directory / "other.pem", directory / "server.pem")
    assert eventually(lambda: subject_of(encrypted(broker)) != subject_of(before)), broker.log
    assert eventually(lambda: "the TLS files were read again" in broker.log)
    old.open_channel()


def test_a_bad_certificate_keeps_the_one_before(changing: tuple[RunningBroker, Path]) -> None:
    broker, directory = changing
    before = subject_of(encrypted(broker))
    good = (directory / "server.pem").read_bytes()
    (directory / "server.pem").write_text("no certificate\n")
    assert eventually(lambda: "the TLS files from before stay in use" in broker.log)
    assert eventually(lambda: f"cannot use the TLS files {directory / 'server.pem'}" in broker.log)
    assert subject_of(encrypted(broker)) == before
    (directory / "server.pem").write_bytes(good)
    assert eventually(lambda: "the TLS files were read again" in broker.log)


def test_a_hangup_signal_reads_the_files_again(changing: tuple[RunningBroker, Path]) -> None:
    broker, _ = changing
    broker.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: "the TLS files were read again" in broker.log)
    talker = Talker(encrypted(broker)).log_in().open_channel()
    talker.send(m.QueueDeclare("q"), 1)
    assert talker.next() == m.QueueDeclareOk("q", 0, 0)


def test_a_hangup_signal_does_not_end_a_broker_without_tls() -> None:
    with running_broker() as broker:
        broker.process.send_signal(signal.SIGHUP)
        assert eventually(
            lambda: "the configuration was read again, changed: nothing" in broker.log
        )
        talk(broker.port).open_channel()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_octets_right_behind_the_handshake_are_served(made: Path, loop: str) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context().wrap_bio(incoming, outgoing)
    with running_broker(*flags(made, "--loop", loop)) as broker, plain_socket(broker) as link:
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                link.sendall(outgoing.read())
                incoming.write(link.recv(65_536))
        client.write(b"AMQP\x00\x00\x09\x01")
        # The end of the handshake and the first octets of AMQP, in one piece.
        link.sendall(outgoing.read())
        start = b""
        while b"mechanisms" not in start and b"PLAIN" not in start:
            try:
                start += client.read(65_536)
            except ssl.SSLWantReadError:
                incoming.write(link.recv(65_536))
