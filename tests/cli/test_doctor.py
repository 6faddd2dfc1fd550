"""`harebell doctor` looks at the whole machine, and its exit code says whether something is bad."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from tests.cli.conftest import Harebell
from tests.ports import free_port


def _ports(tmp_path: Path, port: int) -> dict[str, str]:
    return {
        "HAREBELL_DATA_DIR": str(tmp_path / "data"),
        "HAREBELL_PORT": str(port),
        "HAREBELL_MANAGEMENT_PORT": "0",
        "HAREBELL_METRICS_PORT": "0",
    }


def test_it_prints_a_line_for_everything_and_spark_is_a_part_of_it(
    harebell: Harebell, tmp_path: Path
) -> None:
    result = harebell("doctor", env=_ports(tmp_path, free_port()))
    assert result.returncode == 0, result.stdout
    words = [line.split()[1] for line in result.stdout.decode().splitlines()]
    assert words[:4] == ["python", "compiled", "loop", "management"]
    assert {"data", "space", "sync", "port", "java", "pyspark"} <= set(words)


def test_it_fails_for_what_is_bad_and_says_so_as_json(harebell: Harebell, tmp_path: Path) -> None:
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
