"""The log file: rotation by size and by date, and opening it anew."""

from __future__ import annotations

import gzip
import re
import socket
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from harebell.config import ConfigError
from harebell.server.logs.outputs import RotatedFile, next_rotation
from tests.patience import eventually
from tests.running import running_broker
from tests.unit.server.listening import talk


def contents(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_a_large_file_is_rotated_and_old_ones_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "h.log"
    file = RotatedFile(path, size=8, count=2)
    for number in range(10):
        file.write([f"{number}23"])
    assert contents(path) == ["823", "923"]
    assert contents(path.with_name("h.log.0")) == ["623", "723"]
    assert contents(path.with_name("h.log.1")) == ["423", "523"]
    assert len(list(path.parent.iterdir())) == 3


def test_a_file_of_which_none_is_kept_is_emptied(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "h.log", size=8, count=0)
    file.write(["123", "456", "789"])
    assert [each.name for each in tmp_path.iterdir()] == ["h.log"]
    assert contents(tmp_path / "h.log") == ["789"]


def test_rotated_files_are_compressed(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "h.log", size=8, count=2, compress=True)
    file.write(["123", "456", "789"])
    assert gzip.decompress((tmp_path / "h.log.0.gz").read_bytes()) == b"123\n456\n"


def test_a_line_that_is_larger_than_the_limit_is_written_whole(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "h.log", size=8)
    file.write(["x" * 100])
    assert contents(tmp_path / "h.log") == ["x" * 100]
    # There was nothing before it that would have to be kept.
    assert [path.name for path in tmp_path.iterdir()] == ["h.log"]


def test_a_file_is_rotated_at_its_date(tmp_path: Path) -> None:
    now = [time.mktime((2026, 11, 25, 23, 59, 0, 0, 0, -1))]
    file = RotatedFile(tmp_path / "h.log", date="$D0", clock=lambda: now[0])
    file.write(["before"])
    now[0] += 120
    file.write(["after"])
    assert contents(tmp_path / "h.log.0") == ["before"]
    assert contents(tmp_path / "h.log") == ["after"]


@pytest.mark.parametrize(
    ("date", "then"),
    [
        ("$D0", (2026, 11, 26, 0)),
        ("$D23", (2026, 11, 25, 23)),
        ("$D11", (2026, 11, 26, 11)),
        ("$W0", (2026, 11, 29, 0)),
        ("$W3D13", (2026, 11, 25, 13)),
        ("$W3D11", (2026, 12, 2, 11)),
        ("$M1", (2026, 12, 1, 0)),
        ("$M31D5", (2026, 12, 31, 5)),
    ],
)
def test_the_next_date_is_found(date: str, then: tuple[int, int, int, int]) -> None:
    now = time.mktime((2026, 11, 25, 12, 0, 0, 0, 0, -1))  # a Wednesday
    assert next_rotation(date, now) == time.mktime((*then, 0, 0, 0, 0, -1))
    assert next_rotation("", now) is None


def test_a_file_that_was_moved_away_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / "h.log"
    file = RotatedFile(path)
    file.write(["one"])
    path.rename(tmp_path / "moved")
    file.write(["two"])
    file.reopen()
    file.write(["three"])
    file.close()
    assert contents(tmp_path / "moved") == ["one", "two"]
    assert contents(path) == ["three"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"cannot write the log file .*Not a directory"):
        RotatedFile(tmp_path / "file" / "h.log")


LOGROTATE = Path("/usr/sbin/logrotate")


def rotate(directory: Path, directives: str) -> None:
    """Run logrotate once on the log in a directory."""
    assert LOGROTATE.exists(), "install logrotate (Debian's package)"
    conf = directory / "logrotate.conf"
    conf.write_text(f"{directory / 'h.log'} {{\n rotate 3\n{directives}\n}}\n")
    conf.chmod(0o600)
    command = [str(LOGROTATE), "--force", "--state", str(directory / "state"), str(conf)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", ["postrotate", "copytruncate"])
def test_logrotate_rotates_the_log_of_a_running_broker(tmp_path: Path, way: str) -> None:
    log, rotated = tmp_path / "h.log", tmp_path / "h.log.1"
    flags = ("--log-dir", str(tmp_path), "--log-file", "h.log")
    with running_broker(*flags) as broker:
        assert eventually(lambda: "Server startup complete" in log.read_text())
        script = f" postrotate\n  kill -HUP {broker.pid}\n endscript"
        rotate(tmp_path, script if way == "postrotate" else " copytruncate")
        if way == "postrotate":
            # Until the broker has the new file, it writes to the old one.
            assert eventually(lambda: log.exists() and log.read_text() != "")
        before = rotated.read_text()
        assert "Server startup complete" in before
        talk(broker.port).sock.close()
        assert eventually(lambda: "client unexpectedly closed TCP connection" in log.read_text())
        assert "Server startup complete" not in log.read_text()
        assert "\0" not in log.read_text()
        assert "client unexpectedly closed" not in rotated.read_text()
        rotate(tmp_path, script if way == "postrotate" else " copytruncate")
        assert (tmp_path / "h.log.2").read_text() == before


def test_no_line_is_lost_while_logrotate_rotates(tmp_path: Path) -> None:
    flags = ("--log-dir", str(tmp_path), "--log-file", "h.log", "--log-console", "false")
    with running_broker(*flags) as broker:
        port = broker.port
        script = f" rotate 30\n postrotate\n  kill -HUP {broker.pid}\n endscript"
        ended = threading.Event()
        connected: list[int] = []

        def connect() -> None:
            while not ended.is_set():
                with socket.create_connection(("127.0.0.1", port)) as link:
                    connected.append(link.getsockname()[1])
                    link.sendall(b"AMQP\x00\x00\x09\x01")
                    link.recv(1)

        connecting = threading.Thread(target=connect, daemon=True)
        connecting.start()
        for _ in range(8):
            rotate(tmp_path, script)
            # Without it there is nothing that logrotate could rotate.
            assert eventually((tmp_path / "h.log").exists)
        assert eventually(lambda: len(connected) > 50)
        ended.set()
        connecting.join()
        expected = [f"accepting AMQP connection 127.0.0.1:{each} ->" for each in connected]
        assert eventually(lambda: sum(_lines_with(tmp_path, expected).values()) == len(connected))
        assert len(list(tmp_path.glob("h.log.*"))) == 8


def _lines_with(directory: Path, texts: list[str]) -> Counter[str]:
    """How often each text is in the logs of a directory."""
    logs = "".join(path.read_text() for path in directory.glob("h.log*"))
    wanted = Counter(texts)
    found = Counter(re.findall(r"accepting AMQP connection \S+ ->", logs))
    return found & wanted
