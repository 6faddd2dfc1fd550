"""SASL EXTERNAL over TLS: the certificate of the client says who it is."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.wire.v010 import controls as k
from harebell.wire.v09 import methods as m
from tests.conformance.raw import Peer
from tests.conformance.sites import SocketSite, SocketWire
from tests.conformance.v010.raw import Peer010
from tests.ports import free_port


class TlsWire(SocketWire):
    """A wire over TLS, with a certificate or without one."""

    def __init__(self, port: int, certificate: Path | None) -> None:
        super().__init__(port)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        if certificate is not None:
            context.load_cert_chain(certificate)
        self._tls = context.wrap_socket(self._socket)
        self._socket = self._tls

    def read(self, seconds: float) -> bytes | None:
        """What has come; some of it may be decrypted already, which no select tells."""
        if self._tls.pending():
            return self._tls.recv(65_536) or None
        return super().read(seconds)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that names the user guest, with its key; it vouches for itself."""
    path = tmp_path_factory.mktemp("tls") / "guest.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/O=Test/CN=guest"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-keyout", str(path.with_suffix(".key")), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    path.write_text(path.read_text() + path.with_suffix(".key").read_text())
    return path


@pytest.fixture(scope="module")
def tls_port(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[int]:
    """A broker that takes users from the common names of certificates."""
    port = free_port()
    site = SocketSite(
        tmp_path_factory.mktemp("broker"),
        *("--tls-port", str(port), "--tls-cert", str(certificate), "--tls-key", str(certificate)),
        *("--tls-ca", str(certificate), "--tls-login-from", "common_name"),
    )
    yield port
    site.close()


@pytest.mark.parametrize("mechanism", ["EXTERNAL", "PLAIN"])
def test_a_client_of_0_9_1_chooses_between_its_certificate_and_a_password(
    tls_port: int, certificate: Path, broker_process: SocketSite, mechanism: str
) -> None:
    peer = Peer(broker_process, TlsWire(tls_port, certificate))
    assert peer.greet().mechanisms == b"PLAIN AMQPLAIN EXTERNAL"
    response = b"" if mechanism == "EXTERNAL" else b"\0guest\0guest"
    peer.log_in(mechanism=mechanism, response=response)
    peer.send(m.ConnectionTuneOk(), m.ConnectionOpen("/"))
    peer.expect(m.ConnectionOpenOk)
    peer.wire.drop()


def connected(tls_port: int, certificate: Path | None, site: SocketSite) -> Peer010:
    return Peer010(site, TlsWire(tls_port, certificate))


def test_a_client_with_a_certificate_is_the_user_that_it_names(
    tls_port: int, certificate: Path, broker_process: SocketSite
) -> None:
    peer = connected(tls_port, certificate, broker_process)
    assert peer.greet().mechanisms[0] == "EXTERNAL"
    peer.send(k.ConnectionStartOk({}, "EXTERNAL", b"", "en_US"))
    peer.expect(k.ConnectionTune)
    peer.send(k.ConnectionTuneOk(), k.ConnectionOpen("/"))
    peer.expect(k.ConnectionOpenOk)
    peer.attach().close()
    peer.done()


def test_a_client_without_a_certificate_logs_in_otherwise(
    tls_port: int, broker_process: SocketSite
) -> None:
    peer = connected(tls_port, None, broker_process)
    assert "EXTERNAL" not in peer.greet().mechanisms
    peer.send(k.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US"))
    peer.expect(k.ConnectionTune)
    peer.done()
