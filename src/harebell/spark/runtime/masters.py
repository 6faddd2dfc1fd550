"""Masters: where Spark's tasks run, and the session settings that each needs.

local, local[4], local[*,3]   threads of one JVM on this machine
local-cluster[2,1,1024]       executors that are processes of this machine, for tests
spark://host:7077             a standalone cluster
yarn, k8s://https://host:443  a managed cluster
sc://host:15002               Spark Connect: the driver is another process
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass

from harebell.spark.limits import MASTER_ANSWER_SECONDS
from harebell.spark.runtime.java import SessionError

_LOCAL = re.compile(r"local(\[(\*|[1-9][0-9]*)(\s*,\s*[1-9][0-9]*)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*[0-9]+\s*,\s*[0-9]+\s*,\s*[0-9]+\s*\]")
_LOOPBACK = re.compile(r"://(127\.[0-9.]+|localhost|\[::1\])(:|$)")
CONNECT = "sc://"


@dataclass(frozen=True)
class Master:
    """Where tasks run.

    Args:
        url: as Spark expects it.
        threads: whether tasks are threads of the driver.
        here: whether everything runs on this machine.
    """

    url: str
    threads: bool
    here: bool

    @property
    def connect(self) -> bool:
        """Whether the driver is another process, behind Spark Connect."""
        return self.url.startswith(CONNECT)

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port, if the url has both."""
        match = re.search(r"://(?:https?://)?(\[[^\]]+\]|[^\[\]/,:]+):(\d+)", self.url)
        return None if match is None else (match[1].strip("[]"), int(match[2]))

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each server that may answer: a standalone cluster may have several."""
        places = self.url.partition("://")[2].partition("/")[0]
        matches = re.findall(r"(\[[^\]]+\]|[^\[\]/,:]+):(\d+)", places)
        return tuple((host.strip("[]"), int(port)) for host, port in matches)

    def check_answers(self) -> None:
        """Check that one of the servers can be connected to.

        Spark itself tries for a minute and longer, and says nothing meanwhile.

        Raises:
            SessionError: none can.
        """
        if not self.url.startswith(("spark://", CONNECT)) or not self.addresses:
            return
        reasons = []
        for host, port in self.addresses:
            try:
                socket.create_connection((host, port), MASTER_ANSWER_SECONDS).close()
            except OSError as error:
                reasons.append(f"{host}:{port}: {error.strerror or error}")
            else:
                return
        raise SessionError(
            f"the master {self.url.partition(';')[0]} does not answer at {', '.join(reasons)}; "
            "start it, or correct its address"
        )


def master_of(url: str) -> Master:
    """Parse a master.

    Raises:
        SessionError: it is invalid.
    """
    url = url.strip()
    if _LOCAL.fullmatch(url):
        return Master(url, threads=True, here=True)
    if _LOCAL_CLUSTER.fullmatch(url):
        return Master(url, threads=False, here=True)
    if url == "yarn" or url.startswith("k8s://"):
        return Master(url, threads=False, here=False)
    if url.startswith(("spark://", CONNECT)):
        master = Master(url, threads=False, here=_LOOPBACK.search(url) is not None)
        if master.address is not None or master.connect:
            return master
        raise SessionError(f"the master {url!r} has no port: write spark://HOST:7077")
    raise SessionError(
        f"unknown master {url!r}: use local[*], spark://HOST:PORT, yarn, k8s://https://HOST:PORT, "
        "or sc://HOST:PORT for Spark Connect"
    )
