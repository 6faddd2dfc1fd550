"""PgBouncer from Debian's package, in front of a server of ours."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.patience import eventually
from tests.ports import free_port
from tests.postgresql.servers import PASSWORD, SUPERUSER, USER, PostgresServer

PROGRAM = "/usr/sbin/pgbouncer"
_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = plain
auth_file = {home}/users
pool_mode = {mode}
"""


@contextmanager
def pooler(server: PostgresServer, mode: str) -> Iterator[int]:
    """The port of a pooler, for the length of a block.

    Args:
        server: where its sessions are.
        mode: its `pool_mode`.

    Raises:
        FileNotFoundError: it is not installed.
    """
    if not Path(PROGRAM).exists():
        raise FileNotFoundError(
            f"the tests need {PROGRAM}: install it with `apt-get install -y pgbouncer`"
        )
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="hb-pooler-", dir="/tmp") as home:
        users = Path(home) / "users"
        users.write_text(f'"{USER}" "{PASSWORD}"\n')
        settings = Path(home) / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server=server.port, port=port, home=home, mode=mode))
        # It refuses to run as root, as the server does.
        become: list[str] = []
        if os.geteuid() == 0:
            become = ["--reuid", SUPERUSER, "--regid", SUPERUSER, "--clear-groups"]
            for path in (Path(home), users, settings):
                shutil.chown(path, SUPERUSER, SUPERUSER)
        with (Path(home) / "log").open("wb") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *become, "--", PROGRAM, str(settings)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

        def listens() -> bool:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        try:
            assert eventually(listens), (Path(home) / "log").read_text()
            yield port
        finally:
            process.kill()
            process.wait()
