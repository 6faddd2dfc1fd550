"""The processes of a Spark driver that can be killed, told apart by what they were started for.

    driver (Python) ── JVM ─┬─ Python ...         the queries' sources, in the driver
                            ├─ executor (JVM) ── Python ── Python ...        tasks
                            └─ executor (JVM) ── Python ── Python ...

Executors outlive their driver for a moment, and so do Python processes those who started them.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from tests.spark.families import members

_EXECUTOR = b"CoarseGrainedExecutorBackend"


class Victims:
    """A driver and all that it has started, as they are now.

    Args:
        driver: its own process, which leads a session of the system.
    """

    def __init__(self, driver: int) -> None:
        self.drivers: list[int] = []
        """The driver's Python and its JVM."""
        self.executors: list[int] = []
        """The JVMs of the executors."""
        self.workers: list[int] = []
        """Everything that is Python, but for the driver."""
        for process in sorted(members(driver)):
            words = _command(process)
            if process == driver:
                self.drivers.append(process)
            elif Path(words[0].decode()).name != "java":
                self.workers.append(process)
            elif any(word.endswith(_EXECUTOR) for word in words):
                self.executors.append(process)
            else:
                self.drivers.append(process)


def _command(process: int) -> list[bytes]:
    # It may have ended since.
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    return [b""]


def end(process: int) -> None:
    """kill -9; it may be over already."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
