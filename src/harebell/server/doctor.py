"""Check what a broker needs on this machine; each finding says how to correct it."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import pwd
import re
import resource
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from harebell.base import impl
from harebell.base.errors import StoreError
from harebell.base.finding import BAD, GOOD, NOTE, Finding
from harebell.config import Config
from harebell.management.control.client import ControlError, ask_overview, socket_path
from harebell.management.http.listening import INSTALL, is_installed
from harebell.server.limits import (
    DOCTOR_CLOCK_SECONDS,
    DOCTOR_FILES_FEW,
    DOCTOR_FILES_MIN,
    DOCTOR_FREE_BYTES,
    DOCTOR_MEMORY_BYTES,
    DOCTOR_SLOW_SYNC_MS,
    DOCTOR_SYNCS,
    MANAGEMENT_PORT,
    METRICS_PORT,
)

_OLDEST, _NEWEST = (3, 11), (3, 14)
_MEMINFO = Path("/proc/meminfo")
_MOUNTS = Path("/proc/mounts")
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_OCTAL = re.compile(rb"\\([0-7]{3})")
"""A blank or a backslash in the name of a mounted directory."""
_IN_MEMORY = ("tmpfs", "ramfs")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p")
_BLOCK = 4096
_MIB, _GIB = 2**20, 2**30
_TIMEX_BYTES, _TIMEX_STATUS = 208, 40
_UNSYNCHRONISED = 0x40
_ANSWER_SECONDS = 2.0
_Result = tuple[str, str]
"""The state and the text of a `Finding`."""


def examine(config: Config) -> Iterator[Finding]:
    """Run all checks of a broker with this configuration."""
    listening = _listening(config)
    running = listening is not None
    looks: tuple[tuple[str, Callable[[], _Result]], ...] = (
        ("python", _python),
        ("compiled", _compiled),
        ("loop", _loop),
        ("management", _management),
        ("files", _files),
        ("memory", _memory),
        ("clock", lambda: _clock(config.data_dir)),
        ("data", lambda: _data(config, running=running)),
        ("space", lambda: _space(config.data_dir)),
        ("sync", lambda: _sync(config.data_dir)),
        *((("storage", lambda: _storage(config)),) if config.storage else ()),
    )
    for name, look in looks:
        try:
            yield Finding(name, *look())
        except OSError as error:
            yield Finding(name, BAD, f"cannot be looked at: {error}")
    yield from _ports(config, listening)


def _listening(config: Config) -> set[int] | None:
    """Return the ports of the broker that answers on the data directory; None for none."""
    try:
        listeners = ask_overview(config.data_dir, _ANSWER_SECONDS).get("listeners", [])
    except (ControlError, OSError):
        return None
    return {port for each in listeners if (port := urlsplit(each).port) is not None}


# --- the installation -----------------------------------------------------------------------------


def _python() -> _Result:
    text = f"{platform.python_implementation()} {platform.python_version()} at {sys.executable}"
    oldest, newest = (".".join(map(str, each)) for each in (_OLDEST, _NEWEST))
    if not _OLDEST <= sys.version_info[:2] <= _NEWEST:
        return BAD, f"{text}: install Python {oldest} to {newest}"
    return GOOD, text


def _compiled() -> _Result:
    if impl.chosen() == impl.NATIVE:
        return GOOD, "the compiled modules are in use"
    if os.environ.get("HAREBELL_IMPL") == impl.PYTHON:
        text = "HAREBELL_IMPL=python: the broker is many times slower; unset it"
        return NOTE, text
    compiler = next((each for each in ("cc", "gcc", "clang") if shutil.which(each)), None)
    first = "" if compiler else "install a C compiler (apt-get install gcc python3-dev), then "
    return (
        NOTE,
        "the broker runs uncompiled and is many times slower: "
        f"{first}pip install --force-reinstall --no-binary harebell harebell",
    )


def _loop() -> _Result:
    if find_spec("uvloop") is None:
        return NOTE, "asyncio; uvloop is faster: pip install uvloop"
    return GOOD, "uvloop"


def _management() -> _Result:
    if is_installed():
        return GOOD, "the packages for the HTTP API and the web page"
    return NOTE, f"no HTTP API and no web page: {INSTALL}"


# --- the machine ----------------------------------------------------------------------------------


def _files() -> _Result:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return GOOD, "no limit of open files"
    text = f"at most {hard} open files, each connection and segment takes one"
    mend = "raise it with `ulimit -Hn 65536`, or LimitNOFILE=65536 in the unit of systemd"
    if hard < DOCTOR_FILES_MIN:
        return BAD, f"{text}: {mend}"
    if hard < DOCTOR_FILES_FEW:
        return NOTE, f"{text}: for many connections {mend}"
    return GOOD, text


def _memory() -> _Result:
    if not _MEMINFO.exists():
        return NOTE, "not known here"
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    available = 0 if match is None else int(match[1]) * 1024
    text = f"{available / _MIB:.0f} MiB available"
    with suppress(OSError, ValueError):
        limit = int(_CGROUP.read_text())
        available = min(available, limit)
        text += f", {limit / _MIB:.0f} MiB for this container"
    if available < DOCTOR_MEMORY_BYTES:
        wanted = DOCTOR_MEMORY_BYTES // _MIB
        return NOTE, f"{text}: free {wanted} MiB, or publishers are blocked early"
    return GOOD, text


def _clock(data_dir: Path) -> _Result:
    newest = max((each.stat().st_mtime for each in _files_of(data_dir)), default=0.0)
    ahead = newest - time.time()
    if ahead > DOCTOR_CLOCK_SECONDS:
        return (
            BAD,
            f"it is {ahead:.0f} s behind the newest file of {data_dir}, so that TTLs and delays "
            "last longer: set the time (timedatectl set-ntp true)",
        )
    synchronised = _synchronised()
    if synchronised is False:
        return NOTE, "no time server corrects it: install chrony, or timedatectl set-ntp true"
    return GOOD, "a time server corrects it" if synchronised else "not behind"


def _files_of(data_dir: Path) -> list[Path]:
    try:
        return [each for each in data_dir.iterdir() if each.is_file()]
    except OSError:
        return []


def _synchronised() -> bool | None:
    """Return whether the kernel's clock is corrected; None where it does not say (adjtimex)."""
    adjtimex = getattr(ctypes.CDLL(None, use_errno=True), "adjtimex", None)
    if adjtimex is None or ctypes.sizeof(ctypes.c_long) * 8 != 64:
        return None
    timex = ctypes.create_string_buffer(_TIMEX_BYTES)
    if adjtimex(timex) < 0:
        return None
    status = int.from_bytes(timex.raw[_TIMEX_STATUS : _TIMEX_STATUS + 4], sys.byteorder)
    return not status & _UNSYNCHRONISED


