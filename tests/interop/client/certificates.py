"""Certificates made with openssl for one run: an authority, a server that it signed, a stranger."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SERVER_NAME = "broker.test"
_DAYS = "2"


def make_certificates(directory: Path, names: str = f"DNS:{SERVER_NAME}") -> Path:
    """Make ca.pem, server.pem, server.key and stranger.pem in a directory.

    Args:
        directory: where they go.
        names: what the server is called, as openssl writes it; for broker.test only by default.

    Raises:
        RuntimeError: openssl is missing or failed.
    """
    if shutil.which("openssl") is None:
        raise RuntimeError(
            "the tests of TLS need openssl: install it with `apt-get install openssl`"
        )
    for name in ("ca", "stranger"):
        _authority(directory, name)
    _openssl(
        directory,
        *["req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr"],
        *("-subj", f"/CN={SERVER_NAME}"),
    )
    extensions = directory / "server.ext"
    extensions.write_text(
        f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
    )
    _openssl(
        directory,
        *[
            "x509",
            "-req",
            "-in",
            "server.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
        ],
        *("-days", _DAYS, "-extfile", str(extensions), "-out", "server.pem"),
    )
    (directory / "server.key").chmod(0o644)
    return directory


def _authority(directory: Path, name: str) -> None:
    _openssl(
        directory,
        *f"req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.pem".split(),
        *("-days", _DAYS, "-subj", f"/CN=Harebell test {name}"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
    )


def _openssl(directory: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], cwd=directory, capture_output=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace')}")
