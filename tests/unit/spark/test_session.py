"""The session's defaults; that they work is seen in tests/spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harebell.spark.runtime.masters import master_of
from harebell.spark.runtime.spark_home_cache import SparkHomeCache
from harebell.spark.session import SessionError, build_session, defaults, java_options


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


def test_a_cluster_keeps_sparks_own_defaults_for_clusters() -> None:
    settings = defaults(2, master=master_of("spark://big.example:7077"))
    assert settings["spark.master"] == "spark://big.example:7077"
    assert settings["spark.sql.session.timeZone"] == "UTC"
    for only_here in (
        "spark.sql.shuffle.partitions",
        "spark.sql.streaming.checkpointFileManagerClass",
        "spark.driver.bindAddress",
    ):
        assert only_here not in settings


def test_a_cluster_on_this_machine_stays_on_it() -> None:
    settings = defaults(2, master=master_of("local-cluster[2,1,1024]"))
    assert settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert "spark.sql.streaming.checkpointFileManagerClass" not in settings


def test_an_unknown_master_is_refused_before_anything_starts() -> None:
    with pytest.raises(SessionError, match="unknown master 'sprak://h:1'"):
        build_session("no master", settings={"spark.master": "sprak://h:1"})


def test_the_archive_is_used_where_it_exists(tmp_path: Path) -> None:
    places = SparkHomeCache(tmp_path, tmp_path, given=False)
    assert java_options(places, "-Xshare:auto -XX:+UseSerialGC") == "-Xshare:auto -XX:+UseSerialGC"
    places.archive.touch()
    assert java_options(places, "-Xshare:auto -XX:+UseSerialGC") == (
        f"-XX:+UseSerialGC -Xshare:auto -XX:SharedArchiveFile={places.archive} "
        "-Xlog:cds=off -Xlog:cds+dynamic=off"
    )
