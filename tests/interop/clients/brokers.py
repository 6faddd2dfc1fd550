"""Brokers that a test sets up for itself: at a known port, with TLS, or with little memory."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.running import RunningBroker, running_broker

_OUR_FAULT = re.compile(r"internal error|INTERNAL_ERROR|Traceback|\[CRITICAL\]")


def faults_in(log: str) -> list[str]:
    """The lines of a broker's log that tell of the broker's own mistakes."""
    return [line for line in log.splitlines() if _OUR_FAULT.search(line)]


@contextmanager
def own_broker(*flags: str, env: Mapping[str, str] | None = None) -> Iterator[RunningBroker]:
    """A broker for a block, whose log tells of no mistake of its own at the end."""
    with running_broker(*flags, env=env) as started:
        yield started
        assert faults_in(started.log) == []


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """A self-signed certificate for localhost and 127.0.0.1, and its key."""
    if shutil.which("openssl") is None:
        raise RuntimeError("the TLS tests need openssl: apt-get install -y openssl")
    certificate, key = directory / "server.pem", directory / "server.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return certificate, key


@contextmanager
def tls_broker(directory: Path) -> Iterator[tuple[RunningBroker, Path, int]]:
    """A broker that also speaks TLS: itself, the authority to trust, and its TLS port."""
    certificate, key = make_certificate(directory)
    flags = ("--tls-port", "0", "--tls-cert", str(certificate), "--tls-key", str(key))
    with own_broker(*flags) as started:
        yield started, certificate, int(started.address("amqps").rpartition(":")[2])
