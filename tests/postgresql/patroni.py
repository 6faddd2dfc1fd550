"""Servers that Patroni looks after: it promotes another one when the primary is gone.

etcd and Patroni are those of Debian's packages. Each of them, and each server, is a tree of
processes in a process namespace of its own, so that kill -9 of its first process is the end of all
of them, as the end of a machine is.

    with Patroni() as cluster:
        old = cluster.leader()
        old.kill_machine()
        cluster.leader(other_than=old)
        old.return_empty()
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import psycopg

from tests.patience import eventually
from tests.ports import free_port
from tests.postgresql.servers import PASSWORD, SUPERUSER, USER, programs

TTL_SECONDS = 20
"""Patroni's least: so long after the end of a primary another one is promoted."""
_SCOPE = "harebell"
_ANSWER_SECONDS = 2.0
_START_SECONDS = 120.0
_NEEDED = ("patroni", "etcd")


class Tree:
    """A program and everything that it starts.

    Args:
        name: of its log.
        home: the directory of the log.
        command: the program.
        user: who runs it; None for who runs the tests.
    """

    def __init__(self, name: str, home: Path, command: Sequence[str], user: str | None) -> None:
        self.path = home / f"{name}.log"
        alone = ["unshare", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        if os.geteuid():
            alone.append("--map-current-user")
        # To become another user would take the signal away again.
        become = ["setpriv", "--pdeathsig", "KILL"]
        if user:
            become += ["--reuid", user, "--regid", user, "--clear-groups"]
        with self.path.open("ab") as log:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *alone, "--", *become, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=home,
            )

    def kill(self) -> None:
        """kill -9 of all of its processes."""
        self._process.kill()
        self._process.wait()

    def processes(self) -> list[int]:
        """Its processes, by their numbers out here."""
        found = [self._process.pid]
        for each in found:
            with suppress(OSError):
                # Patroni starts the server from a thread.
                for children in Path(f"/proc/{each}/task").glob("*/children"):
                    found += map(int, children.read_text().split())
        return found

    @property
    def log(self) -> str:
        """What it printed."""
        return self.path.read_text(errors="replace")


