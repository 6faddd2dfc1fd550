"""A RabbitMQ node of our own, as a peer that we did not write.

The node lives in a temporary directory with its own name, ports, port mapper, cookie and data,
listens on loopback only, and ends with the process that started it. Debian's service is neither
used nor disturbed.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from tests.patience import eventually
from tests.ports import free_port

START_SECONDS = 180.0
STOP_SECONDS = 120.0
TOOL_SECONDS = 600.0
"""RabbitMQ's tools start an Erlang machine each, which takes most of a busy processor for long."""
_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
RABBITMQCTL = Path("/usr/lib/rabbitmq/bin/rabbitmqctl")
_GUARD = """
import os, shutil, signal, sys
# The input ends without a word when the test run was killed.
if sys.stdin.read() != "done":
    # The node and the port mapper, if it has started one: each has a group of its own.
    for number in sys.argv[2:]:
        try:
            os.killpg(int(number), signal.SIGKILL)
        except ProcessLookupError:
            pass
    shutil.rmtree(sys.argv[1], ignore_errors=True)
"""
_MISSING = (
    "the tests need RabbitMQ as a peer, and {tool} is missing: install it with "
    "`apt-get install -y rabbitmq-server` (and stop the service that it starts)"
)


def members(group: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            owner = path.read_text().rpartition(")")[2].split()[2]
            if int(owner) == group:
                found.append(int(path.parent.name))
    return found


def all_stopped(processes: Iterable[int]) -> bool:
    """Whether every thread of these processes has heard of its SIGSTOP."""
    states = set()
    for process in processes:
        for path in Path(f"/proc/{process}/task").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):
                states.add(path.read_text().rpartition(")")[2].split()[0])
    return bool(states) and states <= {"T", "Z", "X"}


