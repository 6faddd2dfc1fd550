"""A source that came as an archive, where it arrives: it is made there, or says what is missing."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from harebell.spark.runtime import shipping
from harebell.spark.runtime.connect_pickle import recipe

_PACKAGES = Path(sysconfig.get_path("purelib"))
_SENDS = """
import sys
import harebell
from pyspark import cloudpickle
from pyspark_harebell import DefaultSource

assert ".zip" in harebell.__file__, harebell.__file__
sys.stdout.buffer.write(cloudpickle.dumps(DefaultSource({"queue": "orders"})))
"""
_TAKES = """
import pickle
import sys

source = pickle.loads(sys.stdin.buffer.read())
print(type(source).__module__, dict(source.options))
"""


def run(program: str, path: str, given: bytes, *flags: str) -> subprocess.CompletedProcess[bytes]:
    """A Python with another path, and what it said."""
    return subprocess.run(
        [sys.executable, *flags, "-c", program],
        env={"PYTHONPATH": path},
        input=given,
        capture_output=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A pickled source of a process that has Harebell from an archive."""
    archive = shipping.make_archive(tmp_path_factory.mktemp("sent"), shipping.python_files())
    done = run(_SENDS, str(archive), b"")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_source_is_made_again_where_harebell_is_installed(sent: bytes) -> None:
    done = run(_TAKES, str(Path(shipping.__file__).parents[3]), sent)
    assert done.stdout.decode() == "pyspark_harebell {'queue': 'orders'}\n", done.stderr


def test_where_harebell_is_not_installed_the_error_says_what_to_do(
    sent: bytes, tmp_path: Path
) -> None:
    for name in ("pyspark", "py4j"):
        (tmp_path / name).symlink_to(_PACKAGES / name)
    done = run(_TAKES, str(tmp_path), sent, "-S")
    assert done.returncode == 1
    last = done.stderr.decode().strip().splitlines()[-1]
    assert last.startswith(
        "ModuleNotFoundError: a streaming query over Spark Connect needs Harebell on the server "
        "(No module named 'pyspark_harebell'): install it"
    )


def test_an_installed_source_is_pickled_like_anything_else() -> None:
    assert recipe({"queue": "orders"}) is None
