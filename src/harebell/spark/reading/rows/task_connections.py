"""The connections of tasks that read: at most one per task, and of an executor as many as allowed.

A task keeps its connection for the next one, because Spark reuses Python workers. One that no task
has used for a while is closed: a worker that has nothing to do holds none that the broker counts.

With the option `maxConnections` a task first locks one of as many files in the directory of its
executor. The others wait. The system unlocks the file of a task that is killed. Connections are
not kept then, because one that is idle would hold up those that wait.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pyspark import SparkFiles

from harebell.client.url import URL
from harebell.spark.connection_limits import NoConnectionFree
from harebell.spark.limits import SPARK_IDLE_CONNECTION_SECONDS, SPARK_SLOT_LOOK_SECONDS
from harebell.spark.reading.broker_connection import BrokerConnection


@dataclass(frozen=True)
class ConnectionSettings:
    """How tasks connect.

    Args:
        timeout: seconds in which the broker must answer.
        name: name of the connection in management.
        maximum: most connections of an executor's tasks at a time; None for no limit.
        wait: seconds to wait for one of them, and for one that the broker allows.
    """

    timeout: float
    name: str
    maximum: int | None
    wait: float


_Key = tuple[URL, ConnectionSettings]


class _Kept:
    """The connections of this process that no task uses, each with a timer that closes it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._idle: dict[_Key, tuple[BrokerConnection, threading.Timer]] = {}

    def take(self, url: URL, settings: ConnectionSettings) -> BrokerConnection:
        with self._guard:
            idle = self._idle.pop((url, settings), None)
        if idle is None:
            return BrokerConnection(url, settings.timeout, settings.name, settings.wait)
        idle[1].cancel()
        return idle[0]

    def put(self, url: URL, settings: ConnectionSettings, connection: BrokerConnection) -> None:
        key = url, settings
        timer = threading.Timer(SPARK_IDLE_CONNECTION_SECONDS, self._close, (key, connection))
        timer.daemon = True
        with self._guard:
            before = self._idle.pop(key, None)
            self._idle[key] = connection, timer
        timer.start()
        # Two tasks of this process ran at a time: one connection is enough for the next ones.
        if before is not None:
            before[1].cancel()
            before[0].abandon()

    def _close(self, key: _Key, connection: BrokerConnection) -> None:
        """Close a connection, unless a task has taken it."""
        with self._guard:
            idle = self._idle.get(key)
            # `cancel` is too late for a timer that has fired: a task may have taken the connection,
            # or put it back with another timer.
            if idle is None or idle[1] is not threading.current_thread():
                return
            del self._idle[key]
        connection.abandon()


_KEPT = _Kept()


@contextmanager
def task_connection(url: URL, settings: ConnectionSettings) -> Iterator[BrokerConnection]:
    """Give a task its connection, as soon as it may have one.

    Raises:
        NoConnectionFree: `maxConnections` allows none in time.
    """
    if settings.maximum is None:
        connection = _KEPT.take(url, settings)
        try:
            yield connection
        finally:
            _KEPT.put(url, settings, connection)
        return
    with _slot(url, settings.maximum, settings.wait):
        connection = BrokerConnection(url, settings.timeout, settings.name, settings.wait)
        try:
            yield connection
        finally:
            connection.abandon()


@contextmanager
def _slot(url: URL, maximum: int, wait: float) -> Iterator[None]:
    """Hold one of the slots of an executor for connections to a broker."""
    broker = sha256(f"{url.address} {url.vhost} {url.username}".encode()).hexdigest()[:16]
    directory = Path(SparkFiles.getRootDirectory()) / f"harebell-connections-{broker}"
    directory.mkdir(exist_ok=True)
    give_up = time.monotonic() + wait
    while True:
        for number in range(maximum):
            file = os.open(directory / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                continue
            try:
                yield
            finally:
                os.close(file)
            return
        if time.monotonic() >= give_up:
            raise NoConnectionFree(
                f"a task waited {wait:g} s (connectionWait) for one of the {maximum} connections "
                f"to {url.address} that the tasks of an executor may have at once "
                "(maxConnections): allow more of them, or a longer wait"
            )
        time.sleep(SPARK_SLOT_LOOK_SECONDS)
