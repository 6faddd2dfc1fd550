"""What the doctor finds, on this machine and on broken ones."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from harebell.base.finding import BAD, GOOD, NOTE, Finding
from harebell.spark.runtime import doctor
from harebell.spark.runtime.doctor import examine
from tests.ports import free_port


def found(master: str | None = None) -> dict[str, Finding]:
    return {finding.name: finding for finding in examine(master, start=False)}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)


def test_a_machine_that_can_run_spark_has_nothing_bad() -> None:
    findings = found()
    assert [name for name, finding in findings.items() if finding.state == BAD] == []
    assert "version" in findings["java"].text
    assert findings["archive"].state == NOTE
    assert "harebell spark warm" in findings["archive"].text


def test_a_missing_java_is_bad_and_does_not_hide_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    findings = found()
    assert findings["java"].state == BAD
    assert f"JAVA_HOME is '{tmp_path}'" in findings["java"].text
    assert findings["pyspark"].state == GOOD
    assert findings["loopback"].state == GOOD


def test_packages_that_are_missing_or_too_old_are_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    def versions(name: str) -> str:
        if name == "pyarrow":
            raise doctor.PackageNotFoundError(name)
        return "4.1.2"

    monkeypatch.setattr(doctor, "version", versions)
    findings = found()
    assert findings["pyspark"].state == BAD
    assert "pyspark 4.1.2 is too old, 4.2 is needed" in findings["pyspark"].text
    assert "pip install 'harebell[spark]'" in findings["pyarrow"].text


def test_little_memory_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  2048000 kB\nMemAvailable:   1024000 kB\n")
    monkeypatch.setattr(doctor, "_MEMINFO", meminfo)
    finding = found()["memory"]
    assert finding.state == NOTE
    assert finding.text == "1.0 GiB available: a session takes about 1.5 GiB"


def test_a_master_answers_or_not() -> None:
    # A port that nobody else gets when the server has gone.
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        assert found(f"spark://127.0.0.1:{port}")["master"].state == GOOD
    finding = found(f"spark://127.0.0.1:{port}")["master"]
    assert finding.state == BAD
    assert f"does not answer at 127.0.0.1:{port}: Connection refused" in finding.text
    assert found("local[2]")["master"].state == GOOD
    assert found("nonsense")["master"].state == BAD
