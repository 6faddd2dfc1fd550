"""Connections of a load balancer: the address of the client, or a refusal with a reason."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import socket
import ssl
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.server.net.proxy_header import (
    SIGNATURE,
    Proxied,
    ProxyHeaderError,
    parse_v1,
    parse_v2,
)
from harebell.wire.v09 import methods as m
from tests.interop.client.certificates import make_certificates
from tests.patience import eventually
from tests.running import RunningBroker, command, environment, running_broker
from tests.unit.server.listening import HEADER, SECONDS, Talker


def v2(client: str, server: str, port: int, *, kind: int = 0x21, extra: bytes = b"") -> bytes:
    """A header of version 2."""
    there, own = ipaddress.ip_address(client), ipaddress.ip_address(server)
    body = there.packed + own.packed + struct.pack("!HH", port, 5672) + extra
    family = 0x11 if there.version == 4 else 0x21
    return SIGNATURE + struct.pack("!BBH", kind, family, len(body)) + body


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("certificates")
    make_certificates(where)
    return where


@pytest.fixture(params=["asyncio", "uvloop"], scope="module")
def broker(request: pytest.FixtureRequest, certificates: Path) -> Iterator[RunningBroker]:
    flags = ["--loop", request.param, "--proxy-protocol", "true", "--tls-port", "0"]
    flags += ["--tls-cert", str(certificates / "server.pem")]
    flags += ["--tls-key", str(certificates / "server.key")]
    with running_broker(*flags) as started:
        yield started


def connect(port: int, start: bytes) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
    link.sendall(start)
    return link


def names(broker: RunningBroker) -> list[str]:
    """The names of the connections, as the command line lists them."""
    done = subprocess.run(
        [command(), "connections", "list", "--json", "--data-dir", str(broker.data_dir)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    return [each["name"] for each in json.loads(done.stdout)]


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"PROXY TCP4 127.0.0.9 203.0.113.1 35646 443\r\n", "127.0.0.9:35646 -> 203.0.113.1:443"),
        (b"PROXY TCP6 ::1 2001:db8::1 7 8\r\n", "::1:7 -> 2001:db8::1:8"),
        (v2("127.0.0.8", "203.0.113.2", 9), "127.0.0.8:9 -> 203.0.113.2:5672"),
        (v2("::1", "2001:db8::2", 9, extra=b"\x04\x00\x01x"), "::1:9 -> 2001:db8::2:5672"),
    ],
)
def test_a_connection_has_the_address_of_the_client(
    broker: RunningBroker, header: bytes, name: str
) -> None:
    talker = Talker(connect(broker.port, header)).log_in()
    assert name in names(broker)
    assert eventually(lambda: f"accepting AMQP connection {name}" in broker.log)
    talker.sock.close()
    assert eventually(lambda: name not in names(broker))


def test_the_header_comes_before_tls(broker: RunningBroker, certificates: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    trusting.check_hostname = False
    port = int(broker.address("amqps").rpartition(":")[2])
    link = connect(port, v2("127.0.0.7", "203.0.113.3", 11))
    talker = Talker(trusting.wrap_socket(link)).log_in()
    assert "127.0.0.7:11 -> 203.0.113.3:5672" in names(broker)
    talker.sock.close()


@pytest.mark.parametrize(
    "header",
    [b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ff :: 1 2\r\n", v2("9.9.9.9", "9.9.9.8", 1, kind=0x20)],
)
def test_a_check_of_the_load_balancer_has_its_own_address(
    broker: RunningBroker, header: bytes
) -> None:
    link = connect(broker.port, header)
    Talker(link).log_in()
    assert f"127.0.0.1:{link.getsockname()[1]} -> 127.0.0.1:{broker.port}" in names(broker)
    link.close()


def test_guest_from_another_machine_is_refused_by_the_address_in_the_header(
    broker: RunningBroker,
) -> None:
    talker = Talker(connect(broker.port, v2("192.0.2.7", "203.0.113.1", 5)))
    talker.sock.sendall(HEADER)
    assert isinstance(talker.next(), m.ConnectionStart)
    talker.send(
        m.ConnectionStartOk(
            {"capabilities": {"authentication_failure_close": True}},
            "PLAIN",
            b"\0guest\0guest",
            "en_US",
        )
    )
    close = talker.next()
    assert isinstance(close, m.ConnectionClose)
    assert close.reply_code == 403
    sentence = "user 'guest' can only connect via localhost"
    assert eventually(lambda: sentence in broker.log)


@pytest.mark.parametrize(
    ("start", "why"),
    [
        (HEADER * 3, "the connection does not begin with one"),
        (b"PROXY TCP4 192.0.2.7 nowhere 1 2\r\n", "b'nowhere' is no address of IPv4"),
        (b"PROXY TCP4 192.0.2.7 192.0.2.8 1 66000\r\n", "b'66000' is no port"),
        (b"PROXY TCP4 \n[error] forged\r\n", "it is no line such as PROXY TCP4"),
        (b"PROXY " + b"x" * 200, "no line end in 107 bytes"),
        (SIGNATURE + b"\x31\x11\x00\x00", "its version and kind are 0x31"),
        (SIGNATURE + b"\x21\x11\x00\x04abcd", "it has 4 bytes of addresses, too few"),
        (SIGNATURE + b"\x21\x11\xff\xff", "it has 65535 bytes of addresses and extensions"),
    ],
)
def test_a_connection_without_a_right_header_is_closed_with_a_reason(
    broker: RunningBroker, start: bytes, why: str
) -> None:
    is_refused(broker, start, why)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_header_that_does_not_end_is_not_waited_for(loop: str) -> None:
    flags = ("--loop", loop, "--proxy-protocol", "true", "--handshake-timeout-seconds", "1")
    with running_broker(*flags) as hasty:
        is_refused(hasty, b"PROXY TCP4 ", "it is not there in time")


def is_refused(broker: RunningBroker, start: bytes, why: str) -> None:
    link = connect(broker.port, start)
    address = f"127.0.0.1:{link.getsockname()[1]}"
    with contextlib.suppress(ConnectionResetError):
        assert link.recv(100) == b""
    sentence = f"[warning] <0.0.0> {address}: error when receiving the PROXY header: {why}"
    assert eventually(lambda: sentence in broker.log), broker.log[-2000:]
    assert "Traceback" not in broker.log


def test_headers_are_parsed_to_addresses() -> None:
    assert parse_v1(b"PROXY TCP4 1.2.3.4 5.6.7.8 9 10") == Proxied(("1.2.3.4", 9), ("5.6.7.8", 10))
    assert parse_v1(b"PROXY UNKNOWN whatever") is None
    assert parse_v2(0x21, 0x31, b"/a/unix/socket") is None
    for line in (b"PROXY TCP6 1.2.3.4 5.6.7.8 9 10", b"PROXY TCP6 fe80::1%lo ::1 9 10"):
        with pytest.raises(ProxyHeaderError):
            parse_v1(line)
