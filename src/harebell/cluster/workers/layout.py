"""How many stores a data directory has, and whether a configuration fits."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.base.errors import HarebellError, StoreError
from harebell.base.osfs import sync_path
from harebell.cluster.process_config import loads_definitions
from harebell.cluster.stores import DIRECTORY, FIRST_STORE, data_dir_of
from harebell.management.limits import CONTROL_PATH_BYTES
from harebell.server.disk.lock import DirectoryLock
from harebell.server.limits import STORAGE_STORES
from harebell.store.definitions import NAME as DEFINITIONS

if TYPE_CHECKING:
    from harebell.config import Config
    from harebell.server.loaded_definitions import Sources

NUMBER = "number"
"""The file in `stores` with the number of stores."""
DIVIDING = "dividing"
"""A file in `stores` as long as vhosts are moved between the stores; no broker starts then."""
_DRAFT = "number.new"
_LONGEST_NAME = "control.sock"


def stores_of(data_dir: Path) -> int:
    """Return how many stores a data directory has; 1 for one that does not exist.

    Raises:
        StoreError: the directory cannot be read, or its vhosts are being moved between stores.
    """
    stores = data_dir / DIRECTORY
    try:
        if (stores / DIVIDING).exists():
            raise StoreError(
                f"{data_dir} is being divided, or made one again, and that did not end: run the "
                "same `harebell store split` or `harebell store join` again"
            )
        count = int((stores / NUMBER).read_text("ascii"))
        if not 1 <= count <= STORAGE_STORES:
            raise ValueError(count)
        return count
    except FileNotFoundError:
        return 1
    except ValueError:
        raise StoreError(
            f"{stores / NUMBER} has no number of stores: write into it how many there are, which "
            f"is the highest number of a directory in {stores}"
        ) from None
    except OSError as error:
        raise StoreError(f"cannot use {stores}: {error.strerror or error}") from None


def check_whole(data_dir: Path) -> None:
    """Refuse the directory of one store among several: the others would not know of a change.

    Raises:
        StoreError: it is one; the text names the whole.
    """
    stores = data_dir.resolve().parent
    if stores.name == DIRECTORY and any((stores / each).exists() for each in (NUMBER, DIVIDING)):
        raise StoreError(
            f"{data_dir} is one of several stores: give the whole data directory, {stores.parent}"
        )


def data_dirs(data_dir: Path, count: int) -> list[Path]:
    """Return the data directories of all stores in a directory, that of store 1 first."""
    numbers = range(FIRST_STORE, FIRST_STORE + count)
    return [data_dir_of(data_dir, FIRST_STORE, number) for number in numbers]


def write_number(data_dir: Path, count: int) -> None:
    """Note durably how many stores a data directory has.

    Raises:
        OSError: the disk refuses.
    """
    stores = data_dir / DIRECTORY
    if count == 1:
        (stores / NUMBER).unlink(missing_ok=True)
        sync_path(stores)
        return
    with open(stores / _DRAFT, "w", encoding="ascii") as file:
        file.write(f"{count}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(stores / _DRAFT, stores / NUMBER)
    sync_path(stores)


def check(data_dir: Path, workers: int) -> bool:
    """Refuse to start so many processes on a directory with another number of stores.

    Returns:
        Whether it has the data of no broker, and may become one of so many stores; False if it is
        one.

    Raises:
        StoreError: it has another number; the text says what to do.
    """
    count = stores_of(data_dir)
    if count == workers:
        return False
    if not any((each / DEFINITIONS).exists() for each in data_dirs(data_dir, count)):
        # New, or left by a start that failed before any store was made.
        return True
    join = f"`harebell store join {data_dir}`"
    split = f"`harebell store split {data_dir} {workers}`"
    if workers == 1:
        raise StoreError(
            f"{data_dir} has {count} stores: set workers = {count}, or make it one store again "
            f"with {join}"
        )
    if count > 1:
        raise StoreError(
            f"workers is {workers}, and {data_dir} has {count} stores: set workers = {count}, or "
            f"run {join} and then {split}"
        )
    raise StoreError(
        f"workers is {workers}, and {data_dir} has one store: divide it with {split}, or leave "
        "workers out"
    )


def _vhosts_of(data_dir: Path, count: int) -> dict[str, int]:
    """Return the store of each vhost, as the stores themselves have them."""
    vhosts: dict[str, int] = {}
    for number, directory in enumerate(data_dirs(data_dir, count), start=FIRST_STORE):
        for name in _names(directory, "vhosts"):
            vhosts.setdefault(name, number)
    return vhosts


def _names(directory: Path, table: str) -> list[str]:
    """Return the names in a table of the definitions of a store; none if there are none yet."""
    # What cannot be read ends the process of its store, and with it all of them.
    with suppress(sqlite3.Error):
        uri = f"{(directory.absolute() / DEFINITIONS).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as link:
            rows = link.execute(f"SELECT name FROM {table}")  # noqa: S608  # from here
            return [name for (name,) in rows]
    return []


def begin_as_one(data_dir: Path) -> None:
    """Let one process start on a directory.

    Raises:
        StoreError: it has several stores; the text says what to do.
    """
    if not check(data_dir, 1):
        return
    lock = DirectoryLock(data_dir / DIRECTORY)
    try:
        write_number(data_dir, 1)
    except OSError as error:
        raise StoreError(f"cannot use {data_dir}: {error.strerror or error}") from None
    finally:
        lock.release()


class Layout:
    """The data directory of several stores, as the supervisor holds it.

    Args:
        config: the data directory of store 1, how many stores there have to be, and the definitions
            that are loaded.

    Attributes:
        definitions: the part of each store of what is loaded; empty if nothing is.

    Raises:
        DefinitionsError: definitions that are to be loaded cannot be read.
        StoreError: the directory cannot be used, or has another number of stores.
    """

    def __init__(self, config: Config) -> None:
        data_dir, workers = config.data_dir, config.storage_stores
        check_whole(data_dir)
        # Imported only if it is used: each start of a broker with one store imports this file.
        from harebell.cluster.workers.shared_file import SharedFile

        self._shared = SharedFile(data_dir, workers)
        last = data_dirs(data_dir, workers)[-1]
        size = len(os.fsencode(last / _LONGEST_NAME))
        if size > CONTROL_PATH_BYTES:
            raise StoreError(
                f"the sockets in {last} would have paths of {size} bytes, and the system takes "
                f"{CONTROL_PATH_BYTES}: choose a shorter directory with --data-dir"
            )
        # Two: the directory itself may be new, and its parent has to be synced.
        DirectoryLock(data_dir).release()
        self._lock = DirectoryLock(data_dir / DIRECTORY)
        try:
            self._begin(config, is_new=check(data_dir, workers))
        except OSError as error:
            self.close()
            raise StoreError(f"cannot use {data_dir}: {error.strerror or error}") from None
        except HarebellError:
            self.close()
            raise

    def _begin(self, config: Config, *, is_new: bool) -> None:
        """Write down the vhosts of all stores, with those of the definitions that are loaded."""
        data_dir, workers = config.data_dir, config.storage_stores
        vhosts = _vhosts_of(data_dir, workers)
        self.definitions: dict[int, Sources] = {}
        if loads_definitions(config):
            # Imported only if it is used, as above.
            from harebell.cluster.workers.definitions_parts import read_parts

            self.definitions = read_parts(config, vhosts, _names(data_dir, "users"))
        if is_new:
            write_number(data_dir, workers)
        self._shared.begin(vhosts)

    def ended(self, store: int) -> None:
        """Note that the process of a store has ended, in any way."""
        # It is only sooner known: the next process of the store notes its own addresses.
        with suppress(self._shared.errors):
            self._shared.ended(store)

    def close(self) -> None:
        """Let others change the layout."""
        self._lock.release()
