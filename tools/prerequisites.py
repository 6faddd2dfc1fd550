"""What the machine itself must have before anything can be set up, and which command brings it.

Python packages come from pip and node packages from npm, but compilers, Java and peers come from
the system. The basics are only named, because which Java or compiler to have is the owner's
decision; what only the tests need is installed when that is possible without a password.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from patience import fetch

JAVA_MIN = 17
POSTGRESQL_MIN = 14
POLICY = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True)
class Need:
    """One prerequisite.

    Args:
        name: what it is called.
        why: what it is for.
        package: the Debian package that has it.
        found: whether it is there.
        ours: whether the set-up may install it by itself.
    """

    name: str
    why: str
    package: str
    found: Callable[[], bool]
    ours: bool = False


def _can_make_venv() -> bool:
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


def _has_python_headers() -> bool:
    return (Path(sysconfig.get_path("include")) / "Python.h").exists()


def _program(name: str) -> Callable[[], bool]:
    return lambda: shutil.which(name) is not None


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    if java is None or not os.access(java, os.X_OK):
        return False
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', shown)
    return version is not None and int(version[1]) >= JAVA_MIN


_VENV = Need("Python's venv module", "keeps packages apart", "python3-venv", _can_make_venv)
_COMPILER = Need("a C compiler", "compiles the hot path", "gcc", _program("gcc"))
_LIBC = Need(
    "the C library's headers",
    "compiles the hot path",
    "libc6-dev",
    lambda: Path("/usr/include/stdlib.h").exists(),
)
_HEADERS = Need("Python.h", "compiles the hot path", "python3-dev", _has_python_headers)
_JAVA = Need(f"Java {JAVA_MIN} or newer", "runs Spark", "openjdk-17-jre-headless", _has_java)
_NODE = Need("node", "runs the amqplib client", "nodejs", _program("node"), ours=True)
_NPM = Need("npm", "installs the amqplib client", "npm", _program("npm"), ours=True)
_RABBITMQ = Need(
    "rabbitmq-server",
    "is the peer that behaviour is compared with",
    "rabbitmq-server",
    lambda: (
        shutil.which("rabbitmq-server", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is not None
    ),
    ours=True,
)
_REDIS = Need(
    "redis-server", "is measured beside it", "redis-server", _program("redis-server"), ours=True
)
_NATS = Need(
    "nats-server",
    "is measured beside it",
    "nats-server",
    lambda: Path("/usr/sbin/nats-server").exists(),
    ours=True,
)
_OPENSSL = Need("openssl", "makes certificates", "openssl", _program("openssl"), ours=True)
_OPENSSL_HEADERS = Need(
    "the headers of OpenSSL",
    "compiles Proton, a client, with TLS",
    "libssl-dev",
    lambda: Path("/usr/include/openssl/ssl.h").exists(),
    ours=True,
)
_PKG_CONFIG = Need(
    "pkg-config", "shows Proton where OpenSSL is", "pkg-config", _program("pkg-config"), ours=True
)
_PROMETHEUS = Need(
    "prometheus", "checks and scrapes the metrics", "prometheus", _program("promtool"), ours=True
)
_STRACE = Need("strace", "plants faults at system calls", "strace", _program("strace"), ours=True)
_CHROMIUM = Need(
    "chromium", "shows the web interface to its tests", "chromium", _program("chromium"), ours=True
)
_LINTIAN = Need("lintian", "checks the Debian package", "lintian", _program("lintian"), ours=True)
_FAKEROOT = Need(
    "fakeroot", "installs it without being root", "fakeroot", _program("fakeroot"), ours=True
)
_JAVAC = Need(
    "javac",
    "compiles the catalog that is shipped, to compare",
    "openjdk-17-jdk-headless",
    _program("javac"),
    ours=True,
)
_LOGROTATE = Need(
    "logrotate",
    "rotates a log that is written",
    "logrotate",
    lambda: Path("/usr/sbin/logrotate").exists(),
    ours=True,
)
_SYSTEMD = Need(
    "systemd-analyze", "checks the unit", "systemd", _program("systemd-analyze"), ours=True
)
_POSTGRESQL = Need(
    f"PostgreSQL {POSTGRESQL_MIN} or newer",
    "keeps messages, replicates, and is killed",
    "postgresql",
    lambda: any(
        int(path.parent.parent.name.partition(".")[0]) >= POSTGRESQL_MIN
        for path in Path("/usr/lib/postgresql").glob("[0-9]*/bin/postgres")
    ),
    ours=True,
)
_PATRONI = Need("patroni", "promotes standbys", "patroni", _program("patroni"), ours=True)
_ETCD = Need("etcd", "tells Patroni who leads", "etcd-server", _program("etcd"), ours=True)
_PGBOUNCER = Need(
    "pgbouncer",
    "stands between a broker and PostgreSQL",
    "pgbouncer",
    lambda: Path("/usr/sbin/pgbouncer").exists(),
    ours=True,
)
_FAKETIME = Need(
    "faketime", "lets the clock of a broker jump", "faketime", _program("faketime"), ours=True
)
_DOCUMENTS = Need(
    "amqp-specs",
    "has the XML that the versions' tables are compared with",
    "amqp-specs",
    lambda: Path("/usr/share/amqp/specs/0-10-qpid").exists(),
    ours=True,
)

COMPILING = (_COMPILER, _LIBC, _HEADERS)
"""What only the compiled hot path needs."""
_BUILD = (_VENV, *COMPILING)
NEEDS: dict[str, tuple[Need, ...]] = {
    "run": _BUILD,
    "demo": (*_BUILD, _JAVA),
    "site": _BUILD,
    "test": (
        *(*_BUILD, _JAVA, _NODE, _NPM, _RABBITMQ),
        *(_OPENSSL, _OPENSSL_HEADERS, _PKG_CONFIG, _PROMETHEUS, _STRACE, _CHROMIUM, _DOCUMENTS),
        *(_JAVAC, _LOGROTATE, _SYSTEMD, _LINTIAN, _FAKEROOT, _POSTGRESQL),
        *(_PATRONI, _ETCD, _PGBOUNCER, _FAKETIME, _REDIS, _NATS),
    ),
}


def ensure(purpose: str) -> None:
    """Install what may be installed, and end with the list of what else is missing."""
    wanted = [need for need in NEEDS[purpose] if not (need in COMPILING and _pure())]
    missing = [need for need in wanted if not need.found()]
    ours = [need for need in missing if need.ours]
    if ours and _may_install():
        _install([need.package for need in ours])
        missing = [need for need in missing if not need.found()]
    if missing:
        print(sentence(purpose, missing), file=sys.stderr)
        sys.exit(1)


def sentence(purpose: str, missing: list[Need]) -> str:
    """Which prerequisites are missing, why they are needed, and the command that installs them."""
    sudo = "" if os.geteuid() == 0 else "sudo "
    lines = [f"harebell: `make {purpose}` needs what this machine does not have:"]
    lines += [
        f"  {need.name:<24} {need.why:<44} {sudo}apt-get install {need.package}" for need in missing
    ]
    packages = " ".join(need.package for need in missing)
    lines.append("All of it at once, on Debian:")
    lines.append(f"  {sudo}apt-get update && {sudo}apt-get install -y {packages}")
    return "\n".join(lines)


def _pure() -> bool:
    """Whether nothing is to be compiled."""
    return os.environ.get("HAREBELL_IMPL") == "python"


def _may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install(packages: list[str]) -> None:
    print(f"== Debian packages: {' '.join(packages)}", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _services_stay_stopped():
        for command in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-q", "-y", "--no-install-recommends", *packages],
        ):
            done = fetch(command, env=env)
            if done.returncode != 0:
                print(done.stdout, file=sys.stderr)
                print(f"harebell: `{' '.join(command)}` failed", file=sys.stderr)
                sys.exit(1)


@contextmanager
def _services_stay_stopped() -> Iterator[None]:
    """Keep package scripts from starting services: Debian asks this program first, 101 is no."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
