"""PostgreSQL servers of our own, in temporary directories, on free ports of loopback.

A server belongs to the process of the tests and ends with it. PostgreSQL refuses to run as root;
started by root, it runs as the user of Debian's package. Neither the clusters of the package nor
their service are used or disturbed. Over TCP every user but the standbys needs its password; the
tests themselves look in through the socket in the server's directory, as superuser.

    with PostgresServer() as primary:
        standby = primary.standby("standby1")
        primary.requires_standby("standby1")
        primary.kill()
        standby.promote()
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from tests.patience import eventually
from tests.ports import free_port

VERSION_MIN = 14
USER = "harebell"
"""Owns the databases that a broker gets; it is no superuser, as in production."""
PASSWORD = "correct horse"
SUPERUSER = "postgres"
_PACKAGES = Path("/usr/lib/postgresql")
_MEMORY = Path("/dev/shm")
_START_SECONDS = 60.0
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.005
_SMALL = {
    "shared_buffers": "16MB",
    "max_connections": "60",
    "min_wal_size": "64MB",
    "max_wal_size": "256MB",
    "wal_level": "replica",
    "max_wal_senders": "6",
    "max_replication_slots": "6",
    "hot_standby": "on",
    "wal_retrieve_retry_interval": "200ms",
    "log_line_prefix": "%m [%p] ",
    "lc_messages": "C",
}
"""Cheap to have several of, and durable as a default installation is."""
_ACCESS = f"""
local all         {SUPERUSER}               trust
local replication {SUPERUSER}               trust
local all         all                       scram-sha-256
host  replication {SUPERUSER} 127.0.0.1/32  trust
host  all         all         127.0.0.1/32  scram-sha-256
"""


def programs() -> Path:
    """The directory with the programs of the newest PostgreSQL of the machine.

    Raises:
        FileNotFoundError: there is none that is new enough.
    """
    found = {
        float(path.parent.parent.name): path.parent
        for path in _PACKAGES.glob("*/bin/postgres")
        if re.fullmatch(r"\d+", path.parent.parent.name)
    }
    if not found or max(found) < VERSION_MIN:
        raise FileNotFoundError(
            f"the tests need PostgreSQL {VERSION_MIN} or newer below {_PACKAGES}: install it with "
            "`apt-get install -y postgresql`"
        )
    return found[max(found)]


def _memory() -> Path | None:
    return _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK) else None


class PostgresServer:
    """One server, which runs when this returns.

    Args:
        name: what a primary knows this standby by.
        settings: of postgresql.conf, beside those of every test.
        following: the server that this one is made a standby of.
        through: the port to reach that server at; None for its own.
        prefix: a command that runs the server, such as nsenter with its flags.
        below: the directory to be in; None for one in memory, where the machine has it: what is
            killed here are processes, and what they wrote stays.

    Attributes:
        home: the directory of everything.
        port: where it listens.
        name: see above.
    """

    def __init__(
        self,
        name: str = "primary",
        settings: Mapping[str, str] | None = None,
        following: PostgresServer | None = None,
        through: int | None = None,
        below: Path | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self._prefix = list(prefix)
        self.name = name
        self.port = free_port()
        self._settings = dict(settings or {})
        self._bin = programs()
        self._user = SUPERUSER if os.geteuid() == 0 else None
        # Not pytest's directory: the name of a socket has to be short, and the server's user must
        # be let in.
        self.home = Path(tempfile.mkdtemp(prefix="hb-pg-", dir=below or _memory()))
        self._data = self.home / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._standbys: list[PostgresServer] = []
        self._followed = following
        try:
            if self._user:
                owner = pwd.getpwnam(self._user)
                os.chown(self.home, owner.pw_uid, owner.pw_gid)
            if following is None:
                self._make()
            else:
                self._copy(following, following.port if through is None else through)
            self.start()
        except BaseException:
            self.remove()
            raise
        if following is None:
            self.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")

    # --- life -----------------------------------------------------------------------------------

    @property
    def pid(self) -> int:
        """The first process of the server."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything that it has logged, in all of its lives."""
        path = self.home / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start it, and wait until it takes connections.

        Raises:
            RuntimeError: it does not; its log is the text.
        """
        assert threading.current_thread() is threading.main_thread(), (
            "the server would end with this thread"
        )
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._prefix,
                    *self._end_with_us(),
                    str(self._bin / "postgres"),
                    "-D",
                    str(self._data),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.home,
                start_new_session=True,
            )
        until = time.monotonic() + _START_SECONDS
        while not self._answers():
            if not self.running or time.monotonic() > until:
                self.kill()
                raise RuntimeError(f"PostgreSQL ({self.name}) did not start:\n{self.log}")
            time.sleep(_POLL_SECONDS)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it.

        Args:
            how: SIGTERM waits for its clients, SIGINT ends them, SIGQUIT needs recovery later.
        """
        if self.running:
            self.resume()
            assert self._process is not None
            self._process.send_signal(how)
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
                raise

    def kill(self) -> None:
        """kill -9 of every process of the server, as the end of a machine."""
        if self._process is None:
            return
        processes = self._processes()
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        # The port and the memory are free when the last of them is gone.
        assert eventually(lambda: not any(map(_lives, processes)))

    def restart(self) -> None:
        """Stop it, which ends its clients, and start it again."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """SIGSTOP of every process of the server."""
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT of every process of the server."""
        for process in self._processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)

    @contextmanager
    def hanging(self, statement: str) -> Iterator[None]:
        """For the length of a block, no connection goes on whose last statement was like this."""
        found = self.execute(
            "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            f" AND query LIKE '{statement}'"
        )
        assert found, f"no connection has sent {statement}"
        pids = [int(str(pid)) for (pid,) in found]
        try:
            for each in pids:
                os.kill(each, signal.SIGSTOP)
            yield
        finally:
            for each in pids:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGCONT)

    def remove(self) -> None:
        """End it and its standbys, and remove their files."""
        for each in self._standbys:
            each.remove()
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    # --- what is in it --------------------------------------------------------------------------

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """A connection of the superuser, in which every statement is a transaction."""
        return psycopg.connect(
            host=str(self.home), port=self.port, user=SUPERUSER, dbname=database, autocommit=True
        )

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """What a statement of the superuser returns."""
        with self.connect(database) as connection:
            # The statements are those of tests.
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def url(
        self,
        database: str,
        *,
        user: str = USER,
        password: str = PASSWORD,
        port: int | None = None,
        **parameters: str,
    ) -> str:
        """Where a broker finds a database, over TCP.

        Args:
            database: its name.
            user: who comes.
            password: of the user.
            port: of a relay; None for the server's own.
            parameters: of the connection, such as `connect_timeout`.
        """
        return address(
            database, port or self.port, user=user, password=password, parameters=parameters
        )

    def create_database(self, name: str, owner: str = USER) -> None:
        """A database without anything in it."""
        self.execute(f"CREATE DATABASE {name} OWNER {owner}")

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever uses it."""
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def set(self, **settings: str) -> None:
        """Change settings that a reload applies, and wait until they count."""
        with self.connect() as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
            connection.execute("SELECT pg_reload_conf()")
        wanted = list(settings)

        def applied() -> bool:
            # A connection of before the reload may look a moment too early.
            pending = "SELECT name FROM pg_file_settings WHERE NOT applied AND error IS NULL"
            late = {str(row[0]) for row in self.execute(pending)}
            shown = {name: self.execute(f"SHOW {name}")[0][0] for name in wanted}
            return not late & set(wanted) and all(
                str(shown[name]).replace(" ", "") == settings[name].replace(" ", "")
                for name in wanted
            )

        assert eventually(applied), f"{settings} do not apply"

    # --- replication ----------------------------------------------------------------------------

    def standby(
        self, name: str, *, through: int | None = None, settings: Mapping[str, str] | None = None
    ) -> PostgresServer:
        """A server that follows this one, by a slot of its own; it is removed with this one.

        Args:
            name: what `requires_standby` calls it.
            through: the port of a relay between them.
            settings: of postgresql.conf, for this one.
        """
        self.execute(f"SELECT pg_create_physical_replication_slot('{name}', true)")
        made = PostgresServer(
            name, settings, following=self, through=through, below=self.home.parent
        )
        self._standbys.append(made)
        assert eventually(lambda: self.followed_by(name)), self.log + made.log
        return made

    def followed_by(self, name: str) -> bool:
        """Whether that standby receives everything at this moment."""
        row = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND application_name"
        return bool(self.execute(f"{row} = '{name}'"))

    def requires_standby(self, *names: str) -> None:
        """From now on a commit waits for one of these standbys; for none of them without names.

        On a standby it counts once that is promoted; "*" is any.
        """
        listed = ", ".join(name if name == "*" else f'"{name}"' for name in names)
        self.set(synchronous_standby_names=f"ANY 1 ({listed})" if names else "")
        if names and self._followed is None:
            waiting = "SELECT 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
            assert eventually(lambda: self.execute(waiting)), f"none of {names} is synchronous"

    def promote(self) -> None:
        """Make this standby a primary, and wait until it is one. It has to be removed by itself."""
        assert self._followed is not None, f"{self.name} is no standby"
        self._followed._standbys.remove(self)
        self._followed = None
        self.execute("SELECT pg_promote(true, 60)")
        assert not self.execute("SELECT pg_is_in_recovery()")[0][0], self.log

    # --- files and processes --------------------------------------------------------------------

    def _make(self) -> None:
        self._run("initdb", "-D", str(self._data), "-U", SUPERUSER, "-E", "UTF8", "--no-locale")
        self._configure()
        (self._data / "pg_hba.conf").write_text(_ACCESS)

    def _copy(self, primary: PostgresServer, port: int) -> None:
        source = f"host={primary.home} port={primary.port} user={SUPERUSER}"
        to = ("-D", str(self._data))
        self._run("pg_basebackup", *to, "-d", source, "-c", "fast", "-X", "stream")
        # What the primary has set for itself does not count here.
        (self._data / "postgresql.auto.conf").write_text("")
        (self._data / "standby.signal").touch()
        if self._user:
            shutil.chown(self._data / "standby.signal", self._user, self._user)
        self._settings = {**primary._settings, **self._settings}
        self._configure(
            primary_slot_name=self.name,
            primary_conninfo=(
                f"host=127.0.0.1 port={port} user={SUPERUSER} application_name={self.name} "
                "connect_timeout=2"
            ),
        )

    def _configure(self, **more: str) -> None:
        settings = {
            **_SMALL,
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.home),
            "cluster_name": self.name,
            **self._settings,
            **more,
        }
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        (self._data / "postgresql.conf").write_text("".join(lines))

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments, "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.home,
            user=self._user,
            group=self._user,
            extra_groups=[] if self._user else None,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")

    def _end_with_us(self) -> list[str]:
        """A prefix: the server gets SIGQUIT when the tests are killed."""
        prefix = ["setpriv", "--pdeathsig", "QUIT"]
        if self._user:
            prefix += ["--reuid", self._user, "--regid", self._user, "--clear-groups"]
        return [*prefix, "--"]

    def _processes(self) -> list[int]:
        """Every process of the server that runs, the first of them first."""
        if self._process is None or self._process.poll() is not None:
            return []
        found = [self._process.pid]
        for each in found:
            with suppress(OSError):
                children = Path(f"/proc/{each}/task/{each}/children").read_text()
                found += map(int, children.split())
        return found

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


def _lives(process: int) -> bool:
    """Whether it is there, and not only its exit code that nobody has read yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def address(
    database: str,
    port: int,
    *,
    user: str = USER,
    password: str = PASSWORD,
    parameters: Mapping[str, str] | None = None,
) -> str:
    """The URL of a database on loopback."""
    more = "&".join(f"{name}={value}" for name, value in (parameters or {}).items())
    secret = password.replace(" ", "%20")
    return f"postgresql://{user}:{secret}@127.0.0.1:{port}/{database}{'?' if more else ''}{more}"


@contextmanager
def fresh_database(server: PostgresServer, name: str) -> Iterator[str]:
    """A database for the length of a block; its name."""
    server.create_database(name)
    try:
        yield name
    finally:
        if server.running:
            server.drop_database(name)
