"""The process of the resident Spark session, which `session_server` starts with `python -m`.

It starts a session with Spark Connect's plugin on a free port of 127.0.0.1, writes its record
(`session_server`), and ends on SIGTERM, when no client has run a statement for a while, when its
record is gone, or with its JVM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from harebell.spark.limits import SPARK_SERVER_LOOK_SECONDS
from harebell.spark.runtime.java import SessionError
from harebell.spark.runtime.session_server import (
    TOKEN_VARIABLE,
    ServerEntry,
    SessionServer,
    versions,
)

_SETTINGS = {
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
}


def main(arguments: list[str]) -> None:
    """Serve sessions until told to stop, or idle for the seconds of the first argument."""
    idle_seconds = float(arguments[0])
    master = arguments[1] if len(arguments) > 1 else None
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    # Before Spark starts, which takes seconds: one of several servers goes on.
    entry = ServerEntry(stopping)
    token = os.environ[TOKEN_VARIABLE]
    from harebell.spark.session import build_session

    try:
        spark = build_session("harebell spark", master=master, settings=_SETTINGS, quiet=True)
    except SessionError as error:
        # The last line of the log is what `harebell spark start` says.
        raise SystemExit(str(error)) from None
    # PySpark has no public way to the JVM.
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    jvm = _watch(gateway, stopping)
    # PySpark replaces the handler of SIGINT.
    signal.signal(signal.SIGINT, lambda *_: stopping.set())
    service = _service(gateway)
    port, begun = int(service.localPort()), time.time()
    place = spark.sparkContext.master or ""
    entry.publish(SessionServer(os.getpid(), port, token, begun, idle_seconds, place, versions()))
    _wait_until_unused(service, idle_seconds, entry, stopping)
    # First: a client that finds no record starts another server instead of losing its session.
    entry.withdraw()
    if jvm.poll() is not None:
        raise SystemExit(f"the JVM of this server has ended with code {jvm.returncode}")
    spark.stop()


def _watch(gateway: Any, stopping: threading.Event) -> subprocess.Popen[bytes]:
    """Stop when the JVM ends, for lack of memory for example; return its process."""
    jvm: subprocess.Popen[bytes] = gateway.proc

    def wait() -> None:
        jvm.wait()
        stopping.set()

    threading.Thread(target=wait, name="jvm", daemon=True).start()
    return jvm


def _wait_until_unused(
    service: Any, idle_seconds: float, entry: ServerEntry, stopping: threading.Event
) -> None:
    """Wait until told to stop, until it is unused for the seconds, or cannot be found."""
    used, last = time.monotonic(), _last_statement(service)
    while not stopping.wait(min(SPARK_SERVER_LOOK_SECONDS, idle_seconds)):
        last_statement = _last_statement(service)
        # None: a statement runs, so the server is used.
        if last_statement is None or last_statement != last:
            used, last = time.monotonic(), last_statement
        elif time.monotonic() - used > idle_seconds or not entry.there:
            return


def _service(gateway: Any) -> Any:
    """Return the plugin's server, an object of Scala."""
    package = gateway.jvm.org.apache.spark.sql.connect.service
    return getattr(getattr(package, "SparkConnectService$"), "MODULE$")


def _last_statement(service: Any) -> int | None:
    """Return when the last statement ended, by a clock of Spark; None while one is running.

    The unit depends on the version of Spark, so that only a change means something.
    """
    active = service.executionManager().listActiveExecutions()
    return int(active.left().get()) if active.isLeft() else None


if __name__ == "__main__":
    main(sys.argv[1:])
