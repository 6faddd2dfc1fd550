"""Make this clone ready: prerequisites, `.venv`, packages for Python and node, the compiled parts.

    python3.11 tools/setup.py run     what `make run` needs
    python3.11 tools/setup.py demo    and Spark with the demo's data
    python3.11 tools/setup.py site    what builds the documentation site
    python3.11 tools/setup.py test    and every tool and client that the tests use

Each step leaves a stamp with a hash of what it depends on, so that a second call takes no time and
a changed file repeats only its own step. With `HAREBELL_IMPL=python` nothing is compiled, and no
compiler is needed. Needs nothing but the standard library.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import method_stubs
import prerequisites
from declarations import write
from patience import fetch

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
SOURCE = ROOT / "src" / "harebell"
NODE = (ROOT / "tests" / "interop" / "node", ROOT / "tests" / "browser" / "node")
EXTRAS = {
    "run": ("management",),
    "demo": ("management", "spark", "demo"),
    "site": ("management", "site"),
    "test": (
        *("management", "dev", "spark", "sql", "delta", "iceberg", "demo", "interop", "fuzz"),
        *("postgresql", "site"),
    ),
}


def fingerprint(files: Iterable[Path], *words: str) -> str:
    """A hash of the files' names and contents, and of some words."""
    digest = hashlib.sha256("\0".join((sys.version, *words)).encode())
    for file in sorted(files):
        digest.update(f"\0{file.relative_to(ROOT)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()


class Stamp:
    """Remembers that a step was done, and with what.

    Args:
        path: the stamp's file.
        key: a hash of everything the step depends on.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key

    @property
    def fresh(self) -> bool:
        """Whether the step was done with the same key."""
        return self._path.exists() and self._path.read_text() == self._key

    def press(self) -> None:
        """Remember the step."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(self._key)


def run(title: str, command: list[str], **environment: str) -> None:
    """Run a command quietly; when it fails, show everything it said and end."""
    print(f"== {title}", flush=True)
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    _end_unless_done(title, done)


def download(title: str, command: list[str], **environment: str) -> None:
    """The same for what needs the network: it is tried again before it fails."""
    print(f"== {title}", flush=True)
    _end_unless_done(title, fetch(command, cwd=ROOT, env={**os.environ, **environment}))


def _end_unless_done(title: str, done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        print(f"harebell: set-up failed at: {title}\n  {' '.join(done.args)}", file=sys.stderr)
        sys.exit(1)


def make_venv() -> None:
    """Create `.venv`, again if its Python has gone."""
    works = PYTHON.exists() and (
        subprocess.run([PYTHON, "-c", ""], check=False, capture_output=True).returncode == 0
    )
    if not works:
        run("virtual environment .venv", [sys.executable, "-m", "venv", "--clear", str(VENV)])


@contextmanager
def beside(step: Callable[[], None]) -> Iterator[None]:
    """Do a step while the block waits for the network; if one of them fails, end after both."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(step)
        yield
        done.result()


def install_packages(purpose: str) -> None:
    """Install the package in place, with the extras of a purpose, and compile it meanwhile."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # Only these tables matter: settings of tools in the same file change nothing that is installed.
    wanted = json.dumps([project["project"], project["build-system"]], sort_keys=True)
    stamp = Stamp(VENV / "stamps" / purpose, fingerprint([], wanted, purpose))
    if stamp.fresh:
        compile_kernels()
        return
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    download("build tools", [*pip, *project["build-system"]["requires"]])
    extras = ",".join(EXTRAS[purpose])
    target = f".[{extras}]" if extras else "."
    with beside(compile_kernels):
        download(
            f"Python packages ({extras or 'the broker alone'})",
            [*pip, "--editable", target],
            HAREBELL_IMPL="python",
        )
    stamp.press()


def hot_modules() -> list[Path]:
    """The sources that are compiled: every kernel, and every module that gets a `.pxd`.

    The `.pxd` are written now: the others depend on them.
    """
    return [*SOURCE.rglob("*.pyx"), *write(SOURCE.parent)]


def binaries() -> dict[Path, Path]:
    """The compiled modules that are there, by their source without its suffix."""
    return {path.parent / path.name.split(".")[0]: path for path in SOURCE.rglob("*.so")}


def compile_kernels() -> None:
    """Compile the hot path in place, as far as it changed, unless it is not to be compiled."""
    if os.environ.get("HAREBELL_IMPL") == "python":
        return
    modules = hot_modules()
    wanted = {path.with_suffix("") for path in modules} | {SOURCE / "kernels" / "shared"}
    for source, binary in binaries().items():
        if source not in wanted:
            # Left from when this module was compiled; it would be imported instead of the source.
            binary.unlink()
    cython = [path.name for path in VENV.glob("lib/*/site-packages/[cC]ython-*.dist-info")]
    stamps = ROOT / "build" / "stamps"
    recipe = Stamp(stamps / "recipe", fingerprint([ROOT / "setup.py"], *cython))
    sources = Stamp(stamps / "sources", fingerprint({*modules, *SOURCE.rglob("*.pxd")}))
    if recipe.fresh and sources.fresh and wanted <= binaries().keys():
        return
    threads = str(os.cpu_count() or 1)
    command = [str(PYTHON), "setup.py", "--quiet", "build_ext", "--inplace", "--parallel", threads]
    environment = {"HAREBELL_IMPL": "native", "HAREBELL_BUILD_THREADS": threads}
    if not recipe.fresh:
        command.append("--force")
        environment["CYTHON_FORCE_REGEN"] = "1"
    run("compiled hot path", command, **environment)
    sources.press()
    recipe.press()


def write_stubs() -> None:
    """Write what type checkers know of the methods of AMQP, if their tables have changed."""
    tables = (SOURCE / "wire").rglob("*.py")
    files = [*tables, ROOT / "tools" / "method_stubs.py"]
    stamp = Stamp(ROOT / "build" / "stamps" / "stubs", fingerprint(files))
    if stamp.fresh and all(method_stubs.path_of(each).exists() for each in method_stubs.MODULES):
        return
    command = [str(PYTHON), "tools/method_stubs.py"]
    run("types of methods, for type checkers", command, HAREBELL_IMPL="python")
    stamp.press()


@contextmanager
def alone() -> Iterator[None]:
    """Wait until nobody else sets this clone up."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install_node_packages() -> None:
    """Install the node client of the interop tests, and what checks the web interface."""
    for home in NODE:
        locked = [home / "package.json", home / "package-lock.json"]
        stamp = Stamp(home / "node_modules" / ".harebell-stamp", fingerprint(locked))
        if not stamp.fresh:
            command = ["npm", "ci", "--prefix", str(home), "--no-audit", "--no-fund"]
            download(f"node packages of {home.parent.name}", command)
            stamp.press()


def main(arguments: list[str]) -> None:
    """Set up for one purpose."""
    if len(arguments) != 1 or arguments[0] not in EXTRAS:
        print(f"usage: tools/setup.sh {'|'.join(EXTRAS)}", file=sys.stderr)
        sys.exit(2)
    purpose = arguments[0]
    prerequisites.ensure(purpose)
    with alone():
        make_venv()
        with beside(install_node_packages if purpose == "test" else lambda: None):
            install_packages(purpose)
        write_stubs()


if __name__ == "__main__":
    main(sys.argv[1:])
