"""A resident Spark session of this user on this machine: found, reused, started and stopped.

A JVM takes seconds to start. The server keeps one, and serves sessions of Spark Connect on
127.0.0.1 to programs that know its token:

    <runtime>/spark.json   process, port, token and versions; readable by its user only
    <runtime>/spark.lock   held by the server while it lives: process ids are reused, locks are not
    <runtime>/spark.log    what the server and its JVM print

The record is there while the server serves. A lock without a record is that of a server that
starts or ends: another one waits until it sees which.

The runtime directory is `$XDG_RUNTIME_DIR/harebell`, or else `harebell-UID` in the directory for
temporary files. It belongs to the user, and no other user may read it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import harebell
from harebell.spark.limits import (
    MASTER_ANSWER_SECONDS,
    SPARK_SERVER_START_SECONDS,
    SPARK_SERVER_STOP_SECONDS,
)
from harebell.spark.runtime.connect_session import NEEDED, require
from harebell.spark.runtime.java import SessionError, find_java
from harebell.spark.runtime.masters import master_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # noqa: S105 - a name
_RECORD, _LOCK, _LOG = "spark.json", "spark.lock", "spark.log"
_HOST = "127.0.0.1"
_POLL_SECONDS = 0.1
_TAKEN = 3
"""Exit code of a server that found another one, or that was told to stop before it had the lock."""


def versions() -> dict[str, str]:
    """Return the versions that client and server must share."""
    return {
        "harebell": harebell.__version__,
        "pyspark": version("pyspark"),
        "python": platform.python_version(),
        "prefix": sys.prefix,
    }


@dataclass(frozen=True)
class SessionServer:
    """A running server.

    Args:
        pid: its process.
        port: on 127.0.0.1.
        token: which clients have to send.
        started: seconds since 1970.
        idle_seconds: without a statement for so long it ends.
        master: where its tasks run.
        versions: those of the server.
    """

    pid: int
    port: int
    token: str = field(repr=False)
    started: float = 0.0
    idle_seconds: float = 0.0
    master: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address for `SparkSession.builder.remote`; gRPC sends tokens to `localhost` only."""
        return f"sc://localhost:{self.port}"

    @property
    def differences(self) -> str:
        """How its versions differ from those of this program; "" if they do not."""
        here = versions()
        return ", ".join(
            f"{name} {self.versions.get(name, 'unknown')} there and {here[name]} here"
            for name in here
            if self.versions.get(name) != here[name]
        )

    def connect(self) -> SparkSession:
        """Return a session of this server.

        Raises:
            SessionError: the packages of Spark Connect are not installed, or it does not answer.
        """
        require(NEEDED)
        self.check_answers()
        os.environ[TOKEN_VARIABLE] = self.token
        with warnings.catch_warnings():
            # pandas 3 is not used here, and PySpark warns about it at every start.
            warnings.simplefilter("ignore", FutureWarning)
            from pyspark.sql import SparkSession

            from harebell.spark.runtime.server_retries import RepeatWhileServed

            session = SparkSession.builder.remote(self.url).create()
        session.client.set_retry_policies([RepeatWhileServed(self._check_lives)])
        return session

    def check_answers(self) -> None:
        """Check that it can be connected to.

        Raises:
            SessionError: it cannot. Spark itself would try for more than ten minutes.
        """
        try:
            self._reach()
        except OSError as error:
            raise SessionError(
                f"the Spark server (process {self.pid}) does not answer at {_HOST}:{self.port}: "
                f"{error.strerror or error}; run `harebell spark stop`, and start it again"
            ) from None

    def _check_lives(self) -> None:
        try:
            self._reach()
        except OSError:
            raise SessionError(
                f"the Spark server (process {self.pid}) has ended; run the statement again"
            ) from None

    def _reach(self) -> None:
        socket.create_connection((_HOST, self.port), MASTER_ANSWER_SECONDS).close()


