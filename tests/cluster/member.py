"""A broker of a cluster whose directory is a file: `harebell serve`, and its cluster port.

The file says, in JSON, which vhost is in which store, who owns the stores, and the secret. Owners
that get clients by their sockets are in "given", with the sockets that take them.

    {"vhosts": {"far": 2}, "owners": {"2": [1, "127.0.0.1:4711", ""]}, "secret": "...", "given": {}}

    python -m tests.cluster.member FILE STORE SECONDS harebell serve FLAGS

Clients wait for an owner for that many seconds.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from harebell.__main__ import main
from harebell.cli.verbs import serve
from harebell.cluster.client_handover import SERVICE, ClientHandover, clients_service
from harebell.cluster.link import ClusterListener, LinkTls
from harebell.cluster.local_handover import NAME, LocalHandover, give
from harebell.cluster.stores import ClusterAddress
from harebell.config import Config
from harebell.front.common.peer import Peer
from harebell.server.app import App


class FileDirectory:
    """Which broker owns which vhost, as a file says it.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = (0, 0)
        self._found: dict[str, Any] = {}

    @property
    def secret(self) -> bytes:
        return str(self._now()["secret"]).encode()

    def store_of(self, vhost: str) -> int | None:
        store: int | None = self._now()["vhosts"].get(vhost)
        return store

    def address_of(self, store: int) -> ClusterAddress | None:
        owner = self._now()["owners"].get(str(store))
        return None if owner is None else ClusterAddress(*owner)

    def socket_of(self, store: int) -> Path | None:
        path = self._now()["given"].get(str(store))
        return None if path is None else Path(path)

    def _now(self) -> dict[str, Any]:
        # Two files may be of the same moment of the clock of the file system.
        found = self._path.stat()
        seen = (found.st_mtime_ns, found.st_ino)
        if seen != self._seen:
            self._seen = seen
            self._found = json.loads(self._path.read_text())
        return self._found


def join(app: App, directory: FileDirectory, store: int, waits: float) -> asyncio.Task[None]:
    """Become the owner of a store of the cluster."""

    def elsewhere(vhost: str) -> bool:
        return directory.store_of(vhost) not in (None, store)

    def given(to: int, peer: Peer, transport: asyncio.Transport, sent: bytes) -> bool:
        path = directory.socket_of(to)
        return path is not None and give(path, peer, transport, sent)

    tls = None if app.tls is None else LinkTls(app.tls)
    services = {SERVICE: clients_service(app.protocol_of)}
    listener = ClusterListener(services, directory.secret, tls, app.logger.write)
    app.handing_over = ClientHandover(directory, waits, 100, app.logger.write)
    app.handing_over.give = given
    app.settings.elsewhere = elsewhere
    LocalHandover(app.config.data_dir / NAME, app.protocol_of, app.logger.write)

    async def listen() -> None:
        await listener.listen("127.0.0.1", 0)
        click.echo(f"listening on cluster://127.0.0.1:{listener.port}")
        click.echo(f"fingerprint {listener.fingerprint}")

    return app.loop.create_task(listen())


def run(path: Path, store: int, waits: float) -> None:
    """Run the command line, whose broker joins the cluster when it serves."""
    announce = serve.announce
    joining = []

    def joined(app: App, config: Config) -> None:
        joining.append(join(app, FileDirectory(path), store, waits))
        announce(app, config)

    serve.announce = joined
    main()


if __name__ == "__main__":
    of_cluster, of_store, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    sys.argv = sys.argv[4:]
    run(of_cluster, of_store, seconds)