# --- the data directory ---------------------------------------------------------------------------


def _existing(path: Path) -> Path:
    """Return the directory, or the nearest one above that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _data(config: Config, *, running: bool) -> _Result:
    data_dir = config.data_dir
    try:
        socket_path(data_dir)
    except ControlError as error:
        return BAD, str(error)
    place = _existing(data_dir)
    if not place.is_dir():
        text = f"{place} is no directory: move it away, or choose another with --data-dir"
        return BAD, text
    if place == data_dir and data_dir.stat().st_uid != os.geteuid():
        owner = _user(data_dir.stat().st_uid)
        return (
            BAD,
            f"{data_dir} belongs to {owner}: run the broker as {owner}, choose another directory "
            f"with --data-dir, or `chown -R {_me()} {data_dir}`",
        )
    if not os.access(place, os.W_OK | os.X_OK):
        text = f"{place} cannot be written by {_me()}: choose another with --data-dir"
        return BAD, text
    if not config.storage:
        # Imported here, as it is above the rest of the server.
        from harebell.cluster.workers.layout import check

        try:
            check(data_dir, max(config.workers, config.storage_stores))
        except StoreError as error:
            return BAD, str(error)
    kind = _file_system(place)
    if kind in _IN_MEMORY:
        text = f"{data_dir} is in memory ({kind}): its messages are gone after a restart"
        return NOTE, f"{text}; choose a directory on a disk with --data-dir"
    if kind in _NETWORK:
        text = f"{data_dir} is on a network ({kind}), whose locks and syncs may not hold"
        return NOTE, f"{text}: choose a local disk with --data-dir"
    state = "a broker runs on it" if running else "it is free"
    there = state if place == data_dir else "it will be made"
    return GOOD, f"{data_dir} ({kind or 'unknown file system'}): {there}"


def _me() -> str:
    return _user(os.geteuid())


def _file_system(path: Path) -> str:
    """Return the type of the file system of a directory; "" where it is not known."""
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return ""
    resolved, best, kind = path.resolve(), -1, ""
    for line in lines:
        _, mounted, found, *_ = line.split(b" ")
        at = Path(os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match[1], 8)]), mounted)))
        if resolved.is_relative_to(at) and len(at.parts) >= best:
            best, kind = len(at.parts), found.decode()
    return kind


def _space(data_dir: Path) -> _Result:
    free = shutil.disk_usage(_existing(data_dir)).free
    text = f"{free / _GIB:.1f} GiB free"
    if free < DOCTOR_FREE_BYTES:
        return (
            BAD,
            f"{text} where {data_dir} is: publishers are blocked; make room, or choose another "
            "disk with --data-dir",
        )
    return GOOD, text


def _sync(data_dir: Path) -> _Result:
    """Measure how long a sync takes, which every confirm of a stored message waits for."""
    place = _existing(data_dir)
    times = []
    with tempfile.TemporaryFile(dir=place, prefix="harebell-doctor-") as file:
        block = bytes(_BLOCK)
        for _ in range(DOCTOR_SYNCS):
            os.pwrite(file.fileno(), block, 0)
            begun = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begun) * 1000)
    middle = statistics.median(times)
    text = f"{middle:.2f} ms for a sync (fdatasync), {max(times):.2f} ms at most"
    if middle > DOCTOR_SLOW_SYNC_MS:
        return NOTE, f"{text}: each confirm takes at least as long; use a faster disk"
    return GOOD, text


def _storage(config: Config) -> _Result:
    # A broker without PostgreSQL need not have its driver.
    from harebell.cluster.postgresql.doctor_check import examine_storage

    return examine_storage(config)


# --- ports ----------------------------------------------------------------------------------------


def _ports(config: Config, listening: set[int] | None) -> Iterator[Finding]:
    own_http = MANAGEMENT_PORT if config.management_port is None else config.management_port
    own_metrics = METRICS_PORT if config.metrics_port is None else config.metrics_port
    wanted = (
        ("port", config.host, config.port or 0),
        ("tls_port", config.tls_host or config.host, config.tls_port or 0),
        ("management_port", config.management_host, own_http),
        ("metrics_port", config.metrics_host, own_metrics),
    )
    for key, host, port in wanted:
        if port:
            yield Finding(f"port {port}", *_port(key, host, port, listening))


def _port(key: str, host: str, port: int, listening: set[int] | None) -> _Result:
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port in (listening or ()):
            return GOOD, f"{key}: the broker that runs has it"
        if error.errno == errno.EADDRINUSE:
            mend = f"stop the program that has it, or choose another with --{key.replace('_', '-')}"
            who = "" if listening is None else ", not by the broker that runs"
            return BAD, f"{key}: in use at {host}{who}: {mend}"
        if error.errno == errno.EACCES:
            text = f"{key}: not allowed at {host}: choose one above 1023, or setcap for Python"
            return BAD, text
        text = error.strerror or str(error)
        return BAD, f"{key}: cannot listen at {host}: {text}: change the host"
    return GOOD, f"{key}: free at {host}"
