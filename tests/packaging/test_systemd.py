"""The unit of systemd: when a broker that has ended is started again."""

from __future__ import annotations

from pathlib import Path

UNIT = Path(__file__).parents[2] / "packaging" / "systemd" / "harebell.service"


def test_a_broker_that_ends_is_started_after_a_pause_and_not_for_ever() -> None:
    section, found = "", {}
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found[section, name] = value
    assert found["Service", "Restart"] == "on-failure"
    assert found["Service", "RestartSec"] == "5"
    # systemd reads these two in [Unit] only.
    assert found["Unit", "StartLimitIntervalSec"] == "10min"
    assert int(found["Unit", "StartLimitBurst"]) == 10
