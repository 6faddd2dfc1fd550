"""The switch between compiled and pure Python, observed in processes of their own.

The choice is made once per process at the first import, so every case needs a fresh interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harebell
from harebell.base import impl

SOURCE = Path(harebell.__file__).parent
HOT = (
    "harebell.kernels.frames",
    "harebell.kernels.output",
    "harebell.base.message",
    "harebell.base.sequence",
    "harebell.model.queue.queue",
    "harebell.front.amqp_0_9_1.connection",
)


def run(code: str, choice: str | None, source: Path = SOURCE) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "HAREBELL_IMPL"}
    env["PYTHONPATH"] = str(source.parent)
    if choice is not None:
        env["HAREBELL_IMPL"] = choice
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )


LOADED = f"""
import importlib, sys
for name in {HOT!r} + ("harebell.server.app", "harebell.client.aio"):
    importlib.import_module(name)
from harebell.base import impl
print(impl.chosen())
for name, module in sorted(sys.modules.items()):
    if name.startswith("harebell.") and not module.__file__.endswith(".py"):
        print(name)
"""


def test_python_loads_no_compiled_module_at_all() -> None:
    done = run(LOADED, "python")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["python"]


def test_native_loads_every_hot_module_compiled() -> None:
    done = run(LOADED, "native")
    assert done.returncode == 0, done.stderr
    chosen, *compiled = done.stdout.split()
    assert chosen == "native"
    assert set(HOT) <= set(compiled)


def test_an_unknown_choice_is_refused_by_name() -> None:
    done = run("import harebell", "fast")
    assert done.returncode != 0
    assert "HAREBELL_IMPL='fast' is unknown: use 'python' or 'native'" in done.stderr


@pytest.fixture
def unbuilt(tmp_path: Path) -> Path:
    """A copy of the package without its compiled modules."""
    copy = tmp_path / "src" / "harebell"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.c"))
    return copy


def test_native_where_nothing_is_built_fails_and_says_how_to_build(unbuilt: Path) -> None:
    done = run("import harebell", "native", unbuilt)
    assert done.returncode != 0
    assert "the compiled parts are not built: run `pip install -e .`" in done.stderr


def test_without_a_choice_an_unbuilt_package_runs_in_python(unbuilt: Path) -> None:
    done = run(LOADED, None, unbuilt)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["python"]


WARNING = "from harebell.base import impl; print(impl.warning())"


def test_a_package_that_is_uncompiled_by_accident_says_how_to_mend_it(unbuilt: Path) -> None:
    done = run(WARNING, None, unbuilt)
    assert "the compiled parts are not installed" in done.stdout
    assert "pip install --force-reinstall --no-cache-dir harebell" in done.stdout
    assert run(WARNING, "python", unbuilt).stdout == "None\n"
    assert run(WARNING, "native").stdout == "None\n"


def test_a_broker_that_is_uncompiled_by_accident_warns_at_its_start(
    unbuilt: Path, tmp_path: Path
) -> None:
    serve = ["serve", "--port", "0", "--data-dir", str(tmp_path / "data")]
    code = f"""
import os, signal, sys
from harebell.cli.verbs import serve
serve.announce = lambda app, config: os.kill(os.getpid(), signal.SIGTERM)
from harebell.__main__ import main
sys.argv[1:] = {serve!r}
main()
"""
    done = run(code, None, unbuilt)
    assert "the compiled parts are not installed" in done.stderr, done.stderr


def test_the_finder_for_sources_leaves_other_packages_alone() -> None:
    finder = impl.SourceOnly()
    assert finder.find_spec("json.decoder", None) is None
    assert finder.find_spec("harebell.base", None) is None
    directory = str(SOURCE / "kernels")
    found = finder.find_spec("harebell.kernels.frames", [directory])
    assert found is not None
    assert found.origin == str(SOURCE / "kernels" / "frames.py")
    assert finder.find_spec("harebell.kernels.no_such", [directory]) is None
