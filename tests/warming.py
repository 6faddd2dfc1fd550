"""The class-data archive of Spark, made before any test starts a JVM here.

It takes a minute once on a machine, and saves seconds of every session after that. A JVM that is
there before the archive never uses it, so what starts one asks for the archive first.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from harebell.spark.runtime.warming import warm

_LOCK = Path(tempfile.gettempdir()) / f"harebell-test-warm-{os.getuid()}"


def warm_once() -> None:
    """Make it if it is missing; another worker of the tests waits until it is there."""
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        warm()
