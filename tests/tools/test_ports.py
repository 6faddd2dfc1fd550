"""Ports that stay free while nobody listens on them."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests import ports

ROOT = Path(__file__).parents[2]
OTHER = "from tests.ports import _is_ours; import sys; print(_is_ours(int(sys.argv[1])))"


def test_a_port_is_given_once() -> None:
    given = [ports.free_port() for _ in range(20)]
    assert len(set(given)) == 20


def test_the_system_gives_it_to_nobody() -> None:
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert ports.free_port() < first


def test_another_process_does_not_get_it() -> None:
    port = ports.free_port()
    done = subprocess.run(
        [sys.executable, "-c", OTHER, str(port)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_a_port_that_somebody_listens_on_is_left_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert not ports._is_ours(listening.getsockname()[1])
