"""The spool: files that appear complete, are read by range, and go when they are committed."""

from __future__ import annotations

import os
import stat
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from harebell.spark.reading.spooled import spool as spools
from harebell.spark.reading.spooled.spool import Spool, SpoolError, SpoolPartition

SCHEMA = pa.schema([("n", pa.int64())])


def batch(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(first, end), pa.int64())], schema=SCHEMA)


def filled(root: Path, *bounds: tuple[int, ...]) -> Spool:
    """A spool with one file per tuple, cut into record batches at its numbers."""
    spool = Spool(root, SCHEMA)
    for cuts in bounds:
        for first, end in pairwise(cuts):
            spool.write(first, batch(first, end))
        spool.seal()
    return spool


def numbers(partitions: list[SpoolPartition]) -> list[list[int]]:
    return [
        [n for part in spools.read(partition, SCHEMA) for n in part["n"].to_pylist()]
        for partition in partitions
    ]


def test_few_written_rows_are_read_in_one_partition(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10, 20))
    assert numbers(spools.plan(tmp_path, spool.name, 0, 20, 4)) == [list(range(20))]
    requested = numbers(spools.plan(tmp_path, spool.name, 0, 20, 4, minimum=1))
    assert [len(part) for part in requested] == [5] * 4
    assert [n for part in requested for n in part] == list(range(20))


def test_a_large_range_is_cut_into_equal_partitions(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 3000, 6000), (6000, 8192))
    parts = numbers(spools.plan(tmp_path, spool.name, 0, 8192, 4))
    assert [len(part) for part in parts] == [2048] * 4
    assert [n for part in parts for n in part] == list(range(8192))


def test_a_range_may_begin_and_end_inside_record_batches(tmp_path: Path) -> None:
    spool = filled(tmp_path, (100, 110, 120), (120, 130))
    assert numbers(spools.plan(tmp_path, spool.name, 105, 123, 1)) == [list(range(105, 123))]


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    spool = Spool(tmp_path, SCHEMA)
    spool.write(0, batch(0, 5))
    with pytest.raises(FileNotFoundError):
        spools.plan(tmp_path, spool.name, 0, 5, 1)
    spool.seal()
    assert numbers(spools.plan(tmp_path, spool.name, 0, 5, 1)) == [list(range(5))]


def test_a_range_that_is_not_all_there_is_not_planned(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10), (20, 30))
    for first, end in ((0, 30), (5, 15), (0, 11), (15, 25)):
        with pytest.raises(FileNotFoundError, match="are not in the spool"):
            spools.plan(tmp_path, spool.name, first, end, 1)
    with pytest.raises(FileNotFoundError):
        spools.plan(tmp_path, "nobody", 0, 10, 1)


def test_a_torn_file_is_as_good_as_none(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 1000))
    [path] = (tmp_path / spool.name).iterdir()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(FileNotFoundError, match="is torn"):
        spools.plan(tmp_path, spool.name, 0, 1000, 1)
    path.write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="is torn"):
        spools.plan(tmp_path, spool.name, 0, 1000, 1)


def test_committed_files_are_deleted_and_no_others(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10), (10, 20), (20, 30))
    spool.forget_before(15)
    assert numbers(spools.plan(tmp_path, spool.name, 15, 30, 1)) == [list(range(15, 30))]
    with pytest.raises(FileNotFoundError):
        spools.plan(tmp_path, spool.name, 5, 15, 1)
    spool.forget_before(19)
    assert numbers(spools.plan(tmp_path, spool.name, 19, 30, 1)) == [list(range(19, 30))]
    # The end of a file is the position behind its last row.
    spool.forget_before(20)
    with pytest.raises(FileNotFoundError):
        spools.plan(tmp_path, spool.name, 19, 30, 1)
    assert numbers(spools.plan(tmp_path, spool.name, 20, 30, 1)) == [list(range(20, 30))]


def test_a_dropped_spool_leaves_nothing_behind(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10))
    spool.write(10, batch(10, 20))
    spool.drop()
    assert list(tmp_path.iterdir()) == []


def test_a_left_spool_keeps_what_was_sealed(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10))
    spool.write(10, batch(10, 20))
    spool.leave()
    assert numbers(spools.plan(tmp_path, spool.name, 0, 10, 1)) == [list(range(10))]


def test_other_columns_than_were_spooled_are_refused(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10))
    [partition] = spools.plan(tmp_path, spool.name, 0, 10, 1)
    with pytest.raises(SpoolError, match="written with the columns n, and the query asks for m"):
        list(spools.read(partition, pa.schema([("m", pa.int64())])))


def test_a_file_that_an_executor_does_not_see_is_explained(tmp_path: Path) -> None:
    spool = filled(tmp_path, (0, 10))
    [partition] = spools.plan(tmp_path, spool.name, 0, 10, 1)
    spool.drop()
    with pytest.raises(
        SpoolError, match="spoolDir must name a directory that the driver and every"
    ):
        list(spools.read(partition, SCHEMA))


def test_a_disk_that_cannot_be_written_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    spool = Spool(tmp_path / "file", SCHEMA)
    with pytest.raises(SpoolError, match="choose another place with the option spoolDir"):
        spool.write(0, batch(0, 1))


def test_the_spool_of_a_user_is_for_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    root = spools.default_root()
    assert root.parent == tmp_path
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert spools.default_root() == root
    root.chmod(0o755)
    with pytest.raises(SpoolError, match="not a directory that only this user can enter"):
        spools.default_root()


def test_a_link_in_the_place_of_the_spool_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / f"harebell-spool-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpoolError, match="remove it, or choose another place"):
        spools.default_root()
