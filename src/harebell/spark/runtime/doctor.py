"""Check what Spark needs on this machine; each finding says how to correct it.

Spark is imported only after it was found, so that this also works on a machine without it.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harebell.base.finding import BAD, GOOD, NOTE, Finding
from harebell.spark.limits import MASTER_ANSWER_SECONDS, SPARK_MEMORY_BYTES
from harebell.spark.runtime.java import SessionError, find_java
from harebell.spark.runtime.masters import Master, master_of
from harebell.spark.runtime.spark_home_cache import cache_directory, find_cache

_OLDEST = {"pyspark": (4, 2), "pyarrow": (18, 0)}
_MEMINFO = Path("/proc/meminfo")


def examine(master: str | None, *, start: bool) -> Iterator[Finding]:
    """Run all checks.

    Args:
        master: where tasks run; None for this machine.
        start: also start a session and import Harebell in an executor.
    """
    looks: list[tuple[str, Callable[[], Finding]]] = [
        ("java", _java),
        ("pyspark", lambda: _package("pyspark")),
        ("pyarrow", lambda: _package("pyarrow")),
        ("archive", _archive),
        ("cache", _cache),
        ("loopback", _loopback),
        ("memory", _memory),
    ]
    if master is not None:
        looks.append(("master", lambda: _master(master_of(master))))
    if start:
        looks.append(("session", lambda: _session(master)))
    for name, look in looks:
        try:
            yield look()
        except (SessionError, OSError) as error:
            yield Finding(name, BAD, str(error))


def _java() -> Finding:
    java = find_java()
    return Finding("java", GOOD, f"{java.program}: {java.version}")


def _package(name: str) -> Finding:
    oldest = ".".join(map(str, _OLDEST[name]))
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Finding(name, BAD, f"{name} is not installed: pip install 'harebell[spark]'")
    numbers = tuple(int(number) for number in re.findall(r"\d+", installed)[:2])
    if numbers < _OLDEST[name]:
        mend = f"pip install '{name}>={oldest}'"
        return Finding(name, BAD, f"{name} {installed} is too old, {oldest} is needed: {mend}")
    return Finding(name, GOOD, installed)


def _archive() -> Finding:
    archive = find_cache(find_java()).archive
    if archive.is_file():
        return Finding("archive", GOOD, str(archive))
    text = "no class-data archive yet: `harebell spark warm` makes sessions start in half the time"
    return Finding("archive", NOTE, text)


def _cache() -> Finding:
    directory = cache_directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        writable = os.access(directory, os.W_OK)
    except OSError as error:
        return Finding("cache", NOTE, f"{directory} cannot be made: {error.strerror}")
    if not writable:
        return Finding("cache", NOTE, f"{directory} cannot be written: Python workers start slower")
    return Finding("cache", GOOD, str(directory))


def _loopback() -> Finding:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, MASTER_ANSWER_SECONDS):
            return Finding("loopback", GOOD, "127.0.0.1 can be listened at and connected to")


def _memory() -> Finding:
    if not _MEMINFO.exists():
        return Finding("memory", NOTE, "not known here")
    match = re.search(r"^MemAvailable:\s+(\d+) kB$", _MEMINFO.read_text(), re.MULTILINE)
    available = 0 if match is None else int(match[1]) * 1024
    text = f"{available / 2**30:.1f} GiB available"
    if available < SPARK_MEMORY_BYTES:
        needed = SPARK_MEMORY_BYTES / 2**30
        return Finding("memory", NOTE, f"{text}: a session takes about {needed:.1f} GiB")
    return Finding("memory", GOOD, text)


def _master(master: Master) -> Finding:
    if master.threads or master.address is None:
        return Finding("master", GOOD, f"{master.url}: nothing to connect to")
    try:
        master.check_answers()
    except SessionError as error:
        return Finding("master", BAD, str(error))
    return Finding("master", GOOD, f"{master.url} answers")


def _session(master: str | None) -> Finding:
    # Imported here: it needs pyspark, which may be missing.
    from harebell.spark.session import build_session

    started = time.monotonic()
    session = build_session("doctor", master=master, short_lived=True, quiet=True)
    ready = time.monotonic() - started
    try:
        rows = session.range(0, 2, 1, 2).mapInArrow(_whereabouts, "found string").collect()
    finally:
        session.stop()
    places = sorted({row["found"] for row in rows})
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = f"ready in {ready:.1f} s; executors have Python {mine} and {', '.join(places)}"
    return Finding("session", GOOD, text)


def _whereabouts(batches: Iterator[object]) -> Iterator[object]:
    """Return the path of the Harebell that an executor imports."""
    import pyarrow as pa

    from harebell import __version__
    from harebell.base import impl

    for _ in batches:
        text = f"harebell {__version__} ({impl.chosen()})"
        yield pa.RecordBatch.from_pydict({"found": [text]})
