"""The session's defaults; that they work is seen in tests/spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harebell.spark.session import SessionError, build_session, defaults


def test_a_session_fits_the_machine_and_stays_on_it() -> None:
    settings = defaults(2)
    assert settings["spark.master"] == "local[2]"
    assert settings["spark.sql.shuffle.partitions"] == "2"
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"


def test_a_short_lived_session_starts_fast() -> None:
    assert "spark.driver.extraJavaOptions" not in defaults(2)
    assert "TieredStopAtLevel=1" in defaults(2, short_lived=True)["spark.driver.extraJavaOptions"]


def test_a_missing_java_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SessionError, match="apt-get install openjdk-17-jre-headless"):
        build_session("no java")
