"""What a broker reports to systemd, at a real datagram socket, and the unit that is shipped."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.testing import RunningBroker
from tests.patience import SECONDS, eventually

UNIT = Path(__file__).parents[3] / "packaging/systemd/harebell.service"
MOST_EXPOSED = 2.0
"""The highest score of `systemd-analyze security` that is accepted."""
RESTART_US = 600_000


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(SECONDS)
        yield listener


def environment(listener: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": listener.getsockname(), **more}


def silent(listener: socket.socket) -> bool:
    """Whether nothing comes for as long as systemd waits."""
    listener.settimeout(RESTART_US / 1_000_000)
    try:
        listener.recv(4096)
    except TimeoutError:
        return True
    return False


def test_a_broker_is_ready_reloads_and_stops(systemd: socket.socket) -> None:
    with RunningBroker(env=environment(systemd)) as broker:
        ready = systemd.recv(4096).decode()
        assert ready == f"READY=1\nSTATUS=listening on amqp://127.0.0.1:{broker.port}"
        broker.process.send_signal(signal.SIGHUP)
        assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", systemd.recv(4096).decode())
        assert systemd.recv(4096).decode() == ready
        broker.stop()
        assert systemd.recv(4096) == b"STOPPING=1\nSTATUS=stopping"


def test_a_reload_that_fails_ends_too(systemd: socket.socket, tmp_path: Path) -> None:
    file = tmp_path / "harebell.toml"
    file.write_text("heartbeat = 7\n")
    with RunningBroker("--config", str(file), env=environment(systemd)) as broker:
        ready = systemd.recv(4096)
        file.write_text("heartbeat = 'often'\n")
        broker.process.send_signal(signal.SIGHUP)
        assert systemd.recv(4096).startswith(b"RELOADING=1\n")
        assert systemd.recv(4096) == ready
        assert eventually(lambda: "the configuration stays as it is" in broker.log)


def test_the_event_loop_reports_that_it_runs(systemd: socket.socket) -> None:
    with RunningBroker(env=environment(systemd, WATCHDOG_USEC=str(RESTART_US))) as broker:
        assert systemd.recv(4096).startswith(b"READY=1\n")
        assert [systemd.recv(4096) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        broker.process.send_signal(signal.SIGSTOP)
        try:
            assert eventually(lambda: silent(systemd))
        finally:
            broker.process.send_signal(signal.SIGCONT)


def test_a_watchdog_of_another_process_is_left_alone(systemd: socket.socket) -> None:
    about = environment(systemd, WATCHDOG_USEC="3000", WATCHDOG_PID="1")
    with RunningBroker(env=about) as broker:
        assert systemd.recv(4096).startswith(b"READY=1\n")
        broker.stop()
        assert systemd.recv(4096).startswith(b"STOPPING=1\n")


def test_a_manager_that_does_not_listen_is_no_reason_to_fail(tmp_path: Path) -> None:
    about = {"NOTIFY_SOCKET": str(tmp_path / "none"), "WATCHDOG_USEC": "3000"}
    with RunningBroker(env=about) as broker:
        broker.process.send_signal(signal.SIGHUP)
        assert eventually(lambda: "configuration" in broker.log)
        assert broker.process.poll() is None


# --- the unit -------------------------------------------------------------------------------------


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    tool = shutil.which("systemd-analyze")
    assert tool is not None, "systemd-analyze is missing: apt-get install systemd"
    return subprocess.run(
        [tool, *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )


def test_the_unit_is_valid(tmp_path: Path) -> None:
    # The command is where the package installs it, and not on this machine.
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/usr/bin/harebell", "/bin/true"))
    checked = analyze("verify", str(copy))
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_the_unit_exposes_little_of_the_machine() -> None:
    shown = analyze("security", "--offline=true", "--no-pager", str(UNIT)).stdout
    score = re.search(r"Overall exposure level for \S+: ([\d.]+)", shown)
    assert score is not None, shown
    assert float(score[1]) <= MOST_EXPOSED
