"""Remove everything that a broker has stored in its data directory."""

from __future__ import annotations

from pathlib import Path

from harebell.base.errors import DiskError
from harebell.server.disk.reserve import NAME as RESERVE
from harebell.store.definitions import NAME as DEFINITIONS
from harebell.store.disk import KEPT
from harebell.store.inventory import NAME as INVENTORY
from harebell.store.quarantine import DIRECTORY as QUARANTINE

_FILES = (DEFINITIONS, f"{DEFINITIONS}-wal", f"{DEFINITIONS}-shm", "redo", INVENTORY, RESERVE)
_DIRECTORIES = ("queues", "staging", "stages", "transient", KEPT, QUARANTINE)


def erase(data_dir: Path) -> None:
    """Remove the files of `store/FORMAT.md`, but for the lock; logs and other files stay.

    The definitions go first: without them a start takes the directory for a new one, so that an
    erasure that is interrupted leaves no queue behind.

    Raises:
        DiskError: a file cannot be removed.
    """
    # Imported here, as few brokers are reset: it loads four ways to compress files.
    import shutil

    try:
        for name in _FILES:
            (data_dir / name).unlink(missing_ok=True)
        for name in _DIRECTORIES:
            directory = data_dir / name
            if directory.exists():
                shutil.rmtree(directory)
    except OSError as error:
        raise DiskError(
            f"cannot remove the files of the data directory {data_dir}: {error.strerror or error}; "
            "remove them yourself before the next start"
        ) from None
