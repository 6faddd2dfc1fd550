"""The build of the compiled parts, tried with a package of two modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = """\
[build-system]
requires = ["setuptools", "Cython"]
build-backend = "setuptools.build_meta"
[project]
name = "harebell"
version = "0"
[tool.setuptools.packages.find]
where = ["src"]
"""
MODULES = ("harebell.kernels.one", "harebell.kernels.two")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The real setup.py beside two small kernels."""
    kernels = tmp_path / "src" / "harebell" / "kernels"
    kernels.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "tools").mkdir()
    for name in ("setup.py", "MANIFEST.in", "tools/declarations.py"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    for path in (kernels.parent, kernels):
        (path / "__init__.py").touch()
    for name in ("one", "two"):
        (kernels / f"{name}.pyx").write_text(f"def name():\n    return {name!r}\n")
    return tmp_path


def build(package: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Compile in place."""
    kept = {name: value for name, value in os.environ.items() if name != "HAREBELL_IMPL"}
    return subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=package,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def wheel(package: Path, **environment: str) -> str:
    """The file name of a wheel made by pip."""
    kept = {name: value for name, value in os.environ.items() if name != "HAREBELL_IMPL"}
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run(
        [*pip, "--wheel-dir", "wheels", "."],
        cwd=package,
        env={**kept, **environment},
        capture_output=True,
        check=True,
    )
    (made,) = (package / "wheels").iterdir()
    return made.name


def works(package: Path) -> bool:
    """Whether both modules are compiled and can be imported."""
    one, two = MODULES
    code = f"import {one} as one, {two} as two; print(one.__file__, two.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(package / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.count(".so") == len(MODULES)


def test_both_modules_are_compiled_and_counted(package: Path) -> None:
    done = build(package)
    assert done.returncode == 0, done.stderr
    assert "harebell: 3 of 3 modules are compiled" in done.stdout
    assert works(package)


def test_without_a_compiler_the_build_ends_and_says_what_to_do(package: Path) -> None:
    done = build(package, CC="/no/such/compiler")
    assert done.returncode != 0
    assert "apt-get install gcc python3-dev" in done.stderr
    assert "HAREBELL_IMPL=python installs without them" in done.stderr
    assert not list(package.rglob("*.so"))


def test_a_wheel_says_by_its_name_whether_it_is_compiled(package: Path) -> None:
    assert wheel(package, HAREBELL_IMPL="python") == "harebell-0-py3-none-any.whl"
    (package / "wheels" / "harebell-0-py3-none-any.whl").unlink()
    assert "-none-any" not in wheel(package)


def test_a_build_that_was_interrupted_goes_on_with_what_is_missing(package: Path) -> None:
    assert build(package).returncode == 0
    generated = package / "build" / "cython" / "src" / "harebell" / "kernels"
    (binary,) = (package / "src").rglob("two.*.so")
    (kept,) = (package / "build").rglob("one.*.so")
    (lost,) = (package / "build").rglob("two.*.so")
    before = kept.stat().st_mtime_ns
    # What a kill leaves in the midst of Cython's writing and of the linker's.
    whole = (generated / "two.c").read_bytes()
    (generated / "two.c").write_bytes(whole[: len(whole) // 2])
    lost.rename(f"{lost}.partial")
    binary.unlink()
    done = build(package)
    assert done.returncode == 0, done.stderr
    assert kept.stat().st_mtime_ns == before
    assert works(package)