def runtime_directory(environment: Mapping[str, str] | None = None) -> Path:
    """Return the runtime directory; make it if it is missing.

    Raises:
        SessionError: it belongs to somebody else, or others may read it.
    """
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_RUNTIME_DIR", "")
    if base and Path(base).is_dir():
        directory = Path(base) / "harebell"
    else:
        directory = Path(tempfile.gettempdir()) / f"harebell-{os.getuid()}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
    except OSError as error:
        raise SessionError(
            f"the runtime directory {directory} cannot be used: {error.strerror}; "
            "set XDG_RUNTIME_DIR"
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise SessionError(
            f"the runtime directory {directory} must be a directory of this user that no other "
            f"user may read: remove it, or run chmod 700 {directory}"
        )
    return directory


def find_server() -> SessionServer | None:
    """Return the running server of this user; None if there is none.

    Raises:
        SessionError: the runtime directory is not safe.
    """
    directory = runtime_directory()
    if not _locked(directory):
        return None
    try:
        return SessionServer(**json.loads((directory / _RECORD).read_text()))
    except FileNotFoundError:
        return None  # it is starting, or ending
    except (ValueError, TypeError) as error:
        raise SessionError(f"{directory / _RECORD} cannot be read: {error}; remove it") from None


def start_server(idle_seconds: float, master: str | None = None) -> tuple[SessionServer, bool]:
    """Return the running server, or start one.

    Args:
        idle_seconds: without a statement for so long it ends.
        master: where its tasks run; None for this machine.

    Returns:
        The server, and whether it was started now.

    Raises:
        SessionError: it cannot start, or one with other versions or another master is running.
    """
    require(NEEDED)
    find_java()
    _check_master(master)
    server = find_server()
    if server is not None:
        return _matching(server, master), False
    until = time.monotonic() + SPARK_SERVER_START_SECONDS
    while True:
        got = _start_one(idle_seconds, master, until)
        if got is not None:
            return got


def _start_one(
    idle_seconds: float, master: str | None, until: float
) -> tuple[SessionServer, bool] | None:
    """Start a server; None if it gave way to another one, which has ended since."""
    directory = runtime_directory()
    words = [
        sys.executable,
        "-m",
        "harebell.spark.runtime.session_server_process",
        str(idle_seconds),
    ]
    # The token is not in the arguments, which every user of the machine can read.
    surroundings = os.environ | {TOKEN_VARIABLE: secrets.token_urlsafe(32)}
    descriptor = os.open(directory / _LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as log:
        started = subprocess.Popen(  # noqa: S603 - our own module
            [*words, *([master] if master else [])],
            env=surroundings,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        return _awaited(started, master, directory, until)
    except BaseException:
        # Ctrl-C too: nothing is left behind without a waiter.
        if started.poll() is None:
            started.terminate()
        raise


def _awaited(
    started: subprocess.Popen[bytes], master: str | None, directory: Path, until: float
) -> tuple[SessionServer, bool] | None:
    while time.monotonic() < until:
        code = started.poll()
        server = find_server()
        if server is not None:
            return _matching(server, master), server.pid == started.pid
        # The other server may have ended before its record was read: start again.
        if code == _TAKEN:
            return None
        if code is not None:
            said = (directory / _LOG).read_text(errors="replace").strip().splitlines()
            reason = said[-1] if said else f"exit code {code}"
            raise SessionError(f"the Spark server did not start: {reason} (see {directory / _LOG})")
        time.sleep(_POLL_SECONDS)
    raise SessionError(
        f"the Spark server did not start within {SPARK_SERVER_START_SECONDS:g} s: "
        f"see {directory / _LOG}"
    )


def _check_master(master: str | None) -> None:
    if master is None:
        return
    place = master_of(master)
    if place.connect:
        raise SessionError(
            f"{master} is a server of Spark Connect already: `harebell sql --master {master}` uses "
            "it; a server that is started here runs its tasks on this machine or a cluster"
        )
    place.check_answers()


def _matching(session_server: SessionServer, master: str | None) -> SessionServer:
    if session_server.differences:
        raise SessionError(
            f"the running Spark server (process {session_server.pid}) has other versions: "
            f"{session_server.differences}; run `harebell spark stop` first"
        )
    if master is not None and master_of(master).url != session_server.master:
        raise SessionError(
            f"the running Spark server (process {session_server.pid}) runs its tasks on "
            f"{session_server.master}, not on {master}; run `harebell spark stop` first"
        )
    return session_server


def stop_server() -> SessionServer | None:
    """Stop the running server and wait for its end; None if there is none.

    Raises:
        SessionError: it does not end.
    """
    server = find_server()
    if server is None:
        return None
    directory = runtime_directory()
    os.kill(server.pid, signal.SIGTERM)
    until = time.monotonic() + SPARK_SERVER_STOP_SECONDS
    while _locked(directory):
        if time.monotonic() > until:
            raise SessionError(f"the Spark server (process {server.pid}) has not ended yet")
        time.sleep(_POLL_SECONDS)
    return server


def _locked(directory: Path) -> bool:
    try:
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


class ServerEntry:
    """The record of this process as the server, and the lock that it holds.

    It waits for the lock while another server starts or ends, and gives way to one that serves.

    Args:
        stopping: ends the wait.

    Raises:
        SystemExit: another server serves, or the wait was ended.
    """

    def __init__(self, stopping: threading.Event) -> None:
        self._directory = runtime_directory()
        self._descriptor = os.open(
            self._directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        while not self._lock():
            # The lock of a server is exclusive. The shared one of a program that looks for a
            # server is over in a moment, and the record beside it may be that of a dead server.
            serves = (self._directory / _RECORD).exists() and _locked(self._directory)
            if serves or stopping.wait(_POLL_SECONDS):
                raise SystemExit(_TAKEN)
        (self._directory / _RECORD).unlink(missing_ok=True)
        self._record = (0, 0)

    def _lock(self) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def publish(self, server: SessionServer) -> None:
        """Write the record, atomically and for this user only."""
        draft = self._directory / f"{_RECORD}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(json.dumps(asdict(server)))
        draft.replace(self._directory / _RECORD)
        self._record = self._identity()

    @property
    def there(self) -> bool:
        """Whether the record is still that of this process: without it no client comes again."""
        return self._record == self._identity()

    def withdraw(self) -> None:
        """Remove the record, so that no client connects to a server that ends."""
        if self.there:
            (self._directory / _RECORD).unlink(missing_ok=True)

    def _identity(self) -> tuple[int, int]:
        """Return device and inode of the record: a file of another server has others."""
        try:
            status = (self._directory / _RECORD).lstat()
        except FileNotFoundError:
            return 0, 0
        return status.st_dev, status.st_ino
