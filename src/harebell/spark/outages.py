"""Say once that a broker is away, and once that it is back, for all processes of a driver.

A query has several processes that ask a broker: one of the source, one per task. Each tries again
a few times per second, and each would say so. The first of them that notices an outage makes a
file, and the first that is connected again removes it; only these two write a line.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from harebell.client.url import URL
from harebell.spark.limits import SPARK_OUTAGE_SECONDS

_LOG = logging.getLogger("harebell.spark")
_DRIVER = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""A variable of PySpark that all processes of a driver inherit, and no others."""
_noticed: set[str] = set()
"""The addresses of brokers that are away, as this process knows."""
_watched: set[str] = set()
"""Connections of queries, as the client names them in its lines."""


def watch(url: URL) -> None:
    """Let the lines of this module stand for those of the client about such a connection."""
    _watched.add(f"{url.address} ({url.name})")


def _is_of_others(record: logging.LogRecord) -> bool:
    """Keep the client's own lines about connections that are not those of a query."""
    return not (isinstance(record.args, tuple) and record.args and record.args[0] in _watched)


logging.getLogger("harebell.client.blocking").addFilter(_is_of_others)


class Retries:
    """The attempts of one piece of work to reach a broker.

    Args:
        address: of the broker.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """Count an attempt that has failed; the second in a row is an outage."""
        self._failures += 1
        if self._failures > 1:
            began(self._address, error)
        else:
            _LOG.info("lost the connection to %s: %s", self._address, error)

    def progressed(self) -> None:
        """Count no failures from before."""
        self._failures = 0


def began(address: str, error: Exception) -> None:
    """Note that a broker is away; say it if no process has."""
    if address in _noticed:
        return
    _noticed.add(address)
    if _is_first(_file(address)):
        _LOG.warning("the broker at %s is away, and is tried until it is back: %s", address, error)


def ended(address: str) -> None:
    """Note that a broker could be reached; say it if it was away, and no process has."""
    if address not in _noticed:
        return
    _noticed.discard(address)
    file = _file(address)
    with suppress(FileNotFoundError):
        began_at = file.stat().st_mtime
        file.unlink()
        seconds = max(time.time() - began_at, 0.0)
        _LOG.warning("the broker at %s is back after %.0f s", address, seconds)


def _file(address: str) -> Path:
    driver = os.environ.get(_DRIVER) or f"session {os.getsid(0)}"
    name = hashlib.sha256(f"{driver} {address}".encode()).hexdigest()[:20]
    return Path(tempfile.gettempdir()) / f"harebell-outage-{os.getuid()}-{name}"


def _is_first(file: Path) -> bool:
    with suppress(OSError):
        if time.time() - file.stat().st_mtime > SPARK_OUTAGE_SECONDS:
            # It was not removed: the processes that had noticed the outage have died.
            file.unlink()
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        return False
    except OSError:
        # Without such files each process warns by itself.
        return True
    return True
