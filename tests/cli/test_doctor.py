"""`harebell doctor` looks at the whole machine, and its exit code says whether something is bad."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.cli.conftest import Harebell
from tests.ports import free_port
from tests.running import RunningBroker


def _ports(tmp_path: Path, port: int) -> dict[str, str]:
    return {
        "HAREBELL_DATA_DIR": str(tmp_path / "data"),
        "HAREBELL_PORT": str(port),
        "HAREBELL_MANAGEMENT_PORT": "0",
        "HAREBELL_METRICS_PORT": "0",
    }


def test_doctor_prints_a_line_for_each_check_also_those_of_spark(
    harebell: Harebell, tmp_path: Path
) -> None:
    result = harebell("doctor", env=_ports(tmp_path, free_port()))
    assert result.returncode == 0, result.stdout
    words = [line.split()[1] for line in result.stdout.decode().splitlines()]
    assert words[:4] == ["python", "compiled", "loop", "management"]
    assert {"data", "space", "sync", "port", "java", "pyspark"} <= set(words)


def test_doctor_fails_for_bad_findings_also_as_json(harebell: Harebell, tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        result = harebell("doctor", "--json", env=_ports(tmp_path, port))
    assert result.returncode == 1
    bad = [each for each in json.loads(result.stdout)["findings"] if each["state"] == "bad"]
    assert [each["name"] for each in bad] == [f"port {port}"]


def test_a_configuration_that_is_wrong_is_one_of_the_findings(
    harebell: Harebell, tmp_path: Path
) -> None:
    file = tmp_path / "harebell.toml"
    file.write_text("prot = 5672\n")
    result = harebell("doctor", "--config", str(file), "--json", env=_ports(tmp_path, 0))
    (finding,) = [
        each for each in json.loads(result.stdout)["findings"] if each["name"] == "config"
    ]
    assert result.returncode == 1
    assert "prot" in finding["text"]


def test_a_port_of_another_program_is_not_taken_for_that_of_the_broker(
    harebell: Harebell, own: RunningBroker
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        env = {
            "HAREBELL_DATA_DIR": str(own.data_dir),
            "HAREBELL_PORT": str(own.port),
            "HAREBELL_METRICS_PORT": str(port),
            "HAREBELL_MANAGEMENT_PORT": "0",
        }
        result = harebell("doctor", "--json", env=env)
    found = {each["name"]: each for each in json.loads(result.stdout)["findings"]}
    assert found[f"port {own.port}"]["state"] == "ok"
    assert found[f"port {port}"]["state"] == "bad"
    assert "not by the broker that runs" in found[f"port {port}"]["text"]
