"""Build the archive of Harebell's modules that Spark sends to executors.

Executors of a cluster have a Python with pyspark and pyarrow, because Spark needs both itself; they
need not have Harebell. The archive has the modules of the format, compiled ones included, and the
two compiled packages that they need. Spark unpacks it in the directory of every executor, which
is added to PYTHONPATH: compiled modules cannot be imported from a zip, as `addPyFile` sends it.

On an executor with another Python or processor the compiled modules of Harebell do not match by
name, and their Python twins are used.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

from harebell.spark.runtime.java import SessionError

DIRECTORY = "harebell_package"
_SUFFIXES = {".py", ".so", ".pyi", ".typed"}
_BROKER_ONLY = {
    *("auth", "cli", "cluster", "config", "front"),
    *("management", "model", "server", "store"),
}
_CHECKS = (
    *("model/__init__.py", "model/death.py", "model/editor.py"),
    *("model/filter/", "model/limits.py"),
)
"""What checks a condition, which options can have."""
_PACKAGES = ("harebell", "pyspark_harebell", "msgspec", "google_crc32c")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def files() -> Iterator[tuple[str, Path]]:
    """Return the files of the archive, by their names in it."""
    for package in _PACKAGES:
        root = _directory(package)
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root)
            if path.suffix not in _SUFFIXES or "__pycache__" in inside.parts:
                continue
            if package == "harebell" and _is_broker_only(inside):
                continue
            yield f"{package}/{inside.as_posix()}", path
        # Libraries that a wheel adds for its compiled modules, by the convention of auditwheel.
        libraries = root.with_name(f"{package}.libs")
        if libraries.is_dir():
            for path in sorted(libraries.iterdir()):
                yield f"{libraries.name}/{path.name}", path


def _is_broker_only(inside: Path) -> bool:
    return inside.parts[0] in _BROKER_ONLY and not inside.as_posix().startswith(_CHECKS)


def python_files() -> Iterator[tuple[str, Path]]:
    """Return Harebell's Python files, which can be imported from a zip."""
    for name, path in files():
        if name.split("/")[0].endswith("harebell") and path.suffix == ".py":
            yield name, path


def make_archive(directory: Path, chosen: Iterable[tuple[str, Path]] | None = None) -> Path:
    """Return the archive; build it if the directory has none with these files.

    Args:
        directory: where it is stored.
        chosen: names in the archive, and the files; None for all that executors need.

    Raises:
        OSError: it cannot be written.
    """
    shipped = list(files() if chosen is None else chosen)
    digest = hashlib.sha256()
    for name, path in shipped:
        state = path.stat()
        digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0".encode())
    target = directory / f"harebell-{digest.hexdigest()[:16]}.zip"
    if target.exists():
        return target
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f"draft-{os.getpid()}-{secrets.token_hex(4)}.zip"
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, path in shipped:
                # A fixed date: the archive is the same whenever it is made.
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes())
        # Other sessions may make the same archive now: each sees a whole one or none.
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return target


def settings(archive: Path, chosen: dict[str, str]) -> dict[str, str]:
    """Return the settings for the archive, merged with those of the program."""
    carried = f"{archive}#{DIRECTORY}"
    others = chosen.get("spark.archives", "")
    paths = chosen.get("spark.executorEnv.PYTHONPATH", "")
    made = {
        "spark.archives": f"{others},{carried}" if others else carried,
        "spark.executorEnv.PYTHONPATH": f"./{DIRECTORY}:{paths}" if paths else f"./{DIRECTORY}",
    }
    implementation = os.environ.get("HAREBELL_IMPL")
    if implementation:
        made["spark.executorEnv.HAREBELL_IMPL"] = implementation
    return made


def _directory(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SessionError(f"the package {package} cannot be found to ship it to executors")
    return Path(spec.origin).parent