class PatroniMember:
    """A server with its Patroni.

    Args:
        name: of the member.
        home: a directory for everything.
        etcd: the port of etcd.
        user: who runs it; None for who runs the tests.

    Attributes:
        name: as given.
        port: of the server.
    """

    def __init__(self, name: str, home: Path, etcd: int, user: str | None) -> None:
        self.name = name
        self.port = free_port()
        self._api = free_port()
        self._home = home
        self._data = home / name
        self._user = user
        self._settings = home / f"{name}.json"
        # YAML is a superset of JSON.
        self._settings.write_bytes(msgspec.json.encode(self._configured(etcd)))
        self._tree: Tree | None = None
        self.start()

    def _configured(self, etcd: int) -> dict[str, Any]:
        local = {"connect_timeout": 2}
        return {
            "scope": _SCOPE,
            "name": self.name,
            "restapi": {
                "listen": f"127.0.0.1:{self._api}",
                "connect_address": f"127.0.0.1:{self._api}",
            },
            "etcd3": {"host": f"127.0.0.1:{etcd}"},
            "bootstrap": {
                "dcs": {
                    "ttl": TTL_SECONDS,
                    "loop_wait": 1,
                    "retry_timeout": 3,
                    "synchronous_mode": True,
                    "synchronous_mode_strict": True,
                    # A server that has died is not waited for.
                    "primary_start_timeout": 0,
                    "postgresql": {"use_slots": True, "use_pg_rewind": True},
                },
                "initdb": [{"encoding": "UTF8"}, "no-locale", "no-sync", "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self._data),
                "bin_dir": str(programs()),
                "pgpass": str(self._home / f"{self.name}.pgpass"),
                "authentication": {
                    "superuser": {"username": SUPERUSER, "password": PASSWORD, **local},
                    "replication": {"username": "replicator", "password": PASSWORD},
                },
                "parameters": {
                    "unix_socket_directories": str(self._home),
                    "shared_buffers": "16MB",
                    "max_connections": 60,
                    "max_wal_size": "256MB",
                },
                "pg_hba": [
                    "local all all trust",
                    "host replication replicator 127.0.0.1/32 scram-sha-256",
                    "host all all 127.0.0.1/32 scram-sha-256",
                ],
            },
        }

    def start(self) -> None:
        """Start it."""
        command = ["patroni", str(self._settings)]
        self._tree = Tree(self.name, self._home, command, self._user)

    def kill_machine(self) -> None:
        """kill -9 of the server and of its Patroni."""
        if self._tree is not None:
            self._tree.kill()

    def kill_server(self) -> None:
        """kill -9 of all processes of the server; its Patroni lives on."""
        assert self._tree is not None
        found = self._tree.processes()
        for each in found:
            with suppress(OSError):
                if Path(f"/proc/{each}/comm").read_text().strip() == "postgres":
                    os.kill(each, signal.SIGKILL)

    def return_empty(self) -> None:
        """Start it again on a new disk, after `kill_machine`."""
        shutil.rmtree(self._data, ignore_errors=True)
        self.start()

    def is_(self, role: str) -> bool:
        """Whether Patroni says so: "primary", "synchronous" or "replica"."""
        # Every other answer than 200 is an error here.
        with suppress(OSError):
            urlopen(f"http://127.0.0.1:{self._api}/{role}", timeout=_ANSWER_SECONDS).close()
            return True
        return False

    @property
    def log(self) -> str:
        """What it printed, in all of its lives."""
        return "" if self._tree is None else self._tree.log


class Patroni:
    """etcd, and two servers that follow each other; a context manager.

    Attributes:
        members: the servers.

    Raises:
        FileNotFoundError: a program is not there.
    """

    def __init__(self) -> None:
        if missing := [name for name in _NEEDED if shutil.which(name) is None]:
            raise FileNotFoundError(
                f"the test needs {' and '.join(missing)}: install them with "
                "`apt-get install -y patroni etcd-server`"
            )
        self._stack = ExitStack()
        self.members: list[PatroniMember] = []
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise

    def _start(self) -> None:
        home = Path(tempfile.mkdtemp(prefix="hb-patroni-"))
        self._stack.callback(shutil.rmtree, home, ignore_errors=True)
        user = SUPERUSER if os.geteuid() == 0 else None
        if user:
            owner = pwd.getpwnam(user)
            os.chown(home, owner.pw_uid, owner.pw_gid)
        port, peers = free_port(), free_port()
        at, other = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
        command = [
            *("etcd", "--name=one", f"--data-dir={home / 'etcd'}"),
            *(f"--listen-client-urls={at}", f"--advertise-client-urls={at}"),
            *(f"--listen-peer-urls={other}", f"--initial-advertise-peer-urls={other}"),
            f"--initial-cluster=one={other}",
        ]
        self._stack.callback(Tree("etcd", home, command, user).kill)
        for name in ("p1", "p2"):
            member = PatroniMember(name, home, port, user)
            self._stack.callback(member.kill_machine)
            self.members.append(member)
        leader = self.leader()
        self.wait_for_standby()
        self._execute(leader, f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")

    def leader(self, other_than: PatroniMember | None = None) -> PatroniMember:
        """The primary, as soon as there is one.

        Args:
            other_than: not this one.

        Raises:
            AssertionError: there is none in time.
        """
        found: list[PatroniMember] = []

        def leads() -> bool:
            others = [each for each in self.members if each is not other_than]
            found.extend(each for each in others if each.is_("primary"))
            return bool(found)

        assert eventually(leads, _START_SECONDS), self.log
        return found[0]

    def wait_for_standby(self) -> None:
        """Wait until a commit has a standby to wait for.

        Raises:
            AssertionError: there is none in time.
        """
        there = eventually(
            lambda: any(each.is_("synchronous") for each in self.members), _START_SECONDS
        )
        assert there, self.log

    def create_database(self, name: str) -> None:
        """A database without anything in it."""
        self._execute(self.leader(), f"CREATE DATABASE {name} OWNER {USER}")

    def url(self, database: str) -> str:
        """Where a broker finds a database, whichever server is the primary."""
        hosts = ",".join(f"127.0.0.1:{each.port}" for each in self.members)
        return f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@{hosts}/{database}"

    def _execute(self, member: PatroniMember, statement: str) -> None:
        with psycopg.connect(
            host="127.0.0.1",
            port=member.port,
            user=SUPERUSER,
            password=PASSWORD,
            dbname="postgres",
            autocommit=True,
        ) as connection:
            connection.execute(statement.encode())

    @property
    def log(self) -> str:
        """What all of them printed."""
        return "\n".join(f"--- {each.name}:\n{each.log}" for each in self.members)

    def __enter__(self) -> Patroni:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
