"""Certificates made with openssl for one run: an authority, a server that it signed, a stranger."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SERVER_NAME = "broker.test"
_DAYS = "2"


def make_certificates(folder: Path, names: str = f"DNS:{SERVER_NAME}") -> Path:
    """Make ca.pem, server.pem, server.key and stranger.pem in a folder.

    Args:
        folder: the folder.
        names: what the server is called, as openssl writes it; for broker.test only by default.

    Raises:
        RuntimeError: openssl is missing or failed.
    """
    if shutil.which("openssl") is None:
        raise RuntimeError(
            "the tests of TLS need openssl: install it with `apt-get install openssl`"
        )
    for name in ("ca", "stranger"):
        _authority(folder, name)
    _openssl(
        folder,
        *["req", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.csr"],
        *("-subj", f"/CN={SERVER_NAME}"),
    )
    extensions = folder / "server.ext"
    extensions.write_text(
        f"subjectAltName={names}\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n"
    )
    _openssl(
        folder,
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
    (folder / "server.key").chmod(0o644)
    return folder


def _authority(folder: Path, name: str) -> None:
    _openssl(
        folder,
        *f"req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.pem".split(),
        *("-days", _DAYS, "-subj", f"/CN=Harebell test {name}"),
        *("-addext", "basicConstraints=critical,CA:TRUE"),
    )


def _openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["openssl", *arguments], cwd=folder, capture_output=True, timeout=60, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.decode(errors='replace')}")
