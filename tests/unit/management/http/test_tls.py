"""TLS of the ports for the HTTP API and for metrics, configured as for RabbitMQ."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from harebell.config import Config
from harebell.management.http import serving
from harebell.management.metrics import serving as metrics
from tests.interop.client.certificates import make_certificates
from tests.patience import SECONDS, eventually
from tests.ports import free_port
from tests.running import DidNotStart, RunningBroker, running_broker

PATHS = ("/api/version", "/health/live")


class Served(NamedTuple):
    """A broker whose HTTP ports are for TLS only.

    Args:
        broker: the broker.
        ports: of the HTTP API, and of the metrics.
        files: has ca.pem, stranger.pem, server.pem and server.key.
        spare: has another certificate for the same address, and its authority.
    """

    broker: RunningBroker
    ports: tuple[int, int]
    files: Path
    spare: Path

    def url(self, which: int, scheme: str = "https") -> str:
        """The URL of a path that needs no login."""
        return f"{scheme}://127.0.0.1:{self.ports[which]}{PATHS[which]}"

    def install(self, source: Path) -> None:
        """Replace the key and the certificate of the broker."""
        for name in ("server.key", "server.pem"):
            shutil.copy(source / name, self.files / f"{name}.new")
            os.replace(self.files / f"{name}.new", self.files / name)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    files = make_certificates(tmp_path_factory.mktemp("first"), "IP:127.0.0.1")
    spare = make_certificates(tmp_path_factory.mktemp("second"), "IP:127.0.0.1")
    ports = free_port(), free_port()
    lines = [f"management.ssl.port = {ports[0]}", f"prometheus.ssl.port = {ports[1]}"]
    for section in ("management", "prometheus"):
        lines += [
            f"{section}.ssl.certfile = {files / 'server.pem'}",
            f"{section}.ssl.keyfile = {files / 'server.key'}",
        ]
    conf = tmp_path_factory.mktemp("conf") / "rabbitmq.conf"
    conf.write_text("\n".join(lines) + "\n")
    with running_broker("--config", str(conf)) as broker:
        yield Served(broker, ports, files, spare)


def status(url: str, authority: Path) -> int:
    """The status of an answer to a client that trusts one authority."""
    context = ssl.create_default_context(cafile=authority)
    with urlopen(url, timeout=SECONDS, context=context) as answer:
        found: int = answer.status
        return found


def trusts(url: str, authority: Path) -> bool:
    """Whether a client that trusts one authority gets an answer."""
    try:
        return status(url, authority) == 200
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            return False
        raise


@pytest.mark.parametrize("which", [0, 1])
def test_a_client_with_the_authority_is_answered_and_another_one_refuses(
    served: Served, which: int
) -> None:
    assert status(served.url(which), served.files / "ca.pem") == 200
    with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
        status(served.url(which), served.files / "stranger.pem")


@pytest.mark.parametrize("which", [0, 1])
def test_plain_http_gets_no_answer_on_a_port_for_tls(served: Served, which: int) -> None:
    with pytest.raises((OSError, http.client.HTTPException)):
        urlopen(served.url(which, "http"), timeout=SECONDS)
    assert status(served.url(which), served.files / "ca.pem") == 200


def test_a_port_for_tls_alone_is_the_only_one(served: Served) -> None:
    for scheme, port in zip(("management", "metrics"), served.ports, strict=True):
        assert f"listening on https://127.0.0.1:{port}" in served.broker.log, scheme
    assert "http://" not in served.broker.log
    only = Config(management_tls_port=1, metrics_tls_port=1)
    assert (serving.port_of(only), metrics.port_of(only)) == (0, 0)


def test_a_hangup_signal_changes_the_certificate_of_new_connections(served: Served) -> None:
    open_ones = []
    for which in (0, 1):
        context = ssl.create_default_context(cafile=served.files / "ca.pem")
        link = http.client.HTTPSConnection(
            "127.0.0.1", served.ports[which], timeout=SECONDS, context=context
        )
        link.request("GET", PATHS[which])
        assert link.getresponse().read()
        open_ones.append(link)
    served.install(served.spare)
    served.broker.process.send_signal(signal.SIGHUP)
    for which, link in enumerate(open_ones):
        assert eventually(lambda w=which: trusts(served.url(w), served.spare / "ca.pem"))
        assert not trusts(served.url(which), served.files / "ca.pem")
        link.request("GET", PATHS[which])
        assert link.getresponse().status == 200, "an open connection keeps its certificate"
        link.close()


def test_a_bad_certificate_keeps_the_one_before(served: Served) -> None:
    before = (served.files / "server.pem").read_bytes()
    (served.files / "server.pem").write_text("no certificate")
    served.broker.process.send_signal(signal.SIGHUP)
    assert eventually(lambda: "cannot use the TLS files" in served.broker.log)
    authority = next(
        each / "ca.pem"
        for each in (served.spare, served.files)
        if trusts(served.url(0), each / "ca.pem")
    )
    assert trusts(served.url(1), authority)
    (served.files / "server.pem").write_bytes(before)


@pytest.mark.parametrize("key", ["management_tls_port", "metrics_tls_port"])
def test_a_busy_port_and_a_missing_certificate_are_named_by_their_key(
    served: Served, key: str
) -> None:
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        flag, port = f"--{key.replace('_', '-')}", str(busy.getsockname()[1])
        with pytest.raises(DidNotStart, match=f"{key} is set but tls_cert is not"):
            RunningBroker(flag, port)
        files = ("--tls-cert", "server.pem", "--tls-key", "server.key")
        paths = [str(served.spare / each) if "." in each else each for each in files]
        with pytest.raises(DidNotStart, match=f"{key}: 127.0.0.1:{port} is in use"):
            RunningBroker(flag, port, *paths)
