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
_APT = Path("/etc/apt")
_TOOLS = {
    "go": ("go", "golang-go"),
    "java": ("javac", "default-jdk-headless"),
    "phpt": ("php", "php-cli php-amqp"),
}
"""By runner, a tool that it needs, and Debian's packages that have it."""


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
    tool, package = _TOOLS.get(suite.runner, ("", ""))
    if tool and shutil.which(tool) is None:
        raise CannotFetchError(f"{suite.label} needs {tool}: apt-get install -y {package}")
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
    elif suite.registry == "source":
        return _source_of_debian(suite, home)
    else:
        _run(["npm", "pack", "--silent", f"{suite.name}@{suite.version}"], home)
    (archive,) = set(home.iterdir()) - before
    return archive


def _source_of_debian(suite: Suite, home: Path) -> Path:
    """Fetch what Debian has built a package from, also where the machine lists no sources."""
    own = home / "apt"
    for part in ("lists/partial", "sources"):
        (own / part).mkdir(parents=True)
    for path in (_APT / "sources.list", *(_APT / "sources.list.d").glob("*")):
        if path.suffix in (".list", ".sources") and path.exists():
            text = re.sub(r"(?m)^(Types: *)?deb(?=\s)", r"\1deb-src", path.read_text())
            (own / "sources" / path.name).write_text(text)
    apt = ["apt-get", "-o", "APT::Sandbox::User=root", "-o", f"Dir::State::Lists={own}/lists"]
    apt += ["-o", "Dir::Etc::SourceList=/dev/null", "-o", f"Dir::Etc::SourceParts={own}/sources"]
    _run([*apt, "update"], home)
    package = f"{suite.name}={suite.version}"
    # Some sources come in several archives, of which the first has the tests.
    _run([*apt, "source", "--download-only", "--tar-only", package], home, needed=False)
    archives = list(home.glob(f"{suite.name}_*.orig.tar.*"))
    if not archives:
        raise CannotFetchError(f"{suite.label}: apt-get source {package} brings no archive")
    return archives[0]


def _install(suite: Suite) -> None:
    if suite.registry in ("debian", "source"):
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


def _run(command: list[str], where: Path, *, needed: bool = True) -> None:
    done = subprocess.run(
        command, cwd=where, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False
    )
    if needed and done.returncode != 0:
        raise CannotFetchError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
