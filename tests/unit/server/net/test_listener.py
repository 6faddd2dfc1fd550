"""Listeners: addresses that can be had, and sentences for those that cannot."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from harebell.config import Config
from harebell.server.net.listener import Listener, StartError
from harebell.server.net.tls import tls_context
from harebell.wire.v09 import methods as m
from tests.interop.client.certificates import make_certificates
from tests.running import command, environment, running_broker
from tests.unit.server.listening import SECONDS, Talker, talk


def serve(*flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command(), "serve", *flags],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_a_busy_port_gets_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = serve("--port", str(port), "--data-dir", str(tmp_path))
    assert done.returncode != 0
    assert f"127.0.0.1:{port} is in use already" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_of_another_machine_gets_a_sentence(tmp_path: Path) -> None:
    done = serve("--host", "192.0.2.1", "--port", "0", "--data-dir", str(tmp_path))
    assert done.returncode != 0
    assert "192.0.2.1:0 is no address of this machine: choose one with --host" in done.stderr
    assert "Traceback" not in done.stderr


def test_addresses_are_shown_as_users_write_them() -> None:
    shown = [
        Listener(scheme, host, port, server=None, configured_host=host).shown  # type: ignore[arg-type]
        for scheme, host, port in (("amqp", "127.0.0.1", 5672), ("amqps", "::1", 5671))
    ]
    assert shown == ["amqp://127.0.0.1:5672", "amqps://[::1]:5671"]


def test_missing_tls_files_get_a_sentence_with_their_names() -> None:
    config = Config(tls_port=0, tls_cert="/nowhere/cert.pem", tls_key="/nowhere/key.pem")
    with pytest.raises(StartError, match="cannot use the TLS files /nowhere/cert"):
        tls_context(config)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("certificates")
    make_certificates(where)
    return where


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_tls_listener_speaks_amqp_beside_the_plain_one(certificates: Path, loop: str) -> None:
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    trusting.check_hostname = False
    flags = ("--tls-port", "0", "--loop", loop, "--tls-cert", str(certificates / "server.pem"))
    with running_broker(*flags, "--tls-key", str(certificates / "server.key")) as broker:
        port = int(broker.address("amqps").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as plain:
            talker = Talker(trusting.wrap_socket(plain)).log_in().open_channel()
            talker.send(m.QueueDeclare("q"), 1)
            assert talker.next() == m.QueueDeclareOk("q", 0, 0)
            talker.send(m.ConnectionClose(200, "bye"))
            assert talker.next() == m.ConnectionCloseOk()
        talk(broker.port).sock.close()


def test_plain_octets_to_a_tls_listener_end_that_connection_only(certificates: Path) -> None:
    cert, key = certificates / "server.pem", certificates / "server.key"
    flags = ("--tls-port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    with running_broker(*flags) as broker:
        port = int(broker.address("amqps").rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as wrong:
            wrong.sendall(b"AMQP\x00\x00\x09\x01" * 10)
            assert not has_frames(wrong)
        talk(broker.port).sock.close()
        assert "Traceback" not in broker.log


def has_frames(sock: socket.socket) -> bool:
    """Whether anything comes before the end that looks like AMQP; a TLS alert does not."""
    received = b""
    try:
        while data := sock.recv(4096):
            received += data
    except ConnectionResetError:
        pass
    return b"AMQP" in received or received[:1] == b"\x01"
