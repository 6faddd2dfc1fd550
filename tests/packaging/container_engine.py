"""A container engine without containers: it speaks Docker's HTTP API, and runs the entrypoint.

Where no container runtime can be had, libraries such as Testcontainers run against it unchanged:
they create a container with variables and ports, start it, wait for it, run commands in it and
remove it. Its process is the entrypoint with the command of the Containerfile, an ordinary process
of this machine, so a port of the container is the same port here, and paths are those that the
variables of the engine name.
"""

from __future__ import annotations

import json
import re
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

CONTAINER = Path(__file__).parents[2] / "packaging" / "container"
ENTRYPOINT = CONTAINER / "entrypoint.sh"
_SECONDS = 60.0
_STDOUT = 1
_HERE = {"Gateway": "127.0.0.1", "IPAddress": "127.0.0.1"}


def default_command() -> list[str]:
    """The command of the Containerfile."""
    found = re.search(r"^CMD (\[.*\])$", (CONTAINER / "Containerfile").read_text(), re.M)
    assert found is not None
    return list(json.loads(found[1]))


class Engine:
    """The containers that were created.

    Args:
        variables: what the image's own files and variables would give a process.
        directory: where the logs of containers are.
    """

    def __init__(self, variables: dict[str, str], directory: Path) -> None:
        self.variables = variables
        self.directory = directory
        self.created: dict[str, Container] = {}
        self.executed: dict[str, tuple[Container, list[str]]] = {}
        self.exit_codes: dict[str, int] = {}

    def create(self, asked: dict[str, Any]) -> str:
        """Make a container as Docker's API describes it."""
        name = f"{len(self.created) + 1:064x}"
        given = dict(each.split("=", 1) for each in asked.get("Env") or [])
        command = asked.get("Cmd") or default_command()
        ports = list(asked.get("ExposedPorts") or {})
        log = self.directory / f"{name[-4:]}.log"
        self.created[name] = Container(command, {**self.variables, **given}, ports, log)
        return name

    def prepare(self, container: str, asked: dict[str, Any]) -> str:
        """Keep a command that is to run in a container."""
        name = f"exec{len(self.executed)}"
        self.executed[name] = (self.created[container], list(asked["Cmd"]))
        return name

    def execute(self, name: str) -> bytes:
        """Run it; returns what it printed."""
        container, words = self.executed[name]
        done = subprocess.run(
            [str(ENTRYPOINT), *words],
            env=container.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
        )
        self.exit_codes[name] = done.returncode
        return done.stdout


class Container:
    """One process of the entrypoint.

    Args:
        command: what the entrypoint runs.
        variables: its environment.
        ports: what is exposed, as "5672/tcp".
        log: the file that it writes to.
    """

    def __init__(
        self, command: list[str], variables: dict[str, str], ports: list[str], log: Path
    ) -> None:
        self.command = command
        self.variables = variables
        self.ports = ports
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [str(ENTRYPOINT), *self.command], env=self.variables, stdout=output, stderr=output
            )

    def remove(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_SECONDS)

    def described(self, name: str) -> dict[str, Any]:
        """What Docker's API says of a container."""
        running = self.process is not None and self.process.poll() is None
        status = "running" if running else "created" if self.process is None else "exited"
        ports = {
            port: [{"HostIp": "0.0.0.0", "HostPort": port.partition("/")[0]}] for port in self.ports
        }
        return {
            "Id": name,
            "Name": f"/{name}",
            "Image": "harebell",
            "Created": "2026-01-01T00:00:00Z",
            "State": {"Status": status, "Running": running, "ExitCode": 0},
            "Config": {"Cmd": self.command, "Labels": {}, "Tty": False},
            "HostConfig": {"NetworkMode": "default"},
            "NetworkSettings": {"Ports": ports, "Networks": {"bridge": _HERE}},
        }


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection.

    Attributes:
        engine: what the requests are for.
    """

    engine: Engine

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def _answer(self, status: int, body: object = None, *, raw: bytes | None = None) -> None:
        data = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        kind = "application/json" if raw is None else "application/octet-stream"
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _asked(self) -> tuple[list[str], dict[str, Any]]:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        where = re.sub(r"^/v[\d.]+/", "/", urlsplit(self.path).path)
        return where.strip("/").split("/"), json.loads(body) if body else {}

    def do_GET(self) -> None:
        """Describe the engine, an image, a container or a command, or send a log."""
        match self._asked()[0]:
            case ["version"]:
                self._answer(200, {"ApiVersion": "1.44", "Version": "27.0.0", "Os": "linux"})
            case ["images", *_, "json"]:
                self._answer(200, {"Id": "sha256:1", "RepoTags": ["harebell:latest"]})
            case ["containers", "json"]:
                created = self.engine.created.items()
                self._answer(200, [each.described(name) for name, each in created])
            case ["containers", name, "json"]:
                self._answer(200, self.engine.created[name].described(name))
            case ["containers", name, "logs"]:
                wanted = "stdout=1" in self.path or "stdout=True" in self.path
                log = self.engine.created[name].log.read_bytes() if wanted else b""
                self._answer(200, raw=framed(log))
            case ["exec", name, "json"]:
                self._answer(200, {"ExitCode": self.engine.exit_codes.get(name)})
            case _:
                self._answer(404, {"message": f"no such path: {self.path}"})

    def do_POST(self) -> None:
        """Create or start a container, or run a command in it."""
        where, body = self._asked()
        match where:
            case ["containers", "create"]:
                self._answer(201, {"Id": self.engine.create(body), "Warnings": []})
            case ["containers", name, "start"]:
                self.engine.created[name].start()
                self._answer(204)
            case ["containers", name, "exec"]:
                self._answer(201, {"Id": self.engine.prepare(name, body)})
            case ["exec", name, "start"]:
                # The output follows the headers, as it comes, and ends with the connection.
                self.close_connection = True
                self.send_response(200)
                self.end_headers()
                self.wfile.write(framed(self.engine.execute(name)))
            case _:
                self._answer(404, {"message": f"no such path: {self.path}"})

    def do_DELETE(self) -> None:
        """Remove a container."""
        where, _ = self._asked()
        self.engine.created[where[1]].remove()
        self._answer(204)


def framed(output: bytes) -> bytes:
    """Output as Docker sends it: frames with a stream's number and a length."""
    return struct.pack(">BxxxL", _STDOUT, len(output)) + output if output else b""


@contextmanager
def engine_at(engine: Engine) -> Iterator[str]:
    """Serve an engine; yields its address for `DOCKER_HOST`."""
    handler = type("_EngineHandler", (_Handler,), {"engine": engine})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for container in engine.created.values():
            container.remove()
