"""`lake('path')` says in a sentence what it cannot read, and waits for nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sql.embedded.kinds import NeedsSpark
from harebell.pipeline.sql.embedded.lake_table import open_lake
from harebell.pipeline.sql.tables import place_of


@pytest.mark.parametrize("name", ["x" * 300, "~there.is.no.such.user/t"])
def test_a_path_that_no_directory_can_have_is_refused_in_one_sentence(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipelineError, match=r"there is no table at .* that can be read: "):
        place_of(name, Path())


def test_a_directory_that_cannot_be_listed_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(self: Path, pattern: str) -> list[Path]:
        raise OSError(22, "Invalid argument", str(self))

    monkeypatch.setattr(Path, "rglob", broken)
    with pytest.raises(PipelineError, match=r"that can be read: .*Invalid argument"):
        place_of("t", tmp_path)


def test_a_pipe_with_the_name_of_a_parquet_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.parquet")
    with pytest.raises(PipelineError, match=r"p\.parquet is no file"):
        open_lake("", tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"id": [1]}), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes(b"PAR1 is what this is not")
    with pytest.raises(NeedsSpark, match=r"does not know a file of lake\(\): '2\.parquet'"):
        open_lake("", tmp_path)
