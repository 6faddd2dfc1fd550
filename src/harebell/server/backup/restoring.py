"""Restore a backup to an empty data directory, and look at one as at a data directory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shutil import rmtree

from harebell.base.errors import StoreError
from harebell.base.osfs import OsFiles
from harebell.base.ports import write_all
from harebell.base.printable import printable
from harebell.cluster.stores import DIRECTORY as STORES
from harebell.cluster.workers.layout import write_number
from harebell.server.audit_trail import DIRECTORY as AUDIT_TRAIL
from harebell.server.audit_trail import add_alone
from harebell.server.backup.target import Target, backups_in, read_manifest
from harebell.server.disk.erasure import erase
from harebell.server.disk.lock import NAME as LOCK
from harebell.server.disk.lock import RESTORING, DirectoryLock
from harebell.server.limits import BACKUP_PIECE_BYTES
from harebell.store.backup.manifest import BackedUp, BackupError, Manifest

_OWN = frozenset((LOCK, RESTORING, AUDIT_TRAIL, "lost+found", "control.sock"))


def chosen(target: Target, name: str) -> Manifest:
    """Return the manifest of a backup, after a look whether all its files are there.

    Args:
        target: where it is.
        name: of the backup; "" for the newest.

    Raises:
        BackupError: there is none, or it is not complete.
        OSError: it cannot be read.
    """
    there = backups_in(target)
    if not there:
        raise BackupError(f"there is no finished backup in {target.shown}")
    if name and name not in there:
        raise BackupError(
            f"there is no finished backup '{printable(name)}' in {target.shown}: it has "
            f"{', '.join(there)}"
        )
    manifest = read_manifest(target, name or there[-1])
    stored = {place: target.files(place) for place in manifest.places}
    for file in manifest.files.values():
        size = stored[file.place].get(file.path)
        if size != file.size:
            what = "is missing" if size is None else f"has {size} bytes in place of {file.size}"
            raise _damaged(target, manifest, f"{file.stored} {what}")
    return manifest


def checked(target: Target, manifest: Manifest, file: BackedUp) -> Iterator[bytes]:
    """Yield the bytes of a file in pieces.

    Raises:
        BackupError: they are not what was backed up; this comes after the last piece.
        OSError: they cannot be read.
    """
    digest = hashlib.sha256()
    with target.read(file.stored) as source:
        while piece := source.read(BACKUP_PIECE_BYTES):
            digest.update(piece)
            yield piece
    if digest.hexdigest() != file.digest:
        raise _damaged(target, manifest, f"the checksum of {file.stored} is wrong")


def restore(target: Target, name: str, data_dir: Path) -> Manifest:
    """Restore a backup to a directory that is missing, empty, or of a restore that did not end.

    A file marks the directory until everything is there: no broker starts on a part of a backup.

    Args:
        target: where the backup is.
        name: of the backup; "" for the newest.
        data_dir: the directory.

    Returns:
        The manifest of the backup.

    Raises:
        StoreError: the directory has content or is in use, or the backup is damaged; nothing of
            the backup stays in the directory then.
        OSError: the backup cannot be read, or the directory cannot be written.
    """
    manifest = chosen(target, name)
    if data_dir.is_dir() and not (data_dir / RESTORING).exists():
        content = sorted(set(os.listdir(data_dir)) - _OWN)
        if content:
            raise StoreError(
                f"{data_dir} is not empty, it has '{printable(content[0])}': move its content "
                "away, or give another directory with --data-dir"
            )
    lock = DirectoryLock(data_dir, restoring=True)
    try:
        files = OsFiles(os.fspath(data_dir))
        files.open(RESTORING, create=True).close()
        files.sync_directory("")
        _erase(data_dir)
        try:
            for file in manifest.files.values():
                _restore(target, manifest, file, files)
            if manifest.stores > 1:
                files.make_directory(STORES)
                write_number(data_dir, manifest.stores)
        except BaseException:
            with suppress(OSError, StoreError):
                _erase(data_dir)
                files.remove(RESTORING)
            raise
        made = {"", STORES}
        for path in manifest.files:
            while path:
                path = path.rpartition("/")[0]
                made.add(path)
        for directory in sorted(made):
            with suppress(FileNotFoundError):
                files.sync_directory(directory)
        files.remove(RESTORING)
        files.sync_directory("")
        add_alone(data_dir, "backups.restore", manifest.name, {"source": target.shown})
    finally:
        lock.release()
    return manifest


def _erase(data_dir: Path) -> None:
    """Remove what a restore that did not end has left."""
    erase(data_dir)
    rmtree(data_dir / STORES, ignore_errors=True)


def _restore(target: Target, manifest: Manifest, file: BackedUp, files: OsFiles) -> None:
    files.make_directory(file.path.rpartition("/")[0])
    restored = files.open(file.path, create=True)
    try:
        offset = 0
        for piece in checked(target, manifest, file):
            write_all(restored, piece, offset)
            offset += len(piece)
        restored.sync()
    finally:
        restored.close()


def _damaged(target: Target, manifest: Manifest, what: str) -> BackupError:
    return BackupError(
        f"the backup {manifest.name} in {target.shown} is damaged: {what}; give an earlier one "
        "with --backup"
    )
