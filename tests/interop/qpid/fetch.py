"""Brings `qpid-python` below `build/interop` and rewrites it for Python 3.

pip downloads the archive. It wants to know first what the archive says of itself, and asks a
set-up that is Python 2; so it is given one that reads the file PKG-INFO instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.interop.qpid.port import port
from tests.interop.suites.archives import BUILD, CannotFetchError, alone, unpack

NAME, VERSION = "qpid-python", "1.36.0.post1"
SHA256 = "1a341981723a7980163e6d33530f29133433742f6f9b5b12b46d5d239548afee"
PORTED = ("qpid", "qpid_tests", "mllib")
_SECONDS = 600.0
_EDITION = "9"
"""Changes when the port does."""

_BACKEND = """
import pathlib

class Backend:
    def get_requires_for_build_wheel(self, settings=None):
        return []

    def prepare_metadata_for_build_wheel(self, directory, settings=None):
        found = pathlib.Path(directory) / "qpid_python-1.36.0.post1.dist-info"
        found.mkdir()
        (found / "METADATA").write_text(pathlib.Path("PKG-INFO").read_text())
        return found.name

__legacy__ = Backend()
"""


def fetched() -> Path:
    """The directory that `import qpid` finds the client in; made when it is not there."""
    home = BUILD / f"pypi-{NAME}-{VERSION}"
    stamp, wanted = home / "ready", f"{SHA256} {_EDITION}"
    source = home / "source"
    with alone(home):
        if not stamp.exists() or stamp.read_text() != wanted:
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            unpack(_download(home), SHA256, source)
            _run([sys.executable, "-W", "ignore", "-m", "lib2to3", "-w", "-n", *PORTED], source, {})
            port(source)
            stamp.write_text(wanted)
    return source


def _download(home: Path) -> Path:
    stub = home / "stub" / "setuptools"
    stub.mkdir(parents=True)
    (stub / "__init__.py").write_text("")
    (stub / "build_meta.py").write_text(_BACKEND)
    to = home / "archive"
    flags = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", str(to)]
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", *flags]
    _run([*pip, f"{NAME}=={VERSION}"], home, {"PYTHONPATH": str(stub.parent)})
    (archive,) = to.iterdir()
    return archive


def _run(command: list[str], where: Path, more: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        cwd=where,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise CannotFetchError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
