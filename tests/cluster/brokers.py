"""Two brokers of a cluster: "near" owns store 1, and "far" store 2 with the vhost "far"."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harebell.cluster.local_handover import NAME
from harebell.management.control.client import ask_command
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker

SECRET = "of the cluster"
WAITS = 10 * SECONDS
"""How long clients wait for an owner, unless it is told otherwise."""


@dataclass
class Cluster:
    """Two brokers, and the file that is their directory.

    Args:
        near: the broker that clients connect to.
        far: the owner of the vhost "far".
        path: of the file.
        given: the owners that get clients by their sockets.
    """

    near: RunningBroker
    far: RunningBroker
    path: Path
    given: dict[str, str]

    @property
    def address(self) -> str:
        """Where clients connect, without a scheme, a user and a vhost."""
        return f"127.0.0.1:{self.near.port}"

    def url(self, vhost: str = "far", user: str = "guest:guest", version: str = "0-9-1") -> str:
        """The URL of a vhost at the near broker."""
        scheme = "amqp" if version == "0-9-1" else f"amqp+{version}"
        address = self.address
        if version == "0-10t":
            address = self.near.address("amqp-0-10t").rpartition("/")[2]
        return f"{scheme}://{user}@{address}/{vhost}"

    def connections(self, broker: RunningBroker) -> list[dict[str, Any]]:
        """The connections of a broker, as it lists them."""
        rows: list[dict[str, Any]] = ask_command(broker.data_dir, "connections.list", {})
        return rows

    @contextmanager
    def directory(self, **changes: Any) -> Iterator[None]:
        """Another directory for the length of a block; no client is given by its socket then."""
        write_directory(self.path, owner_of(self.far), **changes)
        try:
            yield
        finally:
            write_directory(self.path, owner_of(self.far), given=self.given)


def owner_of(broker: RunningBroker, epoch: int = 1) -> list[Any]:
    """The owner of a store, as the file has it."""
    found = re.search(r"fingerprint (\w*)\n", broker.log)
    assert found is not None
    return [epoch, broker.address("cluster").rpartition("/")[2], found[1]]


def write_directory(path: Path, owner: list[Any] | None, **changes: Any) -> None:
    """Write the file that is the directory of a cluster."""
    found = {
        "vhosts": {"/": 1, "far": 2, "gone": 2},
        "owners": {} if owner is None else {"2": owner},
        "secret": SECRET,
        "given": {},
        **changes,
    }
    new = path.with_suffix(".new")
    new.write_text(json.dumps(found))
    os.replace(new, path)


@contextmanager
def member(path: Path, store: int, waits: float, *flags: str) -> Iterator[RunningBroker]:
    """A broker that owns a store."""
    of = (str(path), str(store), str(waits))
    prefix = [sys.executable, "-m", "tests.cluster.member", *of]
    with RunningBroker(*flags, prefix=prefix) as broker:
        assert eventually(lambda: "fingerprint" in broker.log), broker.log
        yield broker


def make_home(directory: Path, *flags: str) -> Path:
    """Make a data directory with the users guest, and visitor, who has no permissions."""
    home = directory / "data"
    with RunningBroker("--data-dir", str(home), *flags) as broker:
        ask_command(home, "users.add", {"name": "visitor", "password": "visitor"})
        assert broker.stop() == 0
    return home


@contextmanager
def cluster(
    home: Path,
    directory: Path,
    *flags: str,
    near: Sequence[str] = (),
    by_socket: bool = False,
    waits: float = WAITS,
) -> Iterator[Cluster]:
    """Two brokers with the same users.

    Args:
        home: the data directory that both begin with.
        directory: an empty one.
        flags: of both brokers.
        near: more of the first one.
        by_socket: whether the first one gives clients to the second by their sockets.
        waits: how many seconds clients wait for an owner.
    """
    path = directory / "directory.json"
    write_directory(path, None)
    homes = [shutil.copytree(home, directory / name) for name in ("near", "far")]
    with (
        member(path, 1, waits, "--data-dir", str(homes[0]), *flags, *near) as first,
        member(path, 2, waits, "--data-dir", str(homes[1]), *flags) as second,
    ):
        ask_command(second.data_dir, "vhosts.add", {"name": "far"})
        guest = {"user": "guest", "vhost": "far", "configure": ".*", "write": ".*", "read": ".*"}
        ask_command(second.data_dir, "permissions.set", guest)
        given = {"2": str(homes[1] / NAME)} if by_socket else {}
        write_directory(path, owner_of(second), given=given)
        yield Cluster(first, second, path, given)