def _listens(port: int) -> bool:
    """Whether somebody takes connections at a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class RabbitNode:
    """One node.

    Args:
        certificates: directory with ca.pem, server.pem and server.key, for a TLS listener; None for
            no TLS.
        port: where it listens; None for a free port.
        settings: more lines for its configuration.
        plugins: names of plugins that come with it.
        joins: a running node whose cluster it becomes a member of; None for none.
    """

    def __init__(
        self,
        certificates: Path | None = None,
        port: int | None = None,
        settings: Sequence[str] = (),
        plugins: Sequence[str] = (),
        joins: RabbitNode | None = None,
    ) -> None:
        for tool in (_SERVER, RABBITMQCTL):
            if not tool.exists():
                raise RuntimeError(_MISSING.format(tool=tool))
        if shutil.which("epmd") is None:
            raise RuntimeError(_MISSING.format(tool="epmd"))
        self.port = free_port() if port is None else port
        self.tls_port = free_port()
        # Not pytest's directory: socket names and node names want to be short.
        self.home = Path(tempfile.mkdtemp(prefix="hb-rabbit-"))
        self._joins = joins
        # The port mapper of a machine has the ports of all its nodes.
        self._epmd_port: int = free_port() if joins is None else joins._epmd_port
        self._distribution_port = free_port()
        self._certificates = certificates
        self._settings = tuple(settings)
        self._plugins = tuple(plugins)
        self._process: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._write_files()

    def _write_files(self) -> None:
        cookie = self.home / ".erlang.cookie"
        joins = self._joins
        own = secrets.token_hex(16)
        cookie.write_text(own if joins is None else (joins.home / cookie.name).read_text())
        cookie.chmod(0o400)
        lines = [
            f"listeners.tcp.1 = 127.0.0.1:{self.port}",
            "log.file.level = info",
            "disk_free_limit.absolute = 1MB",
            # Tests restart the node; a graceful linger would keep its port busy.
            "tcp_listen_options.backlog = 128",
            *self._settings,
        ]
        if joins is not None:
            nodes = "cluster_formation.classic_config.nodes"
            lines += [
                "cluster_formation.peer_discovery_backend = classic_config",
                f"{nodes}.1 = {joins.node_name}",
                f"{nodes}.2 = {self.node_name}",
            ]
        if self._certificates is not None:
            where = self._certificates
            lines += [
                f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}",
                f"ssl_options.cacertfile = {where / 'ca.pem'}",
                f"ssl_options.certfile = {where / 'server.pem'}",
                f"ssl_options.keyfile = {where / 'server.key'}",
                "ssl_options.verify = verify_none",
            ]
        (self.home / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
        (self.home / "enabled_plugins").write_text(f"[{','.join(self._plugins)}].\n")

    @property
    def node_name(self) -> str:
        """Its name in Erlang."""
        return f"hb{self.port}@localhost"

    @property
    def _environment(self) -> dict[str, str]:
        loopback = "-kernel inet_dist_use_interface {127,0,0,1}"
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            # A tool that fails would leave a dump in the directory of the tests.
            "ERL_CRASH_DUMP_SECONDS": "0",
            "RABBITMQ_NODENAME": self.node_name,
            "RABBITMQ_CONFIG_FILE": str(self.home / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "enabled_plugins"),
            "RABBITMQ_MNESIA_BASE": str(self.home / "data"),
            "RABBITMQ_LOG_BASE": str(self.home / "log"),
            "RABBITMQ_PID_FILE": str(self.home / "pid"),
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": loopback,
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # Two schedulers are enough for a test, and the machine has other work.
            "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
        }

    @property
    def tool_environment(self) -> dict[str, str]:
        """The variables with which RabbitMQ's tools find this node."""
        return self._environment

    @staticmethod
    def installed() -> bool:
        """Whether a node can be started here."""
        return _SERVER.exists() and RABBITMQCTL.exists() and shutil.which("epmd") is not None

    @property
    def pid(self) -> int:
        """The launcher of the node, of which all its processes descend.

        Raises:
            RuntimeError: the node does not run.
        """
        if self._process is None:
            raise RuntimeError("the node does not run")
        return self._process.pid

    @property
    def url(self) -> str:
        """Where to connect to."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the node and wait until it takes connections."""
        if self._epmd is None and self._joins is None:
            # Started by the node it would outlive it as a daemon.
            self._epmd = subprocess.Popen(
                ["epmd", "-port", str(self._epmd_port), "-address", "127.0.0.1"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # It must not go before the node, which would start another one.
                start_new_session=True,
            )
            # A node that finds nobody there starts one that is nobody's child.
            assert eventually(lambda: _listens(self._epmd_port)), "epmd does not start"
        with (self.home / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [str(_SERVER)],
                env=self._environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._watch(self._process)
        self._await_port(time.monotonic() + START_SECONDS)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Have the node killed even if the test run is: it would live on in its own session."""
        self._unwatch()
        mapper = [] if self._epmd is None else [str(self._epmd.pid)]
        self._guard = subprocess.Popen(
            [sys.executable, "-c", _GUARD, str(self.home), str(process.pid), *mapper],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _unwatch(self) -> None:
        if self._guard is not None:
            self._guard.communicate(b"done")
            self._guard = None

    def _await_port(self, until: float) -> None:
        assert self._process is not None
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=10.0) as probe:
                    probe.sendall(b"AMQP\x00\x00\x09\x01")
                    if probe.recv(1):
                        return
            except OSError:
                time.sleep(0.1)
        output = (self.home / "output").read_text(errors="replace")[-2000:]
        self.stop()
        raise RuntimeError(f"RabbitMQ did not start in {START_SECONDS:g} seconds:\n{output}")

    def freeze(self) -> None:
        """Let the node do nothing more, until it is killed."""
        assert self._process is not None
        group = self._process.pid
        os.killpg(group, signal.SIGSTOP)
        assert eventually(lambda: all_stopped(members(group))), "RabbitMQ does not stop"

    def kill(self) -> None:
        """End the node without a farewell."""
        process = self._process
        if process is not None and process.poll() is None:
            # The session of the launcher: the Erlang machine and its helpers, all ours.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_SECONDS)
        self._process = None
        self._unwatch()

    def ctl(self, *arguments: str) -> str:
        """Run rabbitmqctl against this node; what it prints."""
        done = subprocess.run(
            [str(RABBITMQCTL), "--quiet", *arguments],
            env=self._environment,
            cwd=self.home,
            capture_output=True,
            timeout=TOOL_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"rabbitmqctl {arguments[0]}: {(done.stdout + done.stderr)!r}")
        return done.stdout.decode()

    def block_publishers(self) -> None:
        """Raise the memory alarm."""
        self._limit_memory("1.0e-8")

    def unblock_publishers(self) -> None:
        """Clear the memory alarm."""
        self._limit_memory("0.6")

    def _limit_memory(self, share: str) -> None:
        """Set the watermark, and wait until every connection has been told what that means."""
        # The alarm is a message to the process that is asked for alarms here.
        limit = f"vm_memory_monitor:set_vm_memory_high_watermark({share})"
        self.ctl("eval", f"{limit}, rabbit_alarm:get_alarms().")

    def stop(self) -> None:
        """End the node and its port mapper, and remove their files."""
        self.kill()
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(STOP_SECONDS)
            self._epmd = None
        shutil.rmtree(self.home, ignore_errors=True)
