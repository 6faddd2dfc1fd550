"""The archive for executors: what is in it, and that it is enough."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from harebell.spark.runtime import shipping


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shipping.make_archive(tmp_path_factory.mktemp("shipping"))


def test_the_archive_has_the_format_and_nothing_of_the_broker(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert "pyspark_harebell/__init__.py" in names
    assert "harebell/spark/source.py" in names
    assert "harebell/kernels/columns.py" in names
    assert "msgspec/__init__.py" in names
    assert not [name for name in names if name.startswith(("harebell/server", "harebell/front"))]
    model = {name for name in names if name.startswith("harebell/model/")}
    checking = "harebell/model/filter/"
    assert {name for name in model if not name.startswith(checking)} == {
        "harebell/model/__init__.py",
        "harebell/model/death.py",
        "harebell/model/editor.py",
        "harebell/model/limits.py",
    }
    assert f"{checking}condition.py" in model
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyx")]


def test_the_archive_is_made_once_for_the_same_files(archive: Path) -> None:
    before = archive.stat().st_mtime_ns
    assert shipping.make_archive(archive.parent) == archive
    assert archive.stat().st_mtime_ns == before
    assert list(archive.parent.iterdir()) == [archive]


@pytest.mark.parametrize("implementation", ["", "python"])
def test_a_python_without_harebell_finds_the_format_in_the_archive(
    archive: Path, tmp_path: Path, implementation: str
) -> None:
    target = tmp_path / shipping.DIRECTORY
    zipfile.ZipFile(archive).extractall(target)
    # As in an executor: Spark and Arrow are there, and Harebell is only in the archive.
    others = tmp_path / "others"
    others.mkdir()
    for package in ("pyspark", "py4j", "pyarrow", "numpy"):
        found = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
        if (found / package).exists():
            (others / package).symlink_to(found / package)
    code = (
        "import pyspark_harebell, harebell.spark.reading.stream_source, harebell.client.blocking\n"
        "from harebell.base import impl\n"
        "print(pyspark_harebell.__file__, impl.chosen())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "HAREBELL_IMPL"}
    environment["PYTHONPATH"] = f"./{shipping.DIRECTORY}:{others}"
    if implementation:
        environment["HAREBELL_IMPL"] = implementation
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file, chosen = done.stdout.split()
    assert file.startswith((str(target), f"./{shipping.DIRECTORY}"))
    assert not implementation or chosen == implementation


def test_the_archive_for_spark_connect_is_python_only(tmp_path: Path) -> None:
    names = zipfile.ZipFile(shipping.make_archive(tmp_path, shipping.python_files())).namelist()
    assert "harebell/spark/source.py" in names
    assert all(name.endswith(".py") for name in names)
    assert not [name for name in names if name.startswith("msgspec")]


def test_the_settings_keep_what_a_program_chose_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HAREBELL_IMPL", raising=False)
    archive = tmp_path / "a.zip"
    assert shipping.settings(archive, {}) == {
        "spark.archives": f"{archive}#harebell_package",
        "spark.executorEnv.PYTHONPATH": "./harebell_package",
    }
    chosen = {"spark.archives": "mine.zip#mine", "spark.executorEnv.PYTHONPATH": "./mine"}
    monkeypatch.setenv("HAREBELL_IMPL", "python")
    assert shipping.settings(archive, chosen) == {
        "spark.archives": f"mine.zip#mine,{archive}#harebell_package",
        "spark.executorEnv.PYTHONPATH": "./harebell_package:./mine",
        "spark.executorEnv.HAREBELL_IMPL": "python",
    }
