"""Expire the snapshots of an Iceberg table, and remove the files that no other snapshot has.

pyiceberg takes snapshots out of a table's metadata, but leaves their files:

    manifest lists of the expired snapshots            removed
    manifests that no remaining snapshot lists         removed
    data files that were deleted from the table, by    removed, unless a remaining snapshot has them
      an expired snapshot or the oldest remaining one
    metadata.json that the table's log has no more     removed, an hour after it was written

The number of a sink's last batch is a property of the table and stays. So do the heads of branches
and tags. Files are removed after the commit: what a crash leaves between the two is in no snapshot.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harebell.pipeline.limits import (
    LAKE_METADATA_FILES,
    LAKE_METADATA_UNUSED_SECONDS,
    LAKE_SNAPSHOT_SECONDS,
    LAKE_SNAPSHOTS,
)

_KEEP = "history.expire.min-snapshots-to-keep"
_AGE = "history.expire.max-snapshot-age-ms"
PROPERTIES = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": str(LAKE_METADATA_FILES),
    # Without merging the list of a snapshot names one manifest more with every batch.
    "commit.manifest-merge.enabled": "true",
    _KEEP: str(LAKE_SNAPSHOTS),
    _AGE: str(int(LAKE_SNAPSHOT_SECONDS * 1000)),
}
"""What bounds the metadata of a table, by the names of Iceberg. A table may have other values."""
_METADATA = ".metadata.json"
_OURS = "harebell."
_RETENTION = "harebell.retention"
"""Set in tables that others have made: their snapshots do not expire by themselves."""


@dataclass(frozen=True)
class Expired:
    """What was removed, or would be.

    Args:
        snapshots: number of snapshots.
        data: number of data files.
        metadata: number of manifests, their lists, and metadata files.
    """

    snapshots: int
    data: int
    metadata: int


def missing_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of `PROPERTIES` that a sink adds to a table, about which it says nothing.

    How long snapshots of a table are kept that others have made is their decision.
    """
    foreign = not any(name.startswith(_OURS) for name in properties)
    left_out = (_KEEP, _AGE) if foreign or _RETENTION in properties else ()
    added = {_RETENTION: "own"} if foreign else {}
    return added | {
        name: value
        for name, value in PROPERTIES.items()
        if name not in properties and name not in left_out
    }


def expire_some(table: Any) -> Expired | None:
    """Expire what the table's properties allow, if there is twice as much as they keep."""
    properties = table.properties
    if _KEEP not in properties or _AGE not in properties:
        return None
    kept = int(properties[_KEEP])
    # Not with every batch: each expiry is a commit, and reads the manifests.
    if len(table.metadata.snapshots) < 2 * max(kept, 1):
        return None
    return expire(table, int(properties[_AGE]) / 1000, kept)


def expire(table: Any, older_seconds: float, keep: int, *, dry_run: bool = False) -> Expired:
    """Expire snapshots and remove their files.

    Args:
        table: of pyiceberg.
        older_seconds: snapshots that are younger stay.
        keep: the number of newest snapshots that stay.
        dry_run: only count.
    """
    table.refresh()
    expired, kept = _divided(table, time.time() - older_seconds, keep)
    data, metadata = _unreachable(table, expired, kept) if expired else (set(), set())
    # The files are listed before: the manifests of expired snapshots are not found afterwards.
    if expired and not dry_run:
        table.maintenance.expire_snapshots().by_ids([each.snapshot_id for each in expired]).commit()
    unused = _unused_metadata(table, older_seconds)
    if not dry_run:
        for path in (*data, *metadata, *unused):
            # Another one may have removed it; or it cannot be removed now, and no snapshot has it.
            with contextlib.suppress(Exception):
                table.io.delete(path)
    return Expired(len(expired), len(data), len(metadata) + len(unused))


def _divided(table: Any, before: float, keep: int) -> tuple[list[Any], list[Any]]:
    """Return the snapshots that expire, and those that stay."""
    heads = {each.snapshot_id for each in table.metadata.refs.values()}
    ordered = sorted(table.metadata.snapshots, key=_age)
    newest = {each.snapshot_id for each in ordered[len(ordered) - keep :]} if keep else set()
    expired = [
        each
        for each in ordered
        if each.timestamp_ms < before * 1000 and each.snapshot_id not in heads | newest
    ]
    gone = {each.snapshot_id for each in expired}
    return expired, [each for each in ordered if each.snapshot_id not in gone]


def _age(snapshot: Any) -> tuple[int, int]:
    # An overwrite makes two snapshots, which may be of the same millisecond.
    return int(snapshot.timestamp_ms), int(snapshot.sequence_number or 0)


def _unreachable(table: Any, expired: list[Any], kept: list[Any]) -> tuple[set[str], set[str]]:
    """Return the data files and the metadata files that only expired snapshots have."""
    io = table.io
    listed = {each.snapshot_id: each.manifests(io) for each in (*expired, *kept)}
    remaining = {
        manifest.manifest_path: manifest for each in kept for manifest in listed[each.snapshot_id]
    }
    lists = {each.manifest_list for each in expired}
    manifests = {
        manifest.manifest_path
        for each in expired
        for manifest in listed[each.snapshot_id]
        if manifest.manifest_path not in remaining
    }
    data = _deleted_files(io, (*expired, *kept[:1]), listed)
    if data:
        # A tag or a branch may have them, or a later snapshot has them again.
        for manifest in remaining.values():
            data -= {each.data_file.file_path for each in manifest.fetch_manifest_entry(io)}
    return data, manifests | lists


def _deleted_files(io: Any, snapshots: Iterable[Any], listed: Mapping[int, list[Any]]) -> set[str]:
    """Return the data files that snapshots have deleted from the table."""
    from pyiceberg.manifest import ManifestEntryStatus

    return {
        entry.data_file.file_path
        for snapshot in snapshots
        for manifest in listed[snapshot.snapshot_id]
        if manifest.added_snapshot_id == snapshot.snapshot_id and manifest.deleted_files_count != 0
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=False)
        if entry.status == ManifestEntryStatus.DELETED
    }


def _unused_metadata(table: Any, older_seconds: float) -> list[str]:
    """Return metadata files that are no longer in the log of the table, on file systems.

    One that another writer commits at this moment is younger.
    """
    from pyarrow import fs

    current = str(table.metadata_location)
    directory = current.rpartition("/")[0]
    used = {current, *(each.metadata_file for each in table.metadata.metadata_log)}
    before = time.time() - max(older_seconds, LAKE_METADATA_UNUSED_SECONDS)
    try:
        scheme, host, path = table.io.parse_location(directory, table.io.properties)
        files = table.io.fs_by_scheme(scheme, host).get_file_info(fs.FileSelector(path))
    except (AttributeError, OSError, ValueError):
        # This way of storing files cannot list them.
        return []
    names = {each.rpartition("/")[2] for each in used}
    return [
        f"{directory}/{each.base_name}"
        for each in files
        if each.base_name.endswith(_METADATA)
        and each.base_name not in names
        and each.mtime.timestamp() < before
    ]
