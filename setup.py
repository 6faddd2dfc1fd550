"""Build of the compiled hot path; everything else about the package stands in pyproject.toml.

Two kinds of modules are compiled: the byte kernels (`kernels/*.pyx`) and the hot classes, which
are ordinary Python modules. `tools/declarations.py` writes a `.pxd` beside each of these, from its
annotations. They compile all together or not at all, because compiled classes share C layouts.
`HAREBELL_IMPL=python` asks for an installation without them, whose wheel is tagged `py3-none-any`;
in any other case a failure ends the build.

All cores compile; `HAREBELL_BUILD_THREADS` sets another number.  A build in the same directory that
was interrupted goes on with the modules that are missing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).resolve().parent / "tools"))

from declarations import DeclarationError, write

SOURCE = Path("src")
GENERATED = Path("build/cython")
# What the code of every compiled module would repeat, such as the type of their functions: once for
# all it is 3 MiB less.  It has no source; Cython makes it.
SHARED = "harebell.kernels.shared"
# The last line of a C file that Cython has written to its end.
END_OF_C = b"#endif /* Py_PYTHON_H */\n"
# Byte work gains from -O3.  The hot classes mostly call Python's C API, which -O2 does as well in
# two thirds of the time.  -g0 halves the time of both: debug information of generated code.
KERNEL_FLAGS = ["-O3", "-g0", "-fno-strict-aliasing"]
CLASS_FLAGS = ["-O2", "-g0", "-fno-strict-aliasing"]
PROGRESS_SECONDS = 5.0


def hot_modules() -> list[Path]:
    """Every `.pyx`, and every `.py` that gets a `.pxd`, which is written now."""
    try:
        return [*sorted((SOURCE / "harebell").rglob("*.pyx")), *write(SOURCE)]
    except DeclarationError as error:
        sys.exit(f"harebell: {error}")


def build_threads() -> int:
    """How many compilers run at a time."""
    return int(os.environ.get("HAREBELL_BUILD_THREADS") or os.cpu_count() or 1)


class Progress:
    """Lines that say how far a build is, at most one every few seconds.

    pip keeps what a build prints for itself unless it runs with `-v`, so that the lines go to the
    terminal where there is one.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        self._next = time.monotonic() + PROGRESS_SECONDS

    def step(self) -> None:
        """Count one more module as built."""
        with self._lock:
            self._done += 1
            if time.monotonic() < self._next and self._done < self._total:
                return
            self._next = time.monotonic() + PROGRESS_SECONDS
            self._show(f"harebell: {self._done} of {self._total} modules are compiled")

    def _show(self, line: str) -> None:
        if sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)
            return
        print(line, flush=True)
        try:
            with open("/dev/tty", "w") as terminal:
                print(f"\n  {line}", file=terminal)
        except OSError:
            pass  # no terminal: a container, or continuous integration


class AllOrNothing(build_ext):
    """Compile every extension on all cores; one that fails ends the build."""

    def finalize_options(self) -> None:
        super().finalize_options()
        if not self.parallel:
            self.parallel = build_threads()

    def run(self) -> None:
        self._progress = Progress(len(self.extensions))
        try:
            super().run()
        except Exception as error:
            sys.exit(
                f"harebell: the compiled parts could not be built: {error}\n"
                "They need a C compiler and Python's headers; on Debian: "
                "apt-get install gcc python3-dev\n"
                "HAREBELL_IMPL=python installs without them; a message then costs about ten "
                "times the CPU."
            )

    def build_extensions(self) -> None:
        """Link under another name first: a linker that is interrupted leaves half a file."""
        link = self.compiler.link_shared_object

        def link_whole(objects: list[str], output: str, **options: object) -> None:
            partial = f"{output}.partial"
            link(objects, partial, **options)
            os.replace(partial, output)

        self.compiler.link_shared_object = link_whole
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        self._progress.step()


class WithCommit(build_py):
    """Writes the commit into the package, for `harebell --version`; nothing without Git."""

    def run(self) -> None:
        super().run()
        try:
            asked = ["git", "rev-parse", "HEAD"]
            found = subprocess.run(asked, capture_output=True, text=True, check=True)  # noqa: S603
        except (OSError, subprocess.CalledProcessError):
            return
        target = Path(self.build_lib) / "harebell" / "COMMIT"
        if target.parent.is_dir() and Path(".git").exists():
            target.write_text(found.stdout)


def remove_half_written() -> None:
    """Remove C files that Cython did not finish; by their time they would count as up to date."""
    for path in GENERATED.rglob("*.c"):
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - len(END_OF_C)))
            if file.read() != END_OF_C:
                path.unlink()


def extensions() -> list[Extension]:
    """The extensions, as C; an empty list where an uncompiled installation was asked for."""
    if os.environ.get("HAREBELL_IMPL") == "python":
        return []
    from Cython.Build import cythonize

    remove_half_written()
    modules = [
        Extension(
            ".".join(path.relative_to(SOURCE).with_suffix("").parts),
            [str(path)],
            extra_compile_args=KERNEL_FLAGS if path.suffix == ".pyx" else CLASS_FLAGS,
        )
        for path in hot_modules()
    ]
    made = SOURCE / Path(*SHARED.split(".")).with_suffix(".c")
    modules.append(Extension(SHARED, [str(made)], extra_compile_args=CLASS_FLAGS))
    return cythonize(
        modules,
        shared_utility_qualified_name=SHARED,
        include_path=[str(SOURCE)],
        build_dir=str(GENERATED),
        nthreads=build_threads(),
        compiler_directives={
            "language_level": 3,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
            # A function that knows its code and annotations would be a KiB for each of thousands.
            "binding": False,
            # What is pickled says how: the code for all would be a sixth of a module.
            "auto_pickle": False,
            "annotation_typing": False,
            "infer_types": True,
        },
    )


if __name__ == "__main__":
    setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing, "build_py": WithCommit})
