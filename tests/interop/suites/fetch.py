"""Brings a suite and the client it tests below `build/interop`, from the package registries.

The archive is downloaded by pip or npm, whichever knows the client, and must have the hash that
the catalogue has. Packages go into a directory beside it, so that the versions a suite wants and
the versions that the tests of this project use do not meet.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.interop.qpid import fetch as qpid
from tests.interop.suites.archives import BUILD, CannotFetchError, alone, unpack
from tests.interop.suites.catalogue import Suite

_FETCH_SECONDS = 600.0


def directory(suite: Suite) -> Path:
    """Where a suite lives."""
    return BUILD / f"{suite.registry}-{suite.name}-{suite.version}"


def source(suite: Suite) -> Path:
    """The unpacked archive."""
    return directory(suite) / "source"


def packages(suite: Suite) -> Path:
    """For PyPI: where the client and what it needs are installed."""
    return directory(suite) / "packages"


def fetch(suite: Suite) -> None:
    """Make a suite ready, unless it is."""
    if suite.runner == "qpid":
        qpid.fetched()
        return
    with alone(directory(suite)):
        _make(suite, directory(suite))


def _make(suite: Suite, home: Path) -> None:
    if suite.runner == "go" and shutil.which("go") is None:
        raise CannotFetchError(f"{suite.label} needs go: apt-get install -y golang-go")
    stamp, wanted = home / "ready", json.dumps([suite.sha256, suite.needs, suite.specs])
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    unpack(_download(suite, home), suite.sha256, source(suite))
    _install(suite)
    for path, name in suite.specs.items():
        to = home / path
        to.parent.mkdir(parents=True, exist_ok=True)
        text = (qpid.fetched() / "qpid" / "specs" / name).read_text()
        # Qpid writes some names of domains with blanks, which no other reader takes for the same.
        to.write_text(re.sub(r'="[a-z ]+"', lambda found: found[0].replace(" ", "-"), text))
    stamp.write_text(wanted)


def _download(suite: Suite, home: Path) -> Path:
    before = set(home.iterdir())
    if suite.registry == "pypi":
        flags = [
            "--no-deps",
            "--no-binary",
            ":all:",
            "--disable-pip-version-check",
            "-d",
            str(home),
        ]
        _run(
            [sys.executable, "-m", "pip", "download", *flags, f"{suite.name}=={suite.version}"],
            home,
        )
    elif suite.registry == "debian":
        _run(["apt-get", "download", f"{suite.name}={suite.version}"], home)
    else:
        _run(["npm", "pack", "--silent", f"{suite.name}@{suite.version}"], home)
    (archive,) = set(home.iterdir()) - before
    return archive


def _install(suite: Suite) -> None:
    if suite.registry == "debian":
        for package in suite.needs:
            _run(["apt-get", "download", package], directory(suite))
            (archive,) = directory(suite).glob(f"{package.partition('=')[0]}_*.deb")
            _run(["dpkg-deb", "-x", str(archive), str(source(suite))], directory(suite))
        return
    if suite.old_python:
        # Its tests run on the source itself, which no package index can install any more.
        lib2to3 = [sys.executable, "-W", "ignore", "-m", "lib2to3", "-w", "-n"]
        _run([*lib2to3, *suite.old_python], source(suite))
        return
    if suite.registry == "pypi":
        flags = ["--disable-pip-version-check", "--target", str(packages(suite))]
        client = f"{suite.name}=={suite.version}"
        _run(
            [sys.executable, "-m", "pip", "install", *flags, client, *suite.needs], directory(suite)
        )
        return
    # Of the packages for its authors only those that the tests need.
    _run(["npm", "pkg", "delete", "devDependencies"], source(suite))
    npm = ["npm", "install", "--no-audit", "--no-fund", "--no-save"]
    _run([*npm, *suite.needs], source(suite))


def _run(command: list[str], where: Path) -> None:
    done = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False
    )
    if done.returncode != 0:
        raise CannotFetchError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
