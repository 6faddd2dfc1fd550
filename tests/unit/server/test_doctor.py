"""What the doctor finds, on this machine and on broken ones."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from harebell.base.finding import BAD, GOOD, NOTE, Finding
from harebell.config import load
from harebell.server import doctor
from harebell.server.doctor import examine
from tests.ports import free_port
from tests.running import running_broker


def found(data_dir: Path, **flags: object) -> dict[str, Finding]:
    ports = {"port": free_port(), "management_port": 0, "metrics_port": 0}
    given = {name: str(value) for name, value in {**ports, **flags}.items()}
    config = load({"data_dir": str(data_dir), **given}, config_file="none")
    return {finding.name.split()[0]: finding for finding in examine(config)}


def test_a_machine_that_can_run_a_broker_has_nothing_bad(tmp_path: Path) -> None:
    findings = found(tmp_path / "data")
    assert [each for each in findings.values() if each.state == BAD] == []
    assert findings["data"].text.endswith("it will be made")
    assert "ms for a sync" in findings["sync"].text
    assert not (tmp_path / "data").exists()


def test_a_port_that_is_taken_is_bad_unless_the_broker_has_it(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        finding = found(tmp_path, port=port)["port"]
    assert finding.state == BAD
    assert "in use at 127.0.0.1: stop the program that has it, or choose" in finding.text
    with running_broker("--port", str(port), "--data-dir", str(tmp_path)):
        findings = found(tmp_path, port=port)
        assert findings["port"].text == "port: the broker that runs has it"
        assert findings["data"].text.endswith("a broker runs on it")


def test_a_data_directory_that_cannot_be_used_is_bad(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    finding = found(file / "below")["data"]
    assert finding.state == BAD
    assert f"{file} is no directory" in finding.text
    assert "a socket: choose a shorter directory" in found(tmp_path / ("d" * 120))["data"].text


def test_a_data_directory_of_somebody_else_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(doctor.os, "geteuid", lambda: mine + 1)
    finding = found(tmp_path)["data"]
    assert finding.state == BAD
    assert "belongs to" in finding.text
    assert "chown -R" in finding.text


def test_a_clock_behind_the_files_of_the_broker_is_bad(tmp_path: Path) -> None:
    file = tmp_path / "definitions.sqlite"
    file.write_text("")
    later = file.stat().st_mtime + 3600
    os.utime(file, (later, later))
    finding = found(tmp_path)["clock"]
    assert finding.state == BAD
    assert "behind the newest file" in finding.text


def test_few_files_little_memory_and_a_slow_disk_are_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  2048000 kB\nMemAvailable:   102400 kB\n")
    monkeypatch.setattr(doctor, "_MEMINFO", meminfo)
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (1024, 1024))
    monkeypatch.setattr(doctor, "DOCTOR_SLOW_SYNC_MS", 0.0)
    findings = found(tmp_path)
    assert {findings[each].state for each in ("files", "memory", "sync")} == {NOTE}
    assert "LimitNOFILE=65536" in findings["files"].text
    assert "100 MiB available" in findings["memory"].text
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _: (64, 64))
    assert found(tmp_path)["files"].state == BAD


@pytest.mark.parametrize("name", ["plain", "große Platte"])
def test_a_directory_in_memory_is_a_note(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / name
    directory.mkdir()
    mounts = tmp_path / "mounts"
    mounted = str(directory.resolve()).replace(" ", "\\040")
    mounts.write_bytes(b"none /\xff ext4 rw 0 0\n" + f"none {mounted} tmpfs rw 0 0\n".encode())
    monkeypatch.setattr(doctor, "_MOUNTS", mounts)
    finding = found(directory)["data"]
    assert finding.state == NOTE
    assert "gone after a restart" in finding.text


def test_an_uncompiled_broker_says_how_to_compile_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor.impl, "chosen", lambda: "python")
    monkeypatch.delenv("HAREBELL_IMPL", raising=False)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    finding = found(tmp_path)["compiled"]
    assert finding.state == NOTE
    assert "install a C compiler" in finding.text
    assert found(tmp_path)["python"].state == GOOD
