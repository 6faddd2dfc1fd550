"""The cache: its key, and the overlay that leaves out the zip of pyspark."""

from __future__ import annotations

from pathlib import Path
from threading import Thread

import pytest

from harebell.spark.runtime.java import Java, SessionError
from harebell.spark.runtime.spark_home_cache import (
    cache_directory,
    find_cache,
    installed_spark,
    make_overlay,
)

JAVA = Java(Path("/usr/bin/java"), 17, "17.0.1")


def cached(directory: Path, **more: str) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(directory), **more}


def spark_directory(directory: Path) -> Path:
    (directory / "jars").mkdir(parents=True)
    (directory / "jars" / "one.jar").touch()
    return directory


def test_the_cache_is_where_the_desktop_says(tmp_path: Path) -> None:
    assert cache_directory(cached(tmp_path)) == tmp_path / "harebell" / "spark"
    assert cache_directory({}) == Path.home() / ".cache" / "harebell" / "spark"
    assert cache_directory({"XDG_CACHE_HOME": "relative"}) == cache_directory({})


def test_another_java_or_other_jars_have_another_directory(tmp_path: Path) -> None:
    home = spark_directory(tmp_path / "spark")
    environment = cached(tmp_path, SPARK_HOME=str(home))
    first = find_cache(JAVA, environment)
    assert find_cache(JAVA, environment) == first
    other = find_cache(Java(JAVA.program, 21, "21.0.2"), environment)
    assert other.directory != first.directory
    (home / "jars" / "two.jar").touch()
    assert find_cache(JAVA, environment).directory != first.directory


def test_the_overlay_has_the_installed_spark_without_its_zip(tmp_path: Path) -> None:
    cache = find_cache(JAVA, cached(tmp_path))
    overlay = make_overlay(cache)
    assert (overlay / "jars").resolve() == (installed_spark() / "jars").resolve()
    assert (overlay / "bin" / "spark-submit").is_file()
    (library,) = (overlay / "python" / "lib").iterdir()
    assert library.name.startswith("py4j-")
    assert make_overlay(cache) == overlay
    assert [entry.name for entry in cache.directory.iterdir()] == ["home"]


def test_the_overlay_of_many_starts_at_once_is_whole(tmp_path: Path) -> None:
    cache = find_cache(JAVA, cached(tmp_path))
    made: list[Path] = []
    threads = [
        Thread(target=lambda: made.append(make_overlay(cache)), daemon=True) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert made == [cache.overlay] * 8
    assert [entry.name for entry in cache.directory.iterdir()] == ["home"]


def test_a_spark_home_of_the_user_is_left_alone(tmp_path: Path) -> None:
    home = spark_directory(tmp_path / "spark")
    cache = find_cache(JAVA, cached(tmp_path, SPARK_HOME=str(home)))
    assert cache.given
    assert make_overlay(cache) == home
    assert not cache.directory.exists()


def test_the_overlay_of_an_earlier_session_is_no_spark_home_of_the_user(tmp_path: Path) -> None:
    cache = find_cache(JAVA, cached(tmp_path))
    again = find_cache(JAVA, cached(tmp_path, SPARK_HOME=str(make_overlay(cache))))
    assert again == cache


def test_a_spark_home_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match=f"{tmp_path} is no Spark: it has no directory jars"):
        find_cache(JAVA, cached(tmp_path / "cache", SPARK_HOME=str(tmp_path)))
