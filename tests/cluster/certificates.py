"""Certificates for brokers of a cluster."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.patience import SECONDS


def make_certificate(path: Path) -> Path:
    """A certificate of the user guest with its key in one file, which brokers can use, too."""
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/O=Test/CN=guest"),
            *("-addext", "basicConstraints=critical,CA:TRUE"),
            *("-keyout", str(path.with_suffix(".key")), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )
    path.write_text(path.read_text() + path.with_suffix(".key").read_text())
    return path
