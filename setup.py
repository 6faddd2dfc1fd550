"""Build of the compiled hot path; everything else about the package stands in pyproject.toml.

Two kinds of modules are compiled: the byte kernels (`kernels/*.pyx`) and the hot classes, which
are ordinary Python modules typed by a `.pxd` file beside them.  They compile all together or not
at all, because compiled classes share C layouts: one that fails makes the build fall back to pure
Python with a warning, never to a mixture.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")


def hot_modules() -> list[Path]:
    """Every `.pyx`, and every `.py` that has a `.pxd` of the same name and no `.pyx`."""
    kernels = sorted((SOURCE / "harebell").rglob("*.pyx"))
    augmented = [
        pxd.with_suffix(".py")
        for pxd in sorted((SOURCE / "harebell").rglob("*.pxd"))
        if pxd.with_suffix(".py").exists() and not pxd.with_suffix(".pyx").exists()
    ]
    return kernels + augmented


class AllOrNothing(build_ext):
    """Compile every extension, or leave none behind."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            if os.environ.get("HAREBELL_IMPL") == "native":
                raise
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            print(
                f"harebell: the compiled parts were not built ({error}); the pure Python "
                "implementation will be used. On Debian: apt-get install gcc python3-dev",
                file=sys.stderr,
            )


def extensions() -> list[Extension]:
    """The extensions, cythonized; an empty list when Cython is missing or unwanted."""
    if os.environ.get("HAREBELL_IMPL") == "python":
        return []
    from Cython.Build import cythonize

    modules = [
        Extension(
            ".".join(path.relative_to(SOURCE).with_suffix("").parts),
            [str(path)],
            extra_compile_args=["-O3", "-fno-strict-aliasing"],
        )
        for path in hot_modules()
    ]
    return cythonize(
        modules,
        include_path=[str(SOURCE)],
        build_dir="build/cython",
        nthreads=int(os.environ.get("HAREBELL_BUILD_THREADS", "0")),
        compiler_directives={
            "language_level": 3,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
            "annotation_typing": False,
            "infer_types": True,
        },
    )


setup(ext_modules=extensions(), cmdclass={"build_ext": AllOrNothing})
