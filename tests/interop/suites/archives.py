"""Archives of other people's clients: where they are unpacked, and that they are what was meant."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import SECONDS

ROOT = Path(__file__).parents[3]
BUILD = ROOT / "build" / "interop"


class CannotFetchError(RuntimeError):
    """A suite could not be made ready; the text says what was tried and what came back."""


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Nobody else makes this directory meanwhile: tests that need it may run side by side."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_name(f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unpack(archive: Path, sha256: str, to: Path) -> None:
    """Unpack an archive without its outermost directory, or a package of Debian.

    Raises:
        CannotFetchError: it is not the archive that the catalogue means.
    """
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        raise CannotFetchError(f"{archive.name} has the SHA-256 {found}, expected was {sha256}")
    if archive.suffix == ".deb":
        subprocess.run(["dpkg-deb", "-x", str(archive), str(to)], timeout=SECONDS, check=True)
        return
    inner = to.with_name("unpacked")
    with tarfile.open(archive) as opened:
        opened.extractall(inner, filter="data")
    # A description of the package may lie beside it.
    (only,) = (path for path in inner.iterdir() if path.is_dir())
    only.rename(to)
    shutil.rmtree(inner)
